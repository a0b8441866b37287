// The socket API of the SCTP stack of the Linux kernel, without a library.

#include "api.h"

#ifndef PEER_USRSCTP

#include <string.h>
#include <unistd.h>

void stack_init(uint16_t udp_port) { (void)udp_port; } // a sysctl sets it

static socklen_t size_of(const struct sockaddr *addrs, int n) {
	socklen_t total = 0;
	for (int i = 0; i < n; i++) {
		const struct sockaddr *a = (const struct sockaddr *)((const char *)addrs + total);
		total += a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	}
	return total;
}

int s_socket(int family, sock *s) {
	*s = socket(family, SOCK_STREAM, IPPROTO_SCTP);
	if (*s < 0)
		return -1;
	int on = 1;
	setsockopt(*s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	return s_set(*s, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
}

int s_bind(sock s, struct sockaddr *addrs, int n) {
	if (n == 1)
		return bind(s, addrs, size_of(addrs, 1));
	return s_addrs(s, addrs, n, 1);
}

int s_addrs(sock s, struct sockaddr *addrs, int n, int add) {
	return setsockopt(s, IPPROTO_SCTP, add ? SCTP_SOCKOPT_BINDX_ADD : SCTP_SOCKOPT_BINDX_REM, addrs, size_of(addrs, n));
}

int s_listen(sock s) { return listen(s, 5); }

int s_accept(sock s, sock *a) {
	*a = accept(s, NULL, NULL);
	return *a < 0 ? -1 : 0;
}

int s_connect(sock s, struct sockaddr *addrs, int n) {
	return setsockopt(s, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, addrs, size_of(addrs, n)) < 0 ? -1 : 0;
}

int s_set(sock s, int level, int opt, const void *v, socklen_t n) { return setsockopt(s, level, opt, v, n); }

int s_get(sock s, int level, int opt, void *v, socklen_t *n) { return getsockopt(s, level, opt, v, n); }

ssize_t s_send(sock s, const void *p, size_t n, const struct info *i) {
	static const uint16_t policies[] = {SCTP_PR_SCTP_NONE, SCTP_PR_SCTP_TTL, SCTP_PR_SCTP_RTX, SCTP_PR_SCTP_PRIO};
	struct sctp_sndinfo info = {.snd_sid = i->sid, .snd_ppid = htonl(i->ppid)};
	if (i->unordered)
		info.snd_flags |= SCTP_UNORDERED;
	if (i->immediate)
		info.snd_flags |= SCTP_SACK_IMMEDIATELY;
	struct sctp_prinfo pr = {.pr_policy = policies[i->pr], .pr_value = i->pr_value};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof info) + CMSG_SPACE(sizeof pr)] = {0};
	struct iovec vec = {(void *)p, n};
	struct msghdr m = {.msg_iov = &vec, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof info);
	memcpy(CMSG_DATA(c), &info, sizeof info);
	if (i->pr != PR_NONE) {
		c = CMSG_NXTHDR(&m, c);
		c->cmsg_level = IPPROTO_SCTP;
		c->cmsg_type = SCTP_PRINFO;
		c->cmsg_len = CMSG_LEN(sizeof pr);
		memcpy(CMSG_DATA(c), &pr, sizeof pr);
	} else {
		m.msg_controllen = CMSG_SPACE(sizeof info);
	}
	return sendmsg(s, &m, MSG_NOSIGNAL);
}

ssize_t s_recv(sock s, void *p, size_t n, struct info *i) {
	_Alignas(struct cmsghdr) char control[256];
	struct iovec vec = {p, n};
	struct msghdr m = {.msg_iov = &vec, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	ssize_t got = recvmsg(s, &m, 0);
	memset(i, 0, sizeof *i);
	if (got < 0)
		return got;
	i->notification = (m.msg_flags & MSG_NOTIFICATION) != 0;
	i->eor = (m.msg_flags & MSG_EOR) != 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != IPPROTO_SCTP || c->cmsg_type != SCTP_RCVINFO)
			continue;
		struct sctp_rcvinfo r;
		memcpy(&r, CMSG_DATA(c), sizeof r);
		i->sid = r.rcv_sid;
		i->ppid = ntohl(r.rcv_ppid);
		i->unordered = (r.rcv_flags & SCTP_UNORDERED) != 0;
	}
	return got;
}

int s_shutdown(sock s) { return shutdown(s, SHUT_WR); }

// One-to-one sockets do not take SCTP_ABORT.
int s_abort(sock s, const char *why) {
	(void)why;
	struct linger l = {.l_onoff = 1};
	return setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof l) < 0 ? -1 : 1;
}

void s_close(sock s) { close(s); }

#endif
