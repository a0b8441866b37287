//go:build linux && cgo

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* The monitor of the Go runtime (sysmon) wakes up every 20 microseconds, which the timer slack of a thread
   makes 70, while a thread of the program that has called MPI runs code of its own for longer than 10 ms:
   the runtime takes that for a system call. Each time it takes the processor from a thread that computes,
   together 5 % of the time of a rank. A larger slack lets it wake up less often. No other thread of the library
   gets it. The price: a thread of the program waits that much longer for a processor of the runtime, if others
   have them all. */
enum { MONITOR_SLACK = 500000 }; /* nanoseconds */

/* The runtime makes its first thread when the library is loaded, and that one makes the monitor first. */
enum { MONITOR = 1 };

struct start {
	void *(*function)(void *);
	void *argument;
};

static void *start_monitor(void *p)
{
	struct start s = *(struct start *)p;
	free(p);
	prctl(PR_SET_TIMERSLACK, MONITOR_SLACK, 0, 0, 0);
	return s.function(s.argument);
}

__attribute__((weak)) int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* The linker puts this in the place of pthread_create in the library (--wrap). */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *), void *argument)
{
	static int created;
	struct start *s;
	if (__atomic_load_n(&created, __ATOMIC_RELAXED) > MONITOR ||
	    __atomic_fetch_add(&created, 1, __ATOMIC_RELAXED) != MONITOR || !(s = malloc(sizeof *s)))
		return __real_pthread_create(thread, attr, function, argument);
	*s = (struct start){function, argument};
	int err = __real_pthread_create(thread, attr, start_monitor, s);
	if (err != 0) {
		free(s);
		__atomic_fetch_sub(&created, 1, __ATOMIC_RELAXED); /* the runtime tries again */
	}
	return err;
}
