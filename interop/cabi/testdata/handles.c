// Handles of many objects, alive at once and one after the other: those that are freed are refused, and
// ranks and sizes are those of the handle that is asked for.
// cabi: ranks=1,3 transports=shm
#include "check.h"

enum { ALIVE = 3000, ROUNDS = 1000 };

int main(int argc, char **argv)
{
	static MPI_Datatype types[ALIVE];
	int rank, size, n;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

	for (int i = 0; i < ALIVE; i++)
		MUST(MPI_Type_contiguous(i, MPI_SHORT, &types[i]));
	for (int i = 0; i < ALIVE; i++) {
		MPI_Count large = -1;
		MUST(MPI_Type_size(types[i], &n));
		MUST(MPI_Type_size_c(types[i], &large));
		CHECK(n == 2 * i && large == 2 * i, "type %d has %d or %ld bytes", i, n, (long)large);
		CHECK(MPI_Type_f2c(MPI_Type_c2f(types[i])) == types[i], "type %d differs after a way through Fortran", i);
	}
	MPI_Datatype old = types[7];
	MUST(MPI_Type_free(&types[7]));
	CHECK(types[7] == MPI_DATATYPE_NULL, "a type that is freed is not null");
	FAILS(MPI_ERR_TYPE, MPI_Type_size(old, &n));
	MUST(MPI_Type_contiguous(5, MPI_CHAR, &types[7]));
	FAILS(MPI_ERR_TYPE, MPI_Type_size(old, &n));
	MUST(MPI_Type_size(types[7], &n));
	CHECK(n == 5, "a new type has %d bytes, want 5", n);
	for (int i = 0; i < ALIVE; i++)
		MUST(MPI_Type_free(&types[i]));

	MPI_Comm previous = MPI_COMM_NULL;
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm comm;
		int key = i % 2 ? rank : -rank, want = i % 2 ? rank : size - 1 - rank;
		if (i % 50 == 0) {
			MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm));
		} else {
			MUST(MPI_Comm_dup(MPI_COMM_SELF, &comm));
			want = 0;
		}
		MUST(MPI_Comm_rank(comm, &n));
		CHECK(n == want, "round %d: rank %d, want %d", i, n, want);
		MUST(MPI_Comm_size(comm, &n));
		CHECK(n == (i % 50 == 0 ? size : 1), "round %d: %d ranks", i, n);
		if (previous != MPI_COMM_NULL && previous != comm)
			FAILS(MPI_ERR_COMM, MPI_Comm_rank(previous, &n));
		previous = comm;
		MUST(MPI_Comm_free(&comm));
		FAILS(MPI_ERR_COMM, MPI_Comm_size(previous, &n));
	}

	FAILS(MPI_ERR_COMM, MPI_Comm_rank(MPI_COMM_NULL, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank((MPI_Comm)0, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank((MPI_Comm)&n, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank((MPI_Comm)MPI_INT, &n));
	FAILS(MPI_ERR_TYPE, MPI_Type_size((MPI_Datatype)MPI_COMM_WORLD, &n));
	FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &n));
	FAILS(MPI_ERR_ARG, MPI_Type_size(MPI_INT, NULL));
	FAILS(MPI_ERR_ARG, MPI_Initialized(NULL));
	done();
	MUST(MPI_Finalize());
	return 0;
}
