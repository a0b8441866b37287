// Messages that the peer makes.

#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct job {
	unsigned long count, size, streams, first;
	struct info i;
};

static volatile long sender; // the thread that sends, if there is one

// state_of_sender tells whether the one thread that sends runs, or sleeps, which
// with a stack in the kernel means that it waits for room.
void state_of_sender(void) {
	char path[64], text[256] = "", *p;
	snprintf(path, sizeof path, "/proc/self/task/%ld/stat", sender);
	FILE *f = sender ? fopen(path, "r") : NULL;
	if (f) {
		if (!fgets(text, sizeof text, f))
			text[0] = 0;
		fclose(f);
	}
	p = strrchr(text, ')');
	say("sender %c", p && p[1] ? p[2] : '-');
}

static void *sending(void *arg) {
	struct job *j = arg;
	uint8_t *p = must(malloc(j->size));
	unsigned long n = 0;
	sender = syscall(SYS_gettid);
	for (; n < j->count; n++) {
		j->i.sid = j->first + n % j->streams;
		fill(p, j->size, a.next_out[j->i.sid]++);
		ssize_t k = s_send(a.s, p, j->size, &j->i);
		if (k != (ssize_t)j->size) {
			say("error send %lu: %zd %s", n, k, strerror(errno));
			break;
		}
	}
	sender = 0;
	pthread_mutex_lock(&a.mu);
	a.senders--;
	pthread_mutex_unlock(&a.mu);
	release();
	say("sent %lu", n);
	free(p);
	free(j);
	return NULL;
}

void do_send(char *args) {
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
	if (!hold()) {
		say("error send: no association");
		free(j);
		return;
	}
	pthread_mutex_lock(&a.mu);
	a.senders++;
	pthread_mutex_unlock(&a.mu);
	pthread_t t;
	pthread_create(&t, NULL, sending, j);
	pthread_detach(t);
}
