// Sessions one after the other, around MPI_Init and MPI_Finalize, and after it.
// cabi: ranks=1,2,4
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

static void use(MPI_Session s, int round)
{
	MPI_Group g;
	MPI_Comm c;
	int rank, size, sum = -1;

	MUST(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
	MUST(MPI_Comm_create_from_group(g, "weft.again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	MUST(MPI_Comm_rank(c, &rank));
	MUST(MPI_Comm_size(c, &size));
	rank += round;
	MUST(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK(sum == size * (size - 1) / 2 + round * size, "sum %d", sum);
	MUST(MPI_Comm_free(&c));
	MUST(MPI_Group_free(&g));
}

int main(int argc, char **argv)
{
	MPI_Session s, t;
	int rank, status;

	for (int i = 0; i < 3; i++) {
		MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
		use(s, i);
		MUST(MPI_Session_finalize(&s));
	}
	pid_t pid = fork(); // the child does not leave the job for its parent
	if (pid == 0)
		exit(7);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %d", status);
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	use(s, 4);
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Finalize());
	use(s, 5);
	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &t));
	MUST(MPI_Session_finalize(&s));
	use(t, 6);
	MUST(MPI_Session_finalize(&t));
	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &t));
	use(t, 7);
	MUST(MPI_Session_finalize(&t));
	if (rank == 0)
		puts("ok");
	return 0;
}
