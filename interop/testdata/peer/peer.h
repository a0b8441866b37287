// What the files of the peer share.

#ifndef PEER_H
#define PEER_H

#include "api.h"

#include <pthread.h>

#define MAX_STREAMS 65536
#define MAX_ADDRS 8
#define MAX_OPTS 64

// say prints a line. must ends the program if memory has run out.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *must(void *p);

// fill makes message seq of a stream; check returns what is wrong with one.
void pattern_init(void);
void fill(uint8_t *p, size_t n, uint32_t seq);
const char *check(const uint8_t *p, size_t n);
uint32_t get32(const uint8_t *p);

struct partial { // a message whose end has not come
	uint8_t *p;
	size_t n, room;
};

// The association. There is one at a time.
extern struct association {
	sock s;
	pthread_t receiver;
	int open, users, senders; // users of s, and which of them send; guarded by mu
	int sink, closing;
	uint64_t msgs, bytes, bad, unordered, gaps, await;
	struct partial *part; // by stream and order, 2 * MAX_STREAMS
	uint32_t *next_in;    // by stream: the sequence number expected
	uint32_t *next_out;   // by stream
	pthread_mutex_t mu;
	pthread_cond_t unused;
} a;

void assoc_init(void);
void begin(sock s);
// hold keeps the socket of the association open until release; without one it
// returns 0.
int hold(void);
void release(void);
void counters(const char *what);
void restart_numbers(void);
void notification(const uint8_t *p, size_t n);

extern char *opts[MAX_OPTS];
extern int nopts;
void option(sock s, const char *line);

extern union address_list {
	struct sockaddr sa;
	char room[MAX_ADDRS * sizeof(struct sockaddr_in6)];
} addrs;

int addresses(char *list, uint16_t port, struct sockaddr *out);
void do_listen(uint16_t port, char *list);
void do_connect(char *from, uint16_t to, unsigned udp, char *list);
void do_send(char *args);
void state_of_sender(void);

#endif
