// The socket API of usrsctp, a stack in user space, over its own UDP socket.

#include "api.h"

#ifdef PEER_USRSCTP

#include <stdlib.h>
#include <string.h>

void stack_init(uint16_t udp_port) {
	usrsctp_init(udp_port, NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	usrsctp_sysctl_set_sctp_blackhole(0);
	// With 512 chunks queued behind a hole, usrsctp discards the I-DATA chunk
	// that would fill it, for ever.
	usrsctp_sysctl_set_sctp_max_chunks_on_queue(1 << 20);
}

static socklen_t size_of(const struct sockaddr *a) {
	return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int s_socket(int family, sock *s) {
	*s = usrsctp_socket(family, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	return *s ? 0 : -1;
}

int s_bind(sock s, struct sockaddr *addrs, int n) {
	if (n == 1)
		return usrsctp_bind(s, addrs, size_of(addrs));
	return usrsctp_bindx(s, addrs, n, SCTP_BINDX_ADD_ADDR);
}

int s_addrs(sock s, struct sockaddr *addrs, int n, int add) {
	return usrsctp_bindx(s, addrs, n, add ? SCTP_BINDX_ADD_ADDR : SCTP_BINDX_REM_ADDR);
}

int s_listen(sock s) { return usrsctp_listen(s, 5); }

int s_accept(sock s, sock *a) {
	*a = usrsctp_accept(s, NULL, NULL);
	return *a ? 0 : -1;
}

int s_connect(sock s, struct sockaddr *addrs, int n) {
	if (n == 1)
		return usrsctp_connect(s, addrs, size_of(addrs));
	return usrsctp_connectx(s, addrs, n, NULL);
}

int s_set(sock s, int level, int opt, const void *v, socklen_t n) {
	return usrsctp_setsockopt(s, level, opt, v, n);
}

int s_get(sock s, int level, int opt, void *v, socklen_t *n) {
	return usrsctp_getsockopt(s, level, opt, v, n);
}

ssize_t s_send(sock s, const void *p, size_t n, const struct info *i) {
	static const uint16_t policies[] = {SCTP_PR_SCTP_NONE, SCTP_PR_SCTP_TTL, SCTP_PR_SCTP_RTX, SCTP_PR_SCTP_BUF};
	struct sctp_sendv_spa spa = {.sendv_flags = SCTP_SEND_SNDINFO_VALID};
	spa.sendv_sndinfo.snd_sid = i->sid;
	spa.sendv_sndinfo.snd_ppid = htonl(i->ppid);
	spa.sendv_sndinfo.snd_flags = SCTP_EOR;
	if (i->unordered)
		spa.sendv_sndinfo.snd_flags |= SCTP_UNORDERED;
	if (i->immediate)
		spa.sendv_sndinfo.snd_flags |= SCTP_SACK_IMMEDIATELY;
	if (i->pr != PR_NONE) {
		spa.sendv_flags |= SCTP_SEND_PRINFO_VALID;
		spa.sendv_prinfo.pr_policy = policies[i->pr];
		spa.sendv_prinfo.pr_value = i->pr_value;
	}
	return usrsctp_sendv(s, p, n, NULL, 0, &spa, sizeof spa, SCTP_SENDV_SPA, 0);
}

ssize_t s_recv(sock s, void *p, size_t n, struct info *i) {
	struct sockaddr_in6 from;
	socklen_t from_len = sizeof from, info_len = sizeof(struct sctp_rcvinfo);
	struct sctp_rcvinfo r = {0};
	unsigned int type = 0;
	int flags = 0;
	ssize_t got = usrsctp_recvv(s, p, n, (struct sockaddr *)&from, &from_len, &r, &info_len, &type, &flags);
	memset(i, 0, sizeof *i);
	i->sid = r.rcv_sid;
	i->ppid = ntohl(r.rcv_ppid);
	i->unordered = (r.rcv_flags & SCTP_UNORDERED) != 0;
	i->notification = (flags & MSG_NOTIFICATION) != 0;
	i->eor = (flags & MSG_EOR) != 0;
	return got;
}

int s_shutdown(sock s) { return usrsctp_shutdown(s, SHUT_WR); }

int s_abort(sock s, const char *why) {
	struct sctp_sndinfo info = {.snd_flags = SCTP_ABORT};
	return usrsctp_sendv(s, why, strlen(why), NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0 ? -1 : 0;
}

void s_close(sock s) { usrsctp_close(s); }

#endif
