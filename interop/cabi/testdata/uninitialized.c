// A call before MPI_Init ends the process.
// cabi: ranks=1 status=16
#include "check.h"

int main(int argc, char **argv)
{
	int n;
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	return 0;
}
