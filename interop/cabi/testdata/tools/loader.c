/* A program that is not linked with MPI loads it when it runs, with its names hidden from other
   libraries: as interpreters with a module for MPI do. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void *symbol(void *library, const char *name)
{
	void *s = dlsym(library, name);
	if (s == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return s;
}

#define CALL(name, ...) ((__typeof__(&name))symbol(library, #name))(__VA_ARGS__)

int main(int argc, char **argv)
{
	void *library = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int rank = -1, size = 0, sum = 0;
	if (CALL(MPI_Init, &argc, &argv) != MPI_SUCCESS || CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
		CALL(MPI_Comm_size, MPI_COMM_WORLD, &size) != MPI_SUCCESS)
		return 2;
	if (CALL(MPI_Allreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS || sum != size * (size - 1) / 2)
		return 3;
	if (CALL(MPI_Finalize) != MPI_SUCCESS)
		return 4;
	/* The library stays: its threads cannot be unloaded. */
	if (dlclose(library) != 0 || dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL)
		return 5;
	if (rank == 0)
		printf("ok\n");
	return 0;
}
