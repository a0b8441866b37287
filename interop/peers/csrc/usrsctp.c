// One end of a measurement of usrsctp over its UDP encapsulation.
//
//	usrsctp server LOAD SIZE UDP_PORT
//	usrsctp client LOAD SIZE UDP_PORT SERVER_UDP_PORT
//
// LOAD is bulk or trip. The server prints "ready". Each line on standard input
// is answered with the counters so far as JSON, and its end ends the program.

#include "common.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <usrsctp.h>

enum { PORT = 5000, BUFFER = 4 << 20 };

static int is_server, is_trip;
static size_t size;
static struct socket *sock;
static volatile unsigned long long bytes, msgs;
static pthread_mutex_t trip_lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what) {
	perror(what);
	exit(1);
}

static struct sockaddr_in loopback(int port) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return a;
}

static struct socket *make(int peer_udp) {
	struct socket *s = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (!s)
		die("socket");
	int on = 1, buffer = BUFFER;
	usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
	usrsctp_setsockopt(s, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
	usrsctp_setsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	struct sctp_udpencaps e = {.sue_port = htons(peer_udp)};
	e.sue_address.ss_family = AF_INET;
	if (usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &e, sizeof e) < 0)
		die("encapsulation");
	struct sockaddr_in a = loopback(is_server ? PORT : 0);
	if (usrsctp_bind(s, (struct sockaddr *)&a, sizeof a) < 0)
		die("bind");
	return s;
}

// put sends one message, get receives up to one message's bytes.
static void put(const char *p, size_t n) {
	struct sctp_sndinfo info = {.snd_flags = SCTP_EOR};
	while (n > 0) {
		ssize_t k = usrsctp_sendv(sock, p, n, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
		if (k <= 0)
			die("send");
		p += k;
		n -= k;
	}
}

static size_t get(char *p, size_t n) {
	size_t got = 0;
	while (got < n) {
		struct sctp_rcvinfo r;
		struct sockaddr_in from;
		socklen_t from_len = sizeof from, r_len = sizeof r;
		unsigned int type = 0;
		int flags = 0;
		ssize_t k = usrsctp_recvv(sock, p + got, n - got, (struct sockaddr *)&from, &from_len, &r, &r_len, &type, &flags);
		if (k <= 0)
			exit(0); // the other side has gone
		if (flags & MSG_NOTIFICATION)
			continue;
		got += k;
		bytes += k;
		if (flags & MSG_EOR)
			break;
	}
	msgs++;
	return got;
}

static void *work(void *unused) {
	char *buf = calloc(1, size);
	for (;;) {
		double start = now_s();
		if (is_server && !is_trip) {
			get(buf, size);
		} else if (is_server) {
			put(buf, get(buf, size));
		} else if (!is_trip) {
			put(buf, size);
		} else {
			put(buf, size);
			get(buf, size);
			pthread_mutex_lock(&trip_lock);
			trip_add((now_s() - start) * 1e6);
			pthread_mutex_unlock(&trip_lock);
		}
	}
	return NULL;
}

int main(int argc, char **argv) {
	if (argc < 5) {
		fprintf(stderr, "usage: usrsctp server|client bulk|trip SIZE UDP_PORT [SERVER_UDP_PORT]\n");
		return 2;
	}
	is_server = strcmp(argv[1], "server") == 0;
	is_trip = strcmp(argv[2], "trip") == 0;
	size = strtoul(argv[3], NULL, 10);
	int udp = atoi(argv[4]), peer = argc > 5 ? atoi(argv[5]) : 0;
	usrsctp_init(udp, NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	usrsctp_sysctl_set_sctp_max_chunks_on_queue(1 << 20);
	sock = make(peer);
	if (is_server) {
		if (usrsctp_listen(sock, 1) < 0)
			die("listen");
		printf("ready\n");
		fflush(stdout);
		struct socket *a = usrsctp_accept(sock, NULL, NULL);
		if (!a)
			die("accept");
		sock = a;
	} else {
		struct sockaddr_in a = loopback(PORT);
		if (usrsctp_connect(sock, (struct sockaddr *)&a, sizeof a) < 0)
			die("connect");
		printf("ready\n");
		fflush(stdout);
	}
	pthread_t worker;
	if (pthread_create(&worker, NULL, work, NULL))
		die("thread");
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		pthread_mutex_lock(&trip_lock);
		trip_sort();
		printf("{\"bytes\":%llu,\"msgs\":%llu,\"cpu\":%.6f,\"p50\":%.2f,\"p99\":%.2f,\"trips\":%zu}\n", bytes, msgs, cpu_s(), trip_at(0.5), trip_at(0.99), trips);
		trips = 0;
		pthread_mutex_unlock(&trip_lock);
		fflush(stdout);
	}
	_exit(0);
}
