// What programs do with their process: children, signals, sleeping, exit handlers.
// cabi: ranks=1,2
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOLDS(x) CHECK(x, "does not hold")

static volatile sig_atomic_t caught;
static int left;

static void on_signal(int sig) { caught = sig; }
static void on_exit_(void)
{
	int flag = 0;
	MPI_Finalized(&flag);
	if (!flag || !left)
		_exit(9);
}

int main(int argc, char **argv)
{
	atexit(on_exit_);
	MUST(MPI_Init(&argc, &argv));

	CHECK(system("exit 3") == 3 << 8, "system");
	FILE *p = popen("echo hello", "r");
	char line[16] = "";
	HOLDS(p && fgets(line, sizeof line, p) && strcmp(line, "hello\n") == 0);
	HOLDS(pclose(p) == 0);
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(5);
	HOLDS(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5);

	int sigs[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, SIGALRM};
	for (unsigned i = 0; i < sizeof sigs / sizeof *sigs; i++) {
		signal(sigs[i], on_signal);
		raise(sigs[i]);
		CHECK(caught == sigs[i], "signal %d: caught %d", sigs[i], (int)caught);
		signal(sigs[i], SIG_DFL);
	}
	struct sigaction pipe;
	HOLDS(sigaction(SIGURG, NULL, &pipe) == 0);

	/* Nothing interrupts a system call. */
	for (int i = 0; i < 20; i++) {
		struct timespec t = {0, 5000000};
		HOLDS(nanosleep(&t, NULL) == 0);
	}
	left = 1;
	done();
	MUST(MPI_Finalize());
	return 0;
}
