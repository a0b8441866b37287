#include "peer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void say(const char *format, ...) {
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

void *must(void *p) {
	if (!p) {
		say("fatal out of memory");
		_exit(1);
	}
	return p;
}
