// Locks, flushes, operations with requests, counters by MPI_Fetch_and_op, a lock by MPI_Compare_and_swap.
// cabi: ranks=1,2,4
#include "check.h"
#include <stdint.h>

enum { times = 40 };
static int rank, size;

/* Each rank increments a counter that nothing but its lock protects. */
static void locks(void)
{
	long *mem, v;
	int i, target;
	MPI_Win win;

	MUST(MPI_Win_allocate(2 * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
	mem[0] = mem[1] = 0;
	MUST(MPI_Win_unlock(rank, win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	for (i = 0; i < times; i++) {
		target = (rank + i) % size;
		MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
		MUST(MPI_Get(&v, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
		MUST(MPI_Win_flush_local(target, win));
		v++;
		MUST(MPI_Put(&v, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
		MUST(MPI_Win_unlock(target, win));
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
	CHECK(mem[0] == times, "%ld increments", mem[0]);
	MUST(MPI_Win_unlock(rank, win));
	/* Several locks at a time, and those of nobody. */
	for (i = 0; i < size; i++)
		MUST(MPI_Win_lock(MPI_LOCK_SHARED, i, MPI_MODE_NOCHECK, win));
	MUST(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
	v = 1;
	for (i = 0; i < size; i++)
		MUST(MPI_Accumulate(&v, 1, MPI_LONG, i, 1, 1, MPI_LONG, MPI_SUM, win));
	MUST(MPI_Win_flush(MPI_PROC_NULL, win));
	MUST(MPI_Win_unlock(MPI_PROC_NULL, win));
	for (i = 0; i < size; i++)
		MUST(MPI_Win_unlock(i, win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_sync(win));
	CHECK(mem[1] == size, "%ld updates", mem[1]);
	MUST(MPI_Win_free(&win));
}

/* A counter that gives each number to one rank, without waiting between the calls. */
static void counters(void)
{
	int *mem, one = 1, got[times], sum, all, i;
	char *seen = calloc(times * size, 1);
	MPI_Win win;

	MUST(MPI_Win_allocate(rank == 0 ? sizeof *mem : 0, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	if (rank == 0)
		*mem = 0;
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_lock_all(0, win));
	for (i = 0; i < times; i++)
		MUST(MPI_Fetch_and_op(&one, &got[i], MPI_INT, 0, 0, MPI_SUM, win));
	MUST(MPI_Win_flush_all(win));
	for (i = 0; i < times; i++) {
		CHECK(got[i] >= 0 && got[i] < times * size && !seen[got[i]] && (i == 0 || got[i] > got[i - 1]), "got[%d] = %d", i, got[i]);
		seen[got[i]] = 1;
	}
	for (sum = i = 0; i < times; i++)
		sum += got[i];
	MUST(MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(all == times * size * (times * size - 1) / 2, "all numbers add up to %d", all);
	/* MPI_NO_OP fetches, MPI_REPLACE swaps. */
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Fetch_and_op(NULL, &got[0], MPI_INT, 0, 0, MPI_NO_OP, win));
	MUST(MPI_Win_flush_local(0, win));
	CHECK(got[0] == times * size, "counted to %d", got[0]);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	got[1] = 1000 + rank;
	MUST(MPI_Fetch_and_op(&got[1], &got[0], MPI_INT, 0, 0, MPI_REPLACE, win));
	MUST(MPI_Win_flush(0, win));
	CHECK(got[0] == times * size || (got[0] >= 1000 && got[0] < 1000 + size && got[0] != got[1]), "swapped %d", got[0]);
	MUST(MPI_Win_unlock_all(win));
	MUST(MPI_Win_free(&win));
	free(seen);
}

/* Ranks take turns by a word in the window of the last rank that is 0 while nobody has it. */
static void spinlock(void)
{
	int64_t *mem, mine = rank + 1, none = 0, was;
	int i, owner = size - 1;
	MPI_Win win;

	MUST(MPI_Win_allocate(2 * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	mem[0] = mem[1] = 0;
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
	for (i = 0; i < 10; i++) {
		do {
			MUST(MPI_Compare_and_swap(&mine, &none, &was, MPI_INT64_T, owner, 0, win));
			MUST(MPI_Win_flush(owner, win));
		} while (was != 0);
		int64_t v;
		MUST(MPI_Get(&v, 1, MPI_INT64_T, owner, 1, 1, MPI_INT64_T, win));
		MUST(MPI_Win_flush(owner, win));
		v++;
		MUST(MPI_Put(&v, 1, MPI_INT64_T, owner, 1, 1, MPI_INT64_T, win));
		MUST(MPI_Win_flush(owner, win));
		MUST(MPI_Compare_and_swap(&none, &mine, &was, MPI_INT64_T, owner, 0, win));
		MUST(MPI_Win_flush(owner, win));
		CHECK(was == mine, "the lock was of %d", (int)was);
	}
	MUST(MPI_Win_unlock_all(win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_sync(win));
	if (rank == owner)
		CHECK(mem[1] == 10 * size && mem[0] == 0, "%d turns, lock of %d", (int)mem[1], (int)mem[0]);
	MUST(MPI_Win_free(&win));
}

static void requests(void)
{
	enum { n = 5000 };
	double *mem, *src = malloc(n * sizeof *src), *got = malloc(n * sizeof *got), *old = malloc(n * sizeof *old);
	int i, right = (rank + 1) % size, flag;
	MPI_Request r[3];
	MPI_Win win;

	MUST(MPI_Win_allocate(n * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	for (i = 0; i < n; i++) {
		mem[i] = 0;
		src[i] = i;
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
	MUST(MPI_Rput(src, n, MPI_DOUBLE, right, 0, n, MPI_DOUBLE, win, &r[0]));
	MUST(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
	CHECK(r[0] == MPI_REQUEST_NULL, "the request is not null");
	MUST(MPI_Win_flush(right, win));
	MUST(MPI_Raccumulate(src, n, MPI_DOUBLE, right, 0, n, MPI_DOUBLE, MPI_SUM, win, &r[0]));
	MUST(MPI_Rget_accumulate(src, n, MPI_DOUBLE, old, n, MPI_DOUBLE, right, 0, n, MPI_DOUBLE, MPI_PROD, win, &r[1]));
	MUST(MPI_Rput(src, n, MPI_DOUBLE, MPI_PROC_NULL, 0, n, MPI_DOUBLE, win, &r[2]));
	MUST(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
	for (i = 0; i < n; i++)
		CHECK(old[i] == 2.0 * i, "old[%d] = %g", i, old[i]);
	MUST(MPI_Win_flush(right, win));
	MUST(MPI_Rget(got, n, MPI_DOUBLE, right, 0, n, MPI_DOUBLE, win, &r[0]));
	do
		MUST(MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE));
	while (!flag);
	for (i = 0; i < n; i++)
		CHECK(got[i] == 2.0 * i * i, "got[%d] = %g", i, got[i]);
	MUST(MPI_Win_unlock(right, win));
	MUST(MPI_Win_free(&win));
	free(src);
	free(got);
	free(old);
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	locks();
	counters();
	spinlock();
	requests();
	done();
	MUST(MPI_Finalize());
	return 0;
}
