// System calls of the program are not interrupted by the library, its signal handlers are called, and
// those that it had set before MPI_Init are still set.
// cabi: ranks=2 flags=-pthread
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t alarms, users;
static volatile int stop;

static void on_alarm(int s) { alarms++; }
static void on_user(int s) { users++; }

/* Keeps the library busy meanwhile. */
static void *talk(void *arg)
{
	int rank;
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	char *buffer = malloc(1 << 18);
	int more = 1;
	while (more) {
		int mine = !stop;
		MUST(MPI_Sendrecv_replace(buffer, 1 << 18, MPI_BYTE, 1 - rank, 1, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		MUST(MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, 2, &more, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		more = more && mine;
	}
	free(buffer);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided;
	struct sigaction user = {.sa_handler = on_user}, now;
	sigaction(SIGUSR1, &user, NULL);
	MUST(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	sigaction(SIGUSR1, NULL, &now);
	CHECK(now.sa_handler == on_user, "MPI_Init has replaced the handler of SIGUSR1");

	pthread_t other;
	CHECK(pthread_create(&other, NULL, talk, NULL) == 0, "no thread");
	for (int i = 0; i < 20; i++) {
		struct timespec t = {0, 10000000};
		CHECK(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
		CHECK(poll(NULL, 0, 10) == 0, "poll: %s", strerror(errno));
		struct timeval v = {0, 10000};
		CHECK(select(0, NULL, NULL, NULL, &v) == 0, "select: %s", strerror(errno));
	}

	struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &alarm, NULL);
	struct itimerval every = {{0, 2000}, {0, 2000}};
	setitimer(ITIMER_REAL, &every, NULL);
	while (alarms < 20)
		;
	/* Calls are interrupted by signals of the program, and go on. */
	stop = 1;
	pthread_join(other, NULL);
	memset(&every, 0, sizeof every);
	setitimer(ITIMER_REAL, &every, NULL);
	raise(SIGUSR1);
	CHECK(users == 1, "the handler of SIGUSR1 was called %d times", (int)users);
	done();
	MUST(MPI_Finalize());
	return 0;
}
