// An SCTP endpoint for tests, on a stack chosen at compile time.
//
//	peer udp PORT         commands on standard input, answers on standard output
//	peer control PORT     the same on each connection to a TCP port
//
// It does one thing per line:
//
//	opt NAME VALUE…       for the sockets made from now on, see options()
//	listen PORT [ADDR…]   then accept one association after the other
//	connect FROM[@ADDR[,ADDR…]] TO UDP ADDR[,ADDR…]
//	mode echo|sink        what to do with messages (default echo)
//	send N SIZE [streams=N] [first=N] [unordered] [immediate] [ppid=N] [ttl=MS] [rtx=N] [prio=N]
//	await N               say "got …" when N messages have been received
//	stat | paths          what there is now
//	reset out|in SID… | resetassoc | add OUT IN
//	addaddr ADDR | deladdr ADDR | peerprimary ADDR    for our addresses
//	primary ADDR PORT | heartbeat ADDR PORT           for those of the other end
//	shutdown | abort [TEXT] | quit
//
// Answers and events are lines too. A message that send makes tells its place
// in the stream and its length, and sink checks both and every byte.

#include "api.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STREAMS 65536
#define MAX_ADDRS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *format, ...) {
	char line[1024];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line, sizeof line - 1, format, ap);
	va_end(ap);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n++] = '\n';
	pthread_mutex_lock(&lock);
	if (write(1, line, n) != n)
		_exit(1); // nobody listens any more
	pthread_mutex_unlock(&lock);
}

static void *must(void *p) {
	if (!p) {
		say("fatal out of memory");
		_exit(1);
	}
	return p;
}

// --- messages: sequence number in the stream, length, then a pattern of
// --- period 251 that begins where the sequence number says.

#define PERIOD 251
static uint8_t pattern[PERIOD * 512];

static void pattern_init(void) {
	uint32_t x = 1;
	for (int i = 0; i < PERIOD; i++) {
		x = x * 1664525u + 1013904223u;
		pattern[i] = x >> 24;
	}
	for (size_t i = PERIOD; i < sizeof pattern; i++)
		pattern[i] = pattern[i - PERIOD];
}

static void put32(uint8_t *p, uint32_t v) {
	v = htonl(v);
	memcpy(p, &v, 4);
}

static uint32_t get32(const uint8_t *p) {
	uint32_t v;
	memcpy(&v, p, 4);
	return ntohl(v);
}

static void fill(uint8_t *p, size_t n, uint32_t seq) {
	put32(p, seq);
	put32(p + 4, n);
	for (size_t at = 8; at < n;) {
		size_t from = (seq + at) % PERIOD, k = sizeof pattern - from;
		if (k > n - at)
			k = n - at;
		memcpy(p + at, pattern + from, k);
		at += k;
	}
}

static const char *check(const uint8_t *p, size_t n) {
	if (n < 8 || get32(p + 4) != n)
		return "length";
	uint32_t seq = get32(p);
	for (size_t at = 8; at < n;) {
		size_t from = (seq + at) % PERIOD, k = sizeof pattern - from;
		if (k > n - at)
			k = n - at;
		if (memcmp(p + at, pattern + from, k))
			return "bytes";
		at += k;
	}
	return NULL;
}

// --- one association

struct partial { // a message whose end has not come
	uint8_t *p;
	size_t n, room;
};

static struct {
	sock s;
	pthread_t receiver;
	int open, sink, closing;
	uint64_t msgs, bytes, bad, unordered, gaps, await;
	struct partial *part;  // by stream and order, 2 * MAX_STREAMS
	uint32_t *next_in;     // by stream: the sequence number expected
	uint32_t *next_out;    // by stream
	pthread_mutex_t mu;
} a = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void counters(const char *what) {
	say("%s msgs=%llu bytes=%llu bad=%llu gaps=%llu unordered=%llu", what, (unsigned long long)a.msgs,
	    (unsigned long long)a.bytes, (unsigned long long)a.bad, (unsigned long long)a.gaps, (unsigned long long)a.unordered);
}

static void message(struct partial *m, const struct info *i) {
	const char *wrong = a.sink ? check(m->p, m->n) : NULL;
	int gap = 0;
	if (a.sink && !wrong && !i->unordered) {
		uint32_t seq = get32(m->p);
		if (seq < a.next_in[i->sid])
			wrong = "order";
		gap = seq > a.next_in[i->sid]; // abandoned ones are missing
		a.next_in[i->sid] = seq + 1;
	}
	if (wrong)
		say("bad %s sid=%u size=%zu number=%llu", wrong, i->sid, m->n, (unsigned long long)a.msgs);
	pthread_mutex_lock(&a.mu);
	a.msgs++;
	a.bytes += m->n;
	a.bad += wrong != NULL;
	a.gaps += gap;
	a.unordered += i->unordered;
	int tell = a.await && a.msgs >= a.await;
	if (tell)
		a.await = 0;
	pthread_mutex_unlock(&a.mu);
	if (!a.sink) {
		struct info o = {.sid = i->sid, .ppid = i->ppid, .unordered = i->unordered};
		if (s_send(a.s, m->p, m->n, &o) != (ssize_t)m->n)
			say("echo error %s", strerror(errno));
	}
	if (tell)
		counters("got");
	if (m->room > 1 << 20) {
		free(m->p);
		memset(m, 0, sizeof *m);
	}
	m->n = 0;
}

static void restart_numbers(void) {
	memset(a.next_in, 0, MAX_STREAMS * sizeof *a.next_in);
	memset(a.next_out, 0, MAX_STREAMS * sizeof *a.next_out);
}

static const char *address(const void *ss, char *b, size_t n) {
	const struct sockaddr *sa = ss;
	const void *ip = sa->sa_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)ss)->sin6_addr
						   : (const void *)&((const struct sockaddr_in *)ss)->sin_addr;
	if (!inet_ntop(sa->sa_family, ip, b, n))
		snprintf(b, n, "?");
	return b;
}

static void notification(const uint8_t *p, size_t n) {
	union sctp_notification u;
	memset(&u, 0, sizeof u);
	memcpy(&u, p, n < sizeof u ? n : sizeof u);
	char b[INET6_ADDRSTRLEN];
	const char *s;
	switch (u.sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		switch (u.sn_assoc_change.sac_state) {
		case SCTP_COMM_UP: s = "comm_up"; break;
		case SCTP_COMM_LOST: s = "comm_lost"; break;
		case SCTP_RESTART:
			s = "restart";
			restart_numbers();
			break;
		case SCTP_SHUTDOWN_COMP: s = "shutdown_comp"; break;
		default: s = "cant_start";
		}
		say("event %s error=%u", s, u.sn_assoc_change.sac_error);
		break;
	case SCTP_PEER_ADDR_CHANGE:
		switch (u.sn_paddr_change.spc_state) {
		case SCTP_ADDR_AVAILABLE: s = "up"; break;
		case SCTP_ADDR_UNREACHABLE: s = "down"; break;
		case SCTP_ADDR_REMOVED: s = "removed"; break;
		case SCTP_ADDR_ADDED: s = "added"; break;
		case SCTP_ADDR_MADE_PRIM: s = "primary"; break;
		case SCTP_ADDR_CONFIRMED: s = "confirmed"; break;
		default: s = "changed";
		}
		say("path %s %s", s, address(&u.sn_paddr_change.spc_aaddr, b, sizeof b));
		break;
	case SCTP_SHUTDOWN_EVENT: say("event shutdown"); break;
	case SCTP_REMOTE_ERROR: say("event remote_error cause=%u", ntohs(u.sn_remote_error.sre_error)); break;
	case SCTP_ADAPTATION_INDICATION: say("adaptation %u", u.sn_adaptation_event.sai_adaptation_ind); break;
	case SCTP_STREAM_RESET_EVENT: {
		char list[200] = "";
		int len = 0, streams = (u.sn_strreset_event.strreset_length - 12) / 2;
		for (int i = 0; i < streams && i < 8; i++) {
			uint16_t sid;
			memcpy(&sid, p + 12 + 2 * i, 2);
			len += snprintf(list + len, sizeof list - len, " %u", sid);
			if (u.sn_header.sn_flags & SCTP_STREAM_RESET_INCOMING_SSN)
				a.next_in[sid] = 0;
			if (u.sn_header.sn_flags & SCTP_STREAM_RESET_OUTGOING_SSN)
				a.next_out[sid] = 0;
		}
		say("reset%s%s%s%s%s", u.sn_header.sn_flags & SCTP_STREAM_RESET_INCOMING_SSN ? " in" : "",
		    u.sn_header.sn_flags & SCTP_STREAM_RESET_OUTGOING_SSN ? " out" : "",
		    u.sn_header.sn_flags & SCTP_STREAM_RESET_DENIED ? " denied" : "",
		    u.sn_header.sn_flags & SCTP_STREAM_RESET_FAILED ? " failed" : "", list);
		break;
	}
	case SCTP_ASSOC_RESET_EVENT:
		restart_numbers();
		say("resetassoc flags=%u", u.sn_header.sn_flags);
		break;
	case SCTP_STREAM_CHANGE_EVENT:
		say("streams in=%u out=%u flags=%u", u.sn_strchange_event.strchange_instrms, u.sn_strchange_event.strchange_outstrms,
		    u.sn_header.sn_flags);
		break;
	case SCTP_SEND_FAILED_EVENT: say("event send_failed"); break;
	case SCTP_PARTIAL_DELIVERY_EVENT: say("event partial_aborted"); break;
	case SCTP_SENDER_DRY_EVENT: break;
	case SCTP_AUTHENTICATION_EVENT: break;
	default: say("event type=%u", u.sn_header.sn_type);
	}
}

static void *receive(void *arg) {
	(void)arg;
	size_t room = 256 << 10;
	uint8_t *buf = must(malloc(room));
	for (;;) {
		struct info i;
		ssize_t n = s_recv(a.s, buf, room, &i);
		if (n < 0 && errno == EINTR && !a.closing)
			continue;
		if (n <= 0) {
			int err = n < 0 ? errno : 0;
			a.open = 0;
			s_close(a.s);
			say(err ? "end %s" : "end", strerror(err));
			break;
		}
		if (i.notification) {
			notification(buf, n);
			continue;
		}
		struct partial *m = &a.part[2 * i.sid + !!i.unordered];
		if (m->n + n > m->room) {
			m->room = (m->n + n) * 2;
			m->p = must(realloc(m->p, m->room));
		}
		memcpy(m->p + m->n, buf, n);
		m->n += n;
		if (i.eor)
			message(m, &i);
	}
	free(buf);
	return NULL;
}

static void begin(void) {
	struct sctp_status st;
	socklen_t n = sizeof st;
	memset(&st, 0, sizeof st);
	if (s_get(a.s, IPPROTO_SCTP, SCTP_STATUS, &st, &n) < 0) {
		say("error status %s", strerror(errno));
		return;
	}
	for (int i = 0; i < 2 * MAX_STREAMS; i++)
		a.part[i].n = 0;
	restart_numbers();
	a.msgs = a.bytes = a.bad = a.gaps = a.unordered = a.await = 0;
	a.closing = 0;
	a.open = 1;
	say("up out=%u in=%u", st.sstat_outstrms, st.sstat_instrms);
	pthread_create(&a.receiver, NULL, receive, NULL);
	pthread_detach(a.receiver);
}

// --- options

#define MAX_OPTS 64
static char *opts[MAX_OPTS];
static int nopts;

static void value(sock s, const char *name, int opt, uint32_t v) {
	struct sctp_assoc_value av = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = v};
	if (s_set(s, IPPROTO_SCTP, opt, &av, sizeof av) < 0)
		say("error opt %s: %s", name, strerror(errno));
}

static void number(sock s, const char *name, int level, int opt, int v) {
	if (s_set(s, level, opt, &v, sizeof v) < 0)
		say("error opt %s: %s", name, strerror(errno));
}

// option applies one line of opt to a socket.
static void option(sock s, const char *line) {
	char name[32] = "", text[128] = "";
	unsigned x = 0, y = 0, z = 0;
	sscanf(line, "%31s %127s", name, text);
	sscanf(line, "%*s %u %u %u", &x, &y, &z);
	if (!strcmp(name, "streams")) { // OUT IN
		struct sctp_initmsg m = {.sinit_num_ostreams = x, .sinit_max_instreams = y};
		if (s_set(s, IPPROTO_SCTP, SCTP_INITMSG, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "rto")) { // INITIAL MIN MAX
		struct sctp_rtoinfo m = {.srto_initial = x, .srto_min = y, .srto_max = z};
		if (s_set(s, IPPROTO_SCTP, SCTP_RTOINFO, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "maxrtx")) { // ASSOCIATION
		struct sctp_assocparams m = {.sasoc_asocmaxrxt = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_ASSOCINFO, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "heartbeat")) { // MS PATHMAXRTX
		struct sctp_paddrparams m = {.spp_hbinterval = x, .spp_pathmaxrxt = y, .spp_flags = SPP_HB_ENABLE};
		m.spp_address.ss_family = AF_INET;
		if (s_set(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "adaptation")) {
		struct sctp_setadaptation m = {.ssb_adaptation_ind = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "encaps")) { // remote UDP port
		struct sctp_udpencaps m = {.sue_port = htons(x)};
		m.sue_address.ss_family = AF_INET;
		if (s_set(s, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "authchunk")) {
		struct sctp_authchunk m = {.sauth_chunk = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "key")) { // NUMBER KEY, and make it the active one
		char key[100] = "";
		sscanf(line, "%*s %*u %99s", key);
		size_t n = strlen(key);
		struct sctp_authkey *k = must(calloc(1, sizeof *k + n));
		k->sca_keynumber = x;
		k->sca_keylength = n;
		memcpy(k->sca_key, key, n);
		struct sctp_authkeyid id = {.scact_keynumber = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_AUTH_KEY, k, sizeof *k + n) < 0 ||
		    s_set(s, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id) < 0)
			say("error opt %s: %s", name, strerror(errno));
		free(k);
	} else if (!strcmp(name, "buffer")) { // SEND RECEIVE
#ifdef PEER_USRSCTP
		number(s, name, SOL_SOCKET, SO_SNDBUF, x);
		number(s, name, SOL_SOCKET, SO_RCVBUF, y);
#else
		number(s, name, SOL_SOCKET, SO_SNDBUFFORCE, x);
		number(s, name, SOL_SOCKET, SO_RCVBUFFORCE, y);
#endif
	} else if (!strcmp(name, "nodelay")) {
		number(s, name, IPPROTO_SCTP, SCTP_NODELAY, x);
	} else if (!strcmp(name, "autoasconf")) {
		number(s, name, IPPROTO_SCTP, SCTP_AUTO_ASCONF, x);
	} else if (!strcmp(name, "idata")) { // 0 or 1
		if (x)
			number(s, name, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, 2);
		value(s, name, SCTP_INTERLEAVING_SUPPORTED, x);
	} else if (!strcmp(name, "pr")) {
		value(s, name, SCTP_PR_SUPPORTED, x);
	} else if (!strcmp(name, "auth")) {
		value(s, name, SCTP_AUTH_SUPPORTED, x);
	} else if (!strcmp(name, "asconf")) {
		value(s, name, SCTP_ASCONF_SUPPORTED, x);
	} else if (!strcmp(name, "ecn")) {
		value(s, name, SCTP_ECN_SUPPORTED, x);
	} else if (!strcmp(name, "reconfig")) {
		value(s, name, SCTP_RECONFIG_SUPPORTED, x);
		value(s, name, SCTP_ENABLE_STREAM_RESET, x ? 7 : 0);
	} else if (!strcmp(name, "maxburst")) {
		value(s, name, SCTP_MAX_BURST, x);
	} else if (!strcmp(name, "maxseg")) {
		value(s, name, SCTP_MAXSEG, x);
	} else {
		say("error opt %s: unknown", name);
	}
}

static const uint16_t wanted[] = {
	SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_REMOTE_ERROR, SCTP_SHUTDOWN_EVENT, SCTP_ADAPTATION_INDICATION,
	SCTP_STREAM_RESET_EVENT, SCTP_ASSOC_RESET_EVENT, SCTP_STREAM_CHANGE_EVENT, SCTP_SEND_FAILED_EVENT, SCTP_PARTIAL_DELIVERY_EVENT,
};

static int configured(int family, sock *s) {
	if (s_socket(family, s) < 0) {
		say("error socket %s", strerror(errno));
		return -1;
	}
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		struct sctp_event e = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = wanted[i], .se_on = 1};
		if (s_set(*s, IPPROTO_SCTP, SCTP_EVENT, &e, sizeof e) < 0)
			say("error event %u: %s", wanted[i], strerror(errno));
	}
#ifdef PEER_USRSCTP
	int on = 1;
	s_set(*s, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
#endif
	for (int i = 0; i < nopts; i++)
		option(*s, opts[i]);
	return 0;
}

// addresses reads a list of addresses separated by commas, to be followed by
// bytes of another one. Without any it is the unspecified one.
static int addresses(char *list, uint16_t port, struct sockaddr *out) {
	int n = 0;
	char *save = NULL, *p = (char *)out;
	for (char *w = strtok_r(list, ",", &save); w && n < MAX_ADDRS; w = strtok_r(NULL, ",", &save), n++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
		if (inet_pton(AF_INET, w, &v4.sin_addr) == 1) {
			memcpy(p, &v4, sizeof v4);
			p += sizeof v4;
		} else if (inet_pton(AF_INET6, w, &v6.sin6_addr) == 1) {
			memcpy(p, &v6, sizeof v6);
			p += sizeof v6;
		} else {
			return -1;
		}
	}
	return n;
}

static sock listener;

static void *accepting(void *arg) {
	(void)arg;
	for (;;) {
		sock s;
		if (s_accept(listener, &s) < 0) {
			say("error accept %s", strerror(errno));
			return NULL;
		}
		if (a.open) {
			say("error second association");
			s_close(s);
			continue;
		}
		a.s = s;
		begin();
	}
}

static union {
	struct sockaddr sa;
	char room[MAX_ADDRS * sizeof(struct sockaddr_in6)];
} addrs;

static void do_listen(uint16_t port, char *list) {
	char any[] = "0.0.0.0";
	int n = addresses(*list ? list : any, port, &addrs.sa);
	if (n <= 0 || configured(addrs.sa.sa_family, &listener) < 0)
		return;
	if (s_bind(listener, &addrs.sa, n) < 0 || s_listen(listener) < 0) {
		say("error listen %s", strerror(errno));
		return;
	}
	say("listening");
	pthread_t t;
	pthread_create(&t, NULL, accepting, NULL);
	pthread_detach(t);
}

struct target {
	sock s;
	int n;
	char addrs[sizeof addrs];
};

static void *connecting(void *arg) {
	struct target *t = arg;
	if (s_connect(t->s, (struct sockaddr *)t->addrs, t->n) < 0) {
		say("error connect %s", strerror(errno));
		s_close(t->s);
	} else {
		a.s = t->s;
		begin();
	}
	free(t);
	return NULL;
}

static void do_connect(char *from, uint16_t to, unsigned udp, char *list) {
	char any[] = "0.0.0.0", *local = strchr(from, '@');
	if (local)
		*local++ = 0;
	int n = addresses(local ? local : any, atoi(from), &addrs.sa);
	sock s;
	if (n <= 0 || configured(addrs.sa.sa_family, &s) < 0)
		return;
	int bound = -1;
	for (int try = 0; try < 100 && (bound = s_bind(s, &addrs.sa, n)) < 0 && errno == EADDRINUSE; try++)
		usleep(50000); // the port was used before
	if (bound < 0) {
		say("error bind %s", strerror(errno));
		s_close(s);
		return;
	}
	char encaps[32];
	snprintf(encaps, sizeof encaps, "encaps %u", udp);
	option(s, encaps);
	struct target *t = must(calloc(1, sizeof *t));
	t->s = s;
	t->n = addresses(list, to, (struct sockaddr *)t->addrs);
	pthread_t th;
	pthread_create(&th, NULL, connecting, t);
	pthread_detach(th);
}

struct job {
	unsigned long count, size, streams, first;
	struct info i;
};

static void *sending(void *arg) {
	struct job *j = arg;
	uint8_t *p = must(malloc(j->size));
	unsigned long n = 0;
	for (; n < j->count; n++) {
		j->i.sid = j->first + n % j->streams;
		fill(p, j->size, a.next_out[j->i.sid]++);
		ssize_t k = s_send(a.s, p, j->size, &j->i);
		if (k != (ssize_t)j->size) {
			say("error send %lu: %zd %s", n, k, strerror(errno));
			break;
		}
	}
	say("sent %lu", n);
	free(p);
	free(j);
	return NULL;
}

static void do_send(char *args) {
	struct job *j = must(calloc(1, sizeof *j));
	j->streams = 1;
	int used = 0;
	if (sscanf(args, "%lu %lu%n", &j->count, &j->size, &used) < 2 || j->size < 8) {
		say("error send wants a count and a size of 8 at least");
		free(j);
		return;
	}
	char *save = NULL;
	for (char *w = strtok_r(args + used, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		unsigned long v = strchr(w, '=') ? strtoul(strchr(w, '=') + 1, NULL, 0) : 0;
		if (!strncmp(w, "streams=", 8))
			j->streams = v;
		else if (!strncmp(w, "first=", 6))
			j->first = v;
		else if (!strncmp(w, "ppid=", 5))
			j->i.ppid = v;
		else if (!strcmp(w, "unordered"))
			j->i.unordered = 1;
		else if (!strcmp(w, "immediate"))
			j->i.immediate = 1;
		else if (!strncmp(w, "ttl=", 4))
			j->i.pr = PR_TTL, j->i.pr_value = v;
		else if (!strncmp(w, "rtx=", 4))
			j->i.pr = PR_RTX, j->i.pr_value = v;
		else if (!strncmp(w, "prio=", 5))
			j->i.pr = PR_PRIO, j->i.pr_value = v;
		else
			say("error send %s", w);
	}
	pthread_t t;
	pthread_create(&t, NULL, sending, j);
	pthread_detach(t);
}

static void result(const char *what, int r) {
	if (r < 0)
		say("error %s %s", what, strerror(errno));
	else
		say("ok");
}

// s_request sets an option that begins a request to the other end, which is to
// wait until nothing is under way.
static int s_request(int opt, const void *v, socklen_t n) {
	int r = -1;
	for (int try = 0; try < 500 && (r = s_set(a.s, IPPROTO_SCTP, opt, v, n)) < 0 && (errno == EBUSY || errno == EAGAIN); try++)
		usleep(10000);
	return r;
}

static void do_reset(char *args) {
	struct sctp_reset_streams *r = must(calloc(1, sizeof *r + 2 * 64));
	char *save = NULL, *w = strtok_r(args, " ", &save);
	r->srs_flags = w && !strcmp(w, "in") ? SCTP_STREAM_RESET_INCOMING : SCTP_STREAM_RESET_OUTGOING;
	while ((w = strtok_r(NULL, " ", &save)) && r->srs_number_streams < 64)
		r->srs_stream_list[r->srs_number_streams++] = atoi(w);
	result("reset", s_request(SCTP_RESET_STREAMS, r, sizeof *r + 2 * r->srs_number_streams));
	free(r);
}

static void do_address(const char *what, char *text) {
	char *port = strchr(text, ' ');
	if (port)
		*port++ = 0;
	int n = addresses(text, port ? atoi(port) : 0, &addrs.sa), r = -1;
	errno = EINVAL;
	if (n == 1 && !strcmp(what, "addaddr")) {
		r = s_addrs(a.s, &addrs.sa, 1, 1);
	} else if (n == 1 && !strcmp(what, "deladdr")) {
		r = s_addrs(a.s, &addrs.sa, 1, 0);
	} else if (n == 1 && !strcmp(what, "primary")) {
		struct sctp_setprim m = {0};
		memcpy(&m.ssp_addr, &addrs, sizeof m.ssp_addr < sizeof addrs ? sizeof m.ssp_addr : sizeof addrs);
		r = s_set(a.s, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &m, sizeof m);
	} else if (n == 1 && !strcmp(what, "peerprimary")) {
		struct sctp_setpeerprim m = {0};
		memcpy(&m.sspp_addr, &addrs, sizeof m.sspp_addr < sizeof addrs ? sizeof m.sspp_addr : sizeof addrs);
		r = s_set(a.s, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &m, sizeof m);
	} else if (n == 1 && !strcmp(what, "heartbeat")) {
		struct sctp_paddrparams m = {.spp_flags = SPP_HB_DEMAND};
		memcpy(&m.spp_address, &addrs, sizeof m.spp_address < sizeof addrs ? sizeof m.spp_address : sizeof addrs);
		r = s_set(a.s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &m, sizeof m);
	}
	result(what, r);
}

static void command(char *line) {
	char word[32] = "";
	int used = 0;
	sscanf(line, "%31s %n", word, &used);
	char *rest = line + used;
	if (!strcmp(word, "opt")) {
		if (nopts < MAX_OPTS)
			opts[nopts++] = must(strdup(rest));
	} else if (!strcmp(word, "listen")) {
		char *end;
		unsigned long port = strtoul(rest, &end, 10);
		do_listen(port, end + (*end == ' '));
	} else if (!strcmp(word, "connect")) {
		char from[128], to[512];
		unsigned port, udp;
		if (sscanf(rest, "%127s %u %u %511s", from, &port, &udp, to) == 4)
			do_connect(from, port, udp, to);
		else
			say("error connect FROM TO UDP ADDR");
	} else if (!strcmp(word, "quit")) {
		_exit(0);
	} else if (!strcmp(word, "mode")) {
		a.sink = !strcmp(rest, "sink");
		say("ok");
	} else if (!strcmp(word, "stat")) {
		counters("stat");
	} else if (!a.open) {
		say("error no association for %s", word);
	} else if (!strcmp(word, "send")) {
		do_send(rest);
	} else if (!strcmp(word, "await")) {
		uint64_t n = strtoull(rest, NULL, 10);
		pthread_mutex_lock(&a.mu);
		int there = a.msgs >= n;
		a.await = there ? 0 : n;
		pthread_mutex_unlock(&a.mu);
		if (there)
			counters("got");
	} else if (!strcmp(word, "shutdown")) {
		int r = s_shutdown(a.s);
		result(word, r < 0 && errno == ENOTCONN ? 0 : r); // the other end was faster
	} else if (!strcmp(word, "abort")) {
		int r = s_abort(a.s, rest);
		if (r > 0) { // by closing it, which a receiver in the kernel holds up
			a.closing = 1;
			while (a.open) {
				pthread_kill(a.receiver, SIGUSR1);
				usleep(1000);
			}
			r = 0;
		}
		result(word, r);
	} else if (!strcmp(word, "reset")) {
		do_reset(rest);
	} else if (!strcmp(word, "resetassoc")) {
#ifdef PEER_USRSCTP
		sctp_assoc_t id = SCTP_FUTURE_ASSOC;
#else
		struct sctp_status st = {0};
		socklen_t n = sizeof st;
		s_get(a.s, IPPROTO_SCTP, SCTP_STATUS, &st, &n);
		sctp_assoc_t id = st.sstat_assoc_id;
#endif
		result(word, s_request(SCTP_RESET_ASSOC, &id, sizeof id));
	} else if (!strcmp(word, "add")) {
		unsigned out = 0, in = 0;
		sscanf(rest, "%u %u", &out, &in);
		struct sctp_add_streams m = {.sas_outstrms = out, .sas_instrms = in};
		result(word, s_request(SCTP_ADD_STREAMS, &m, sizeof m));
	} else {
		do_address(word, rest);
	}
}

static void commands(void) {
	static char line[4096];
	setvbuf(stdin, NULL, _IOLBF, 4096);
	a.part = must(calloc(2 * MAX_STREAMS, sizeof *a.part));
	a.next_in = must(calloc(MAX_STREAMS, sizeof *a.next_in));
	a.next_out = must(calloc(MAX_STREAMS, sizeof *a.next_out));
	say("ready");
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\r\n")] = 0;
		command(line);
	}
	_exit(0);
}

static int control(uint16_t port) {
	int l = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(l, (struct sockaddr *)&sin, sizeof sin) < 0 || listen(l, 5) < 0) {
		perror("control");
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	say("control ready");
	for (;;) {
		int c = accept(l, NULL, NULL);
		if (c < 0)
			continue;
		if (fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			close(l);
			dup2(c, 0);
			dup2(c, 1);
			close(c);
			commands();
		}
		close(c);
	}
}

static void interrupt(int sig) { (void)sig; }

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: %s udp|control PORT\n", argv[0]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	struct sigaction sa = {.sa_handler = interrupt}; // a system call ends then
	sigaction(SIGUSR1, &sa, NULL);
	pattern_init();
	if (!strcmp(argv[1], "control"))
		return control(atoi(argv[2]));
	stack_init(atoi(argv[2]));
	commands();
	return 0;
}
