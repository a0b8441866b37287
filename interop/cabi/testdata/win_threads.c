// Four threads of each rank work on one window at the same time, and each on a window of its own.
// cabi: ranks=1,2,4 flags=-pthread
#include "check.h"
#include <pthread.h>

enum { threads = 4, times = 60 };
static int rank, size;
static MPI_Win shared, own[threads];
static long *counters;

static void *work(void *arg)
{
	long id = (long)arg, one = 1, old, before = -1, v;
	double x = id, *memory, got;
	int i, target, flavor, flag, *at;

	/* One counter for all threads of all ranks, in each rank; the shared window is locked by main. */
	for (i = 0; i < times; i++) {
		target = (rank + i) % size;
		MUST(MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, shared));
		MUST(MPI_Win_flush(target, shared));
		CHECK(old >= 0 && old < (long)threads * times * size, "fetched %ld", old);
		if (size == 1) {
			CHECK(old > before, "fetched %ld after %ld", old, before);
			before = old;
		}
		/* A place of its own in each rank. */
		v = 1000 * id + i;
		MUST(MPI_Put(&v, 1, MPI_LONG, target, 1 + threads * rank + id, 1, MPI_LONG, shared));
		MUST(MPI_Win_flush(target, shared));
		MUST(MPI_Get(&old, 1, MPI_LONG, target, 1 + threads * rank + id, 1, MPI_LONG, shared));
		MUST(MPI_Win_flush_local(target, shared));
		CHECK(old == v, "got %ld, put %ld", old, v);
	}
	/* Locks of the window of the thread. */
	MUST(MPI_Win_get_attr(own[id], MPI_WIN_BASE, &memory, &flag));
	MUST(MPI_Win_get_attr(own[id], MPI_WIN_CREATE_FLAVOR, &at, &flag));
	flavor = *at;
	CHECK(flavor == MPI_WIN_FLAVOR_ALLOCATE, "flavor %d", flavor);
	for (i = 0; i < times; i++) {
		target = (rank + i) % size;
		MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, own[id]));
		MUST(MPI_Get(&got, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, own[id]));
		MUST(MPI_Win_flush(target, own[id]));
		got += x + 1;
		MUST(MPI_Put(&got, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, own[id]));
		MUST(MPI_Win_unlock(target, own[id]));
	}
	MUST(MPI_Win_fence(0, own[id]));
	CHECK(*memory == (x + 1) * times, "%g in the window of thread %ld", *memory, id);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[threads];
	double *mem;
	long i;
	int provided;

	MUST(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	CHECK(provided == MPI_THREAD_MULTIPLE, "threads %d", provided);
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Win_allocate((1 + threads * size) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &shared));
	for (i = 0; i < 1 + threads * size; i++)
		counters[i] = 0;
	for (i = 0; i < threads; i++) {
		MUST(MPI_Win_allocate(sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &own[i]));
		*mem = 0;
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_lock_all(0, shared));
	for (i = 0; i < threads; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0, "thread");
	for (i = 0; i < threads; i++)
		CHECK(pthread_join(t[i], NULL) == 0, "thread");
	MUST(MPI_Win_unlock_all(shared));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_sync(shared));
	CHECK(counters[0] == (long)threads * times, "%ld updates", counters[0]);
	for (i = 0; i < threads; i++)
		MUST(MPI_Win_free(&own[i]));
	MUST(MPI_Win_free(&shared));
	done();
	MUST(MPI_Finalize());
	return 0;
}
