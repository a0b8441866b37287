/* A tool that counts calls through the profiling interface (MPI-5.0, Chapter 15): a library that is
   loaded before libmpi_abi, with functions of its own for some names. */
#include <mpi.h>
#include <stdio.h>

static int sends, receives;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	sends++;
	return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	receives++;
	return PMPI_Recv(buf, count, datatype, source, tag, comm, status);
}

int MPI_Finalize(void)
{
	int rank;
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("tool: rank %d: %d sends, %d receives\n", rank, sends, receives);
	return PMPI_Finalize();
}
