// The part of the RFC 6458 socket API that the peer uses, the same for each
// SCTP stack: usrsctp.c and linux.c implement it.

#ifndef PEER_API_H
#define PEER_API_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef PEER_USRSCTP
#include <usrsctp.h>
// Missing from the installed header although the library has it.
#ifndef SCTP_INTERLEAVING_SUPPORTED
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif
typedef struct socket *sock;
#else
#include <linux/sctp.h>
typedef int sock;
#endif

// Partial reliability policies by number: none, time, retransmissions, priority.
enum { PR_NONE, PR_TTL, PR_RTX, PR_PRIO };

// What goes with a message in either direction.
struct info {
	uint16_t sid;
	uint32_t ppid;
	int unordered, immediate;
	int pr;
	uint32_t pr_value;
	int notification, eor; // received only
};

void stack_init(uint16_t udp_port);
// Each returns 0 or -1 with errno, unless said.
int s_socket(int family, sock *s);
int s_bind(sock s, struct sockaddr *addrs, int n); // n sockaddr_in or sockaddr_in6
int s_addrs(sock s, struct sockaddr *addrs, int n, int add);
int s_listen(sock s);
int s_accept(sock s, sock *a);
int s_connect(sock s, struct sockaddr *addrs, int n);
int s_set(sock s, int level, int opt, const void *v, socklen_t n);
int s_get(sock s, int level, int opt, void *v, socklen_t *n);
ssize_t s_send(sock s, const void *p, size_t n, const struct info *i); // bytes taken
ssize_t s_recv(sock s, void *p, size_t n, struct info *i);	       // bytes, 0 at the end
int s_shutdown(sock s);
int s_abort(sock s, const char *why); // 1: s_close will do it, without why
void s_close(sock s);

#endif
