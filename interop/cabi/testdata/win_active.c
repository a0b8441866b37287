// Windows on memory of malloc with fences, and with post, start, complete and wait: put, get and accumulate,
// displacement units that differ, promises, processes of MPI_PROC_NULL.
// cabi: ranks=1,2,4
#include "check.h"

static int rank, size;

static void fences(void)
{
	/* Each rank counts in units of its own: 4, 8, 4, 8 … bytes. */
	int unit = rank % 2 ? 8 : 4, n = 64, i, *mem = malloc(n * sizeof *mem), *got = malloc(n * sizeof *got);
	int right = (rank + 1) % size, left = (rank + size - 1) % size, runit = right % 2 ? 8 : 4;
	MPI_Win win;
	MPI_Aint *bytes;
	int *disp_unit, *flavor, *model, flag;
	void *base;

	MUST(MPI_Win_create(mem, n * sizeof *mem, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
	CHECK(flag && base == mem, "base %p of %p", base, (void *)mem);
	MUST(MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag));
	MUST(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &disp_unit, &flag));
	MUST(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
	MUST(MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag));
	CHECK(*bytes == n * 4 && *disp_unit == unit && *flavor == MPI_WIN_FLAVOR_CREATE && *model == MPI_WIN_UNIFIED,
	      "%ld bytes, unit %d, flavor %d, model %d", (long)*bytes, *disp_unit, *flavor, *model);
	for (i = 0; i < n; i++)
		mem[i] = -1;
	MUST(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
	for (i = 0; i < n; i++)
		got[i] = 100 * rank + i;
	MUST(MPI_Put(got, 8, MPI_INT, right, 16 / runit, 8, MPI_INT, win));
	MUST(MPI_Put(got, 8, MPI_INT, MPI_PROC_NULL, 99, 8, MPI_INT, win));
	MUST(MPI_Win_fence(MPI_MODE_NOPUT, win));
	for (i = 0; i < n; i++)
		CHECK(mem[i] == (i >= 4 && i < 12 ? 100 * left + i - 4 : -1), "mem[%d] = %d", i, mem[i]);
	for (i = 0; i < n; i++)
		got[i] = 0;
	MUST(MPI_Get(got + 3, 8, MPI_INT, right, 16 / runit, 8, MPI_INT, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < n; i++)
		CHECK(got[i] == (i >= 3 && i < 11 ? 100 * rank + i - 3 : 0), "got[%d] = %d", i, got[i]);
	/* All ranks add to rank 0. */
	for (i = 0; i < 8; i++)
		got[i] = i + rank;
	MUST(MPI_Accumulate(got, 8, MPI_INT, 0, 32, 8, MPI_INT, MPI_SUM, win));
	MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	if (rank == 0)
		for (i = 0; i < 8; i++)
			CHECK(mem[32 + i] == size * i + size * (size - 1) / 2 - 1, "sum[%d] = %d", i, mem[32 + i]);
	MUST(MPI_Win_free(&win));
	CHECK(win == MPI_WIN_NULL, "not null");
	free(mem);
	free(got);
}

/* Large pieces: more than a chunk of a message. */
static void large(void)
{
	int n = 600001, i, right = (rank + 1) % size, left = (rank + size - 1) % size;
	double *mem, *src = malloc(n * sizeof *src);
	MPI_Win win;

	MUST(MPI_Win_allocate(n * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	for (i = 0; i < n; i++)
		src[i] = i + 0.25 * rank;
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Put(src, n, MPI_DOUBLE, right, 0, n, MPI_DOUBLE, win));
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Accumulate(src, n, MPI_DOUBLE, right, 0, n, MPI_DOUBLE, MPI_SUM, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < n; i++)
		CHECK(mem[i] == 2 * (i + 0.25 * left), "mem[%d] = %g", i, mem[i]);
	MUST(MPI_Get(src, n, MPI_DOUBLE, right, 0, n, MPI_DOUBLE, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < n; i++)
		CHECK(src[i] == 2 * (i + 0.25 * rank), "src[%d] = %g", i, src[i]);
	MUST(MPI_Win_free(&win));
	free(src);
}

/* A ring of exposures, some of which are waited for by MPI_Win_test. */
static void ring(void)
{
	int *mem, round, v, flag, right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group world, to, from;
	MPI_Win win;

	MUST(MPI_Win_allocate(4 * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	MUST(MPI_Win_get_group(win, &world));
	MUST(MPI_Group_incl(world, 1, &right, &to));
	MUST(MPI_Group_incl(world, 1, &left, &from));
	mem[0] = mem[1] = 0;
	for (round = 0; round < 20; round++) {
		MUST(MPI_Win_post(from, round % 3 ? 0 : MPI_MODE_NOSTORE, win));
		MUST(MPI_Win_start(to, 0, win));
		v = 1000 * round + rank;
		MUST(MPI_Put(&v, 1, MPI_INT, right, 0, 1, MPI_INT, win));
		MUST(MPI_Accumulate(&v, 1, MPI_INT, right, 1, 1, MPI_INT, MPI_SUM, win));
		MUST(MPI_Win_complete(win));
		if (round % 2) {
			MUST(MPI_Win_wait(win));
		} else {
			do
				MUST(MPI_Win_test(win, &flag));
			while (!flag);
		}
		CHECK(mem[0] == 1000 * round + left, "round %d: %d", round, mem[0]);
		CHECK(mem[1] == 1000 * round * (round + 1) / 2 + left * (round + 1), "round %d: sum %d", round, mem[1]);
	}
	/* An epoch with nobody. */
	MUST(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
	MUST(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
	MUST(MPI_Win_complete(win));
	MUST(MPI_Win_wait(win));
	/* All posted before all start: nobody asks. */
	MUST(MPI_Win_post(world, MPI_MODE_NOCHECK, win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_start(world, MPI_MODE_NOCHECK, win));
	v = 1;
	if (rank == 0)
		for (int i = 0; i < size; i++)
			MUST(MPI_Put(&v, 1, MPI_INT, i, 2, 1, MPI_INT, win));
	MUST(MPI_Win_complete(win));
	MUST(MPI_Win_wait(win));
	CHECK(mem[2] == 1, "%d", mem[2]);
	MUST(MPI_Group_free(&world));
	MUST(MPI_Group_free(&to));
	MUST(MPI_Group_free(&from));
	MUST(MPI_Win_free(&win));
}

/* Windows without memory on some ranks, and on all. */
static void empty(void)
{
	MPI_Win win;
	int x = 7, y = 0, *mem = rank == 0 ? &y : NULL;

	MUST(MPI_Win_create(mem, rank == 0 ? sizeof y : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_fence(0, win));
	if (rank == size - 1)
		MUST(MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
	MUST(MPI_Win_fence(0, win));
	CHECK(y == (rank == 0 ? 7 : 0), "%d", y);
	MUST(MPI_Win_free(&win));
	MUST(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Put(NULL, 0, MPI_INT, 0, 0, 0, MPI_INT, win));
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	fences();
	large();
	ring();
	empty();
	done();
	MUST(MPI_Finalize());
	return 0;
}
