/* A receive that waits until a signal comes. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n;
	MPI_Init(&argc, &argv);
	alarm(1);
	MPI_Recv(&n, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE); /* line 10 */
	return 0;
}
