// A session that has ended before MPI_Init lets others begin after MPI_Finalize.
// cabi: ranks=1,3
#include "check.h"

static void use(MPI_Session s)
{
	MPI_Group g;
	MPI_Comm c;
	int size, one = 1, sum = -1;

	MUST(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
	MUST(MPI_Comm_create_from_group(g, "weft.before", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	MUST(MPI_Comm_size(c, &size));
	MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
	CHECK(sum == size, "sum %d", sum);
	MUST(MPI_Comm_free(&c));
	MUST(MPI_Group_free(&g));
}

int main(int argc, char **argv)
{
	MPI_Session s;
	int rank;

	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	use(s);
	MUST(MPI_Session_finalize(&s));
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Finalize());
	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	use(s);
	MUST(MPI_Session_finalize(&s));
	if (rank == 0)
		puts("ok");
	return 0;
}
