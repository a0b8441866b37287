// Sockets: listening, connecting.

#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

union address_list addrs;

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
int addresses(char *list, uint16_t port, struct sockaddr *out) {
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

// family returns that of a socket for the first n addresses of addrs.
static int family(int n) {
	const char *p = addrs.room;
	for (int i = 0; i < n; i++) {
		if (((const struct sockaddr *)p)->sa_family == AF_INET6)
			return AF_INET6;
		p += sizeof(struct sockaddr_in);
	}
	return AF_INET;
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
		begin(s);
	}
}

void do_listen(uint16_t port, char *list) {
	char any[] = "0.0.0.0";
	int n = addresses(*list ? list : any, port, &addrs.sa);
	if (n <= 0 || configured(family(n), &listener) < 0)
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
		begin(t->s);
	}
	free(t);
	return NULL;
}

void do_connect(char *from, uint16_t to, unsigned udp, char *list) {
	char any[] = "0.0.0.0", *local = strchr(from, '@');
	if (local)
		*local++ = 0;
	int n = addresses(local ? local : any, atoi(from), &addrs.sa);
	sock s;
	if (n <= 0 || configured(family(n), &s) < 0)
		return;
	int bound = -1;
	for (int try = 0; try < 2400 && (bound = s_bind(s, &addrs.sa, n)) < 0 && errno == EADDRINUSE; try++)
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
