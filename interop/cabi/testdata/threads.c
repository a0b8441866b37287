// Four threads of each rank exchange messages at the same time (MPI_THREAD_MULTIPLE), with tags and
// communicators of their own, and a thread that has begun outside of MPI.
// cabi: ranks=1,2,4 flags=-pthread
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 100 };

static int rank, size;
static MPI_Comm comms[THREADS];

static void *work(void *arg)
{
	int me = (int)(long)arg, main_thread = -1;
	MUST(MPI_Is_thread_main(&main_thread));
	CHECK(main_thread == 0, "thread %d takes itself for the main one", me);
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	for (int i = 0; i < ROUNDS; i++) {
		int n = i % 10 == 0 ? 40000 : i, count;
		int *out = malloc((n + 1) * sizeof *out), *in = malloc((n + 1) * sizeof *in);
		for (int j = 0; j < n; j++)
			out[j] = me * 1000000 + i * 1000 + rank + j;
		MPI_Comm comm = i % 2 ? comms[me] : MPI_COMM_WORLD;
		MPI_Request requests[2];
		MPI_Status statuses[2];
		MUST(MPI_Irecv(in, n, MPI_INT, previous, me, comm, &requests[0]));
		MUST(MPI_Isend(out, n, MPI_INT, next, me, comm, &requests[1]));
		if (i % 3 == 0) {
			int all = 0;
			while (!all)
				MUST(MPI_Testall(2, requests, &all, statuses));
		} else {
			MUST(MPI_Waitall(2, requests, statuses));
		}
		MUST(MPI_Get_count(&statuses[0], MPI_INT, &count));
		CHECK(count == n, "thread %d, round %d: %d elements, want %d", me, i, count, n);
		for (int j = 0; j < n; j++)
			CHECK(in[j] == me * 1000000 + i * 1000 + previous + j, "thread %d, round %d, element %d: %d", me, i, j, in[j]);
		free(out);
		free(in);
	}
	/* The threads are in different collectives at once. */
	int one = 1, sum = 0;
	MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[me]));
	CHECK(sum == size, "thread %d: the sum is %d, want %d", me, sum, size);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided = -1, main_thread = 0;
	MUST(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	CHECK(provided == MPI_THREAD_MULTIPLE, "thread level %d, want %d", provided, MPI_THREAD_MULTIPLE);
	MUST(MPI_Is_thread_main(&main_thread));
	CHECK(main_thread, "the thread that called MPI_Init_thread is not the main one");
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "thread %ld does not start", i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		MUST(MPI_Comm_free(&comms[i]));
		CHECK(comms[i] == MPI_COMM_NULL, "a communicator that is freed is not null");
	}
	done();
	MUST(MPI_Finalize());
	return 0;
}
