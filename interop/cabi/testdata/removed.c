// Names of MPI-1 that MPI-3.0 has removed: mpi.h has them for old programs.
// cabi: ranks=1,2 transports=shm
#include "check.h"

static int errors;

static void handler(MPI_Comm *comm, int *code, ...) { errors++; }

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));

	struct {
		char c;
		double d[2];
		int i;
	} mine = {'a', {1.5, rank}, 7}, other = {0};
	MPI_Aint start, displacements[3], extent, lb, ub;
	int lengths[3] = {1, 2, 1};
	MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, type, vector, indexed;
	MUST(MPI_Address(&mine, &start));
	MUST(MPI_Address(&mine.c, &displacements[0]));
	MUST(MPI_Address(&mine.d, &displacements[1]));
	MUST(MPI_Address(&mine.i, &displacements[2]));
	for (int i = 0; i < 3; i++)
		displacements[i] -= start;
	MUST(MPI_Type_struct(3, lengths, displacements, types, &type));
	MUST(MPI_Type_commit(&type));
	MUST(MPI_Type_extent(type, &extent));
	MUST(MPI_Type_lb(type, &lb));
	MUST(MPI_Type_ub(type, &ub));
	CHECK(extent == sizeof mine && lb == 0 && ub == extent, "extent %ld from %ld to %ld", (long)extent, (long)lb, (long)ub);
	MUST(MPI_Sendrecv(&mine, 1, type, (rank + 1) % size, 0, &other, 1, type, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(other.c == 'a' && other.d[0] == 1.5 && other.d[1] == (rank + size - 1) % size && other.i == 7, "%c %g %g %d came",
		other.c, other.d[0], other.d[1], other.i);
	MUST(MPI_Type_hvector(2, 1, 12, MPI_INT, &vector));
	MUST(MPI_Type_hindexed(2, lengths, displacements, MPI_INT, &indexed));
	MUST(MPI_Type_extent(vector, &extent));
	CHECK(extent == 16, "a vector of extent %ld, want 16", (long)extent);
	MUST(MPI_Type_ub(indexed, &ub));
	CHECK(ub == displacements[1] + 8, "an upper bound of %ld, want %ld", (long)ub, (long)displacements[1] + 8);
	MUST(MPI_Type_free(&type));
	MUST(MPI_Type_free(&vector));
	MUST(MPI_Type_free(&indexed));

	MPI_Errhandler mine_too, now;
	MUST(MPI_Errhandler_create(handler, &mine_too));
	MUST(MPI_Errhandler_set(MPI_COMM_WORLD, mine_too));
	MUST(MPI_Errhandler_get(MPI_COMM_WORLD, &now));
	CHECK(now == mine_too, "the error handler is another");
	MPI_Send(NULL, 0, MPI_INT, size, 0, MPI_COMM_WORLD);
	CHECK(errors == 1, "the error handler was called %d times", errors);
	MPI_Type_extent(MPI_INT, NULL);
	MPI_Type_lb(MPI_INT, NULL);
	MPI_Type_ub(MPI_INT, NULL);
	CHECK(errors == 4, "the error handler was called %d times for results at NULL", errors - 1);
	MUST(MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
	MUST(MPI_Errhandler_free(&mine_too));
	MUST(MPI_Errhandler_free(&now));
	done();
	MUST(MPI_Finalize());
	return 0;
}
