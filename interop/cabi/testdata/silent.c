// A rank that exits without MPI_Finalize does not leave the others waiting.
// cabi: ranks=2 status=1
#include "check.h"

int main(int argc, char **argv)
{
	int rank;
	MPI_Comm c;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	if (rank == 1)
		exit(0);
	MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &c);
	return 0;
}
