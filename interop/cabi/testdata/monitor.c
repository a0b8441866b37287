// The monitor thread of the Go runtime has a timer slack of half a millisecond; other threads of the library, and those
// of the program, have what they would have without it.
// cabi: ranks=1 transports=shm flags=-pthread
#include "check.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

enum { SLACK = 500000, TRIES = 10000 };

static long usual;

static void *slack_of_thread(void *unused)
{
	(void)unused;
	return (void *)(long)prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

/* Counts the threads with the slack of the monitor, and the others, and reports whether it may read it. */
static int count(int *monitors, int *others)
{
	DIR *d = opendir("/proc/self/task");
	int may = 1;
	CHECK(d != NULL, "no threads");
	*monitors = *others = 0;
	for (struct dirent *e; may && (e = readdir(d));) {
		char name[300];
		long ns;
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "/proc/%s/timerslack_ns", e->d_name);
		FILE *f = fopen(name, "r");
		if (f != NULL && fscanf(f, "%ld", &ns) == 1) {
			CHECK(ns == usual || ns == SLACK, "thread %s: %ld ns", e->d_name, ns);
			++*(ns == SLACK ? monitors : others);
		} else {
			may = errno != EPERM && errno != EACCES; /* it needs CAP_SYS_NICE; a thread may have ended */
		}
		if (f != NULL)
			fclose(f);
	}
	closedir(d);
	return may;
}

int main(int argc, char **argv)
{
	int monitors = 0, others = 0, may = 1;
	pthread_t thread;
	void *slack;
	usual = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	MUST(MPI_Init(&argc, &argv));
	CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == usual && usual < SLACK, "%ld ns", usual);
	CHECK(pthread_create(&thread, NULL, slack_of_thread, NULL) == 0 && pthread_join(thread, &slack) == 0, "no thread");
	CHECK((long)slack == usual, "a thread of the program has %ld ns, want %ld", (long)slack, usual);
	for (int i = 0; i < TRIES && may && monitors == 0; i++) { /* on a busy host the monitor begins late */
		may = count(&monitors, &others);
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	CHECK(!may || (monitors == 1 && others >= 2), "%d threads with the slack of the monitor, %d without", monitors, others);
	done();
	MUST(MPI_Finalize());
	return 0;
}
