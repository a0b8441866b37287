// The association: what it receives.

#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct association a = {.mu = PTHREAD_MUTEX_INITIALIZER, .unused = PTHREAD_COND_INITIALIZER};

void assoc_init(void) {
	a.part = must(calloc(2 * MAX_STREAMS, sizeof *a.part));
	a.next_in = must(calloc(MAX_STREAMS, sizeof *a.next_in));
	a.next_out = must(calloc(MAX_STREAMS, sizeof *a.next_out));
}

int hold(void) {
	pthread_mutex_lock(&a.mu);
	int open = a.open;
	a.users += open;
	pthread_mutex_unlock(&a.mu);
	return open;
}

void release(void) {
	pthread_mutex_lock(&a.mu);
	a.users--;
	pthread_cond_signal(&a.unused);
	pthread_mutex_unlock(&a.mu);
}

// finish closes the socket when nobody uses it any more. Who waits to send on an
// association that has ended is told so; before an abort by closing it has not.
static void finish(sock s) {
	pthread_mutex_lock(&a.mu);
	a.open = 0;
	while (a.users > (a.closing ? a.senders : 0))
		pthread_cond_wait(&a.unused, &a.mu);
	pthread_mutex_unlock(&a.mu);
	s_close(s);
}

void counters(const char *what) {
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

void restart_numbers(void) {
	memset(a.next_in, 0, MAX_STREAMS * sizeof *a.next_in);
	memset(a.next_out, 0, MAX_STREAMS * sizeof *a.next_out);
}

static void *receive(void *arg) {
	(void)arg;
	sock s = a.s;
	size_t room = 256 << 10;
	uint8_t *buf = must(malloc(room));
	for (;;) {
		struct info i;
		ssize_t n = s_recv(s, buf, room, &i);
		if (n < 0 && errno == EINTR && !a.closing)
			continue;
		if (n <= 0) {
			int err = n < 0 ? errno : 0;
			finish(s);
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

void begin(sock s) {
	struct sctp_status st;
	socklen_t n = sizeof st;
	memset(&st, 0, sizeof st);
	if (s_get(s, IPPROTO_SCTP, SCTP_STATUS, &st, &n) < 0) {
		say("error status %s", strerror(errno));
		return;
	}
	for (int i = 0; i < 2 * MAX_STREAMS; i++)
		a.part[i].n = 0;
	restart_numbers();
	a.msgs = a.bytes = a.bad = a.gaps = a.unordered = a.await = 0;
	pthread_mutex_lock(&a.mu);
	a.s = s;
	a.closing = 0;
	a.open = 1;
	pthread_mutex_unlock(&a.mu);
	say("up out=%u in=%u", st.sstat_outstrms, st.sstat_instrms);
	pthread_create(&a.receiver, NULL, receive, NULL);
	pthread_detach(a.receiver);
}
