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
//	sender                say whether the thread that sends runs (R) or waits (S)
//	await N               say "got …" when N messages have been received
//	stat | paths          what there is now
//	usekey N                                          of those set as options
//	reset out|in SID… | resetassoc | add OUT IN
//	addaddr ADDR | deladdr ADDR | peerprimary ADDR PORT    for our addresses
//	primary ADDR PORT | heartbeat ADDR PORT                for those of the other end
//	shutdown | abort [TEXT] | quit
//
// Answers and events are lines too. A message that send makes tells its place
// in the stream and its length, and sink checks both and every byte.

#include "peer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
	for (int try = 0; try < 12000 && (r = s_set(a.s, IPPROTO_SCTP, opt, v, n)) < 0 && (errno == EBUSY || errno == EAGAIN); try++)
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

// on_association does a command that needs one.
static void on_association(const char *word, char *rest) {
	if (!strcmp(word, "shutdown")) {
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
	} else if (!strcmp(word, "usekey")) {
		struct sctp_authkeyid m = {.scact_keynumber = atoi(rest)};
		result(word, s_set(a.s, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &m, sizeof m));
	} else if (!strcmp(word, "add")) {
		unsigned out = 0, in = 0;
		sscanf(rest, "%u %u", &out, &in);
		struct sctp_add_streams m = {.sas_outstrms = out, .sas_instrms = in};
		result(word, s_request(SCTP_ADD_STREAMS, &m, sizeof m));
	} else {
		do_address(word, rest);
	}
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
	} else if (!strcmp(word, "sender")) {
		state_of_sender();
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
	} else if (hold()) {
		on_association(word, rest);
		release();
	} else if (!strcmp(word, "shutdown")) {
		say("ok"); // the other end was faster
	} else {
		say("error no association for %s", word);
	}
}

static void commands(void) {
	static char line[4096];
	setvbuf(stdin, NULL, _IOLBF, 4096);
	assoc_init();
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
