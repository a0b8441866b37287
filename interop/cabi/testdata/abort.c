// MPI_Abort ends all ranks with a status, which is not 0 if the low eight bits of the code are. What was
// printed is written.
// cabi: ranks=1,2 status=1
#include "check.h"

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Comm c;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	printf("rank %d was here\n", rank);
	if (rank == size - 1)
		MPI_Abort(MPI_COMM_WORLD, 256);
	MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &c);
	return 0;
}
