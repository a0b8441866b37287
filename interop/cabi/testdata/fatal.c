// An error without another error handler ends all ranks, with its class as the exit status.
// cabi: ranks=1,2 status=13
#include "check.h"

int main(int argc, char **argv)
{
	MPI_Comm c;
	int rank;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	printf("before\n"); // is written
	if (rank == 0)
		MPI_Comm_split(MPI_COMM_WORLD, -7, 0, &c);
	MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &c); // the others wait for rank 0
	return 0;
}
