// Shared windows: memory of all ranks by loads and stores, with gaps and without; what other windows share.
// cabi: ranks=1,2,4
#include "check.h"
#include <stdint.h>

static int rank, size;

static void shared(const char *noncontig)
{
	int n = 10 + rank, unit, r, i;
	double *mem, *theirs, *before = NULL;
	MPI_Aint bytes;
	MPI_Info info;
	MPI_Win win;

	MUST(MPI_Info_create(&info));
	MUST(MPI_Info_set(info, "alloc_shared_noncontig", noncontig));
	MUST(MPI_Win_allocate_shared(n * sizeof *mem, sizeof *mem, info, MPI_COMM_WORLD, &mem, &win));
	MUST(MPI_Info_free(&info));
	MUST(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
	for (i = 0; i < n; i++)
		mem[i] = 100 * rank + i;
	MUST(MPI_Win_sync(win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_sync(win));
	for (r = 0; r < size; r++) {
		MUST(MPI_Win_shared_query(win, r, &bytes, &unit, &theirs));
		CHECK(bytes == (10 + r) * 8 && unit == 8, "%ld bytes of rank %d, unit %d", (long)bytes, r, unit);
		CHECK(r != rank || theirs == mem, "own memory at %p, not %p", (void *)theirs, (void *)mem);
		if (before && strcmp(noncontig, "true"))
			CHECK(theirs == before, "memory of rank %d at %p, not %p", r, (void *)theirs, (void *)before);
		before = theirs + 10 + r;
		for (i = 0; i < 10 + r; i++)
			CHECK(theirs[i] == 100 * r + i, "rank %d, %d: %g", r, i, theirs[i]);
	}
	MUST(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs));
	CHECK(bytes == 80 && *theirs == 0, "%ld bytes of the first rank", (long)bytes);
	/* Operations and stores in the same memory. */
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	double one = 1;
	for (r = 0; r < size; r++)
		MUST(MPI_Accumulate(&one, 1, MPI_DOUBLE, r, 3, 1, MPI_DOUBLE, MPI_SUM, win));
	MUST(MPI_Win_flush_all(win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_sync(win));
	CHECK(mem[3] == 100 * rank + 3 + size, "%g", mem[3]);
	MUST(MPI_Win_unlock_all(win));
	MUST(MPI_Win_free(&win));
}

/* Only the last rank has memory; the others find it by MPI_PROC_NULL. */
static void one(void)
{
	int *mem, *theirs, unit;
	MPI_Aint bytes;
	MPI_Win win;

	MUST(MPI_Win_allocate_shared(rank == size - 1 ? 4 * size : 0, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	MUST(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs));
	CHECK(bytes == 4 * size && unit == 4, "%ld bytes, unit %d", (long)bytes, unit);
	MUST(MPI_Win_fence(0, win));
	theirs[rank] = rank + 1;
	MUST(MPI_Win_fence(0, win));
	if (rank == size - 1)
		for (int r = 0; r < size; r++)
			CHECK(mem[r] == r + 1, "rank %d has stored %d", r, mem[r]);
	MUST(MPI_Win_free(&win));
	MUST(MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	MUST(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs));
	CHECK(bytes == 0, "%ld bytes", (long)bytes);
	MUST(MPI_Win_free(&win));
}

/* A window of memory of its own says what can be reached directly; a dynamic one cannot be asked. */
static void others(void)
{
	int *mem, *theirs, r, unit;
	MPI_Aint bytes;
	MPI_Win win;

	MUST(MPI_Win_allocate(400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	CHECK((uintptr_t)mem % 64 == 0, "memory at %p", (void *)mem);
	MUST(MPI_Win_fence(0, win));
	mem[5] = rank;
	MUST(MPI_Win_fence(0, win));
	for (r = 0; r < size; r++) {
		MUST(MPI_Win_shared_query(win, r, &bytes, &unit, &theirs));
		CHECK(unit == 4 && (bytes == 400 ? theirs[5] == r : bytes == 0 && theirs == NULL && r != rank),
		      "%ld bytes of rank %d at %p", (long)bytes, r, (void *)theirs);
	}
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Win_free(&win));
	MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(win, 0, &bytes, &unit, &theirs));
	MUST(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
	MPI_Comm node;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
	MUST(MPI_Comm_free(&node));
	shared("false");
	shared("true");
	one();
	others();
	done();
	MUST(MPI_Finalize());
	return 0;
}
