// A call after MPI_Finalize ends the process, but for those that are allowed.
// cabi: ranks=1 status=16
#include "check.h"

int main(int argc, char **argv)
{
	int n, m, flag;
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	MPI_Info info;
	MPI_Init(&argc, &argv);
	MPI_Finalize();
	if (MPI_Initialized(&flag) || !flag || MPI_Finalized(&flag) || !flag || MPI_Get_version(&n, &m) ||
		MPI_Get_library_version(text, &n) || MPI_Info_create(&info) || MPI_Info_set(info, "a", "b") || MPI_Info_free(&info) ||
		MPI_Error_string(MPI_ERR_COMM, text, &n))
		return 1;
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	return 0;
}
