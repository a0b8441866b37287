// Measures an MPI library between two ranks, as `weft perf mpi` does for weft's.
//
//	mpi bulk SIZE SECONDS       windows of 16 messages one way
//	mpi trip SIZE SECONDS       round trips
//	mpi count SIZE TRIPS        so many round trips
//	mpi farm SIZE TASKS FANOUT  the bulk processor farm, any number of ranks
//
// Rank 0 prints the result as JSON.

#include "common.h"

#include <mpi.h>

enum { WINDOW = 16, DATA = 0, CONTROL = 1, WARMUP = 2 /* tenths of a second */ };

static int rank, ranks;

static void report(double seconds, double cpu, unsigned long long msgs, unsigned long long bytes) {
	double all = 0;
	MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank)
		return;
	trip_sort();
	printf("{\"seconds\":%.6f,\"cpu\":%.6f,\"msgs\":%llu,\"bytes\":%llu,\"p50\":%.2f,\"p99\":%.2f,\"max\":%.2f,\"trips\":%zu}\n",
	       seconds, all, msgs, bytes, trip_at(0.5), trip_at(0.99), trip_at(1), trips);
}

// bulk sends windows; before each the sender says whether it is the last.
static void bulk(int size, double seconds) {
	char *buf = calloc(WINDOW, size);
	MPI_Request reqs[WINDOW];
	double start = now_s(), cpu = cpu_s(), begin = start;
	unsigned long long msgs = 0;
	int measuring = 0;
	for (char stop = 0; !stop;) {
		if (rank == 0) {
			double t = now_s();
			if (!measuring && t - begin > WARMUP * 0.1) {
				measuring = 1;
				stop = 2; // start of the measurement
				start = t;
				cpu = cpu_s();
				msgs = 0;
			} else {
				stop = measuring && t - start > seconds;
			}
			MPI_Send(&stop, 1, MPI_CHAR, 1, CONTROL, MPI_COMM_WORLD);
		} else {
			MPI_Recv(&stop, 1, MPI_CHAR, 0, CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (stop == 2)
				cpu = cpu_s();
		}
		if (stop == 1)
			break;
		stop = 0;
		for (int i = 0; i < WINDOW; i++)
			if (rank == 0)
				MPI_Isend(buf + (size_t)i * size, size, MPI_CHAR, 1, DATA, MPI_COMM_WORLD, &reqs[i]);
			else
				MPI_Irecv(buf + (size_t)i * size, size, MPI_CHAR, 0, DATA, MPI_COMM_WORLD, &reqs[i]);
		MPI_Waitall(WINDOW, reqs, MPI_STATUSES_IGNORE);
		msgs += WINDOW;
	}
	char done = 1; // what was sent has arrived
	if (rank == 0)
		MPI_Recv(&done, 1, MPI_CHAR, 1, CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&done, 1, MPI_CHAR, 0, CONTROL, MPI_COMM_WORLD);
	double took = now_s() - start, used = cpu_s() - cpu;
	report(took, used, msgs, msgs * size);
}

// trip makes round trips, for some time or, if count > 0, so many.
static void trip(int size, double seconds, long count) {
	char *buf = calloc(1, size + 1);
	double start = now_s(), cpu = cpu_s(), begin = start;
	int measuring = count > 0;
	for (;;) {
		if (rank == 0) {
			double t = now_s();
			if (!measuring && t - begin > WARMUP * 0.1) {
				measuring = 1;
				start = t;
				cpu = cpu_s();
				trips = 0;
			}
			buf[0] = measuring && (count > 0 ? (long)trips == count : t - start > seconds);
			MPI_Send(buf, size, MPI_CHAR, 1, DATA, MPI_COMM_WORLD);
			if (buf[0])
				break;
			MPI_Recv(buf, size, MPI_CHAR, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			trip_add((now_s() - t) * 1e6);
		} else {
			MPI_Recv(buf, size, MPI_CHAR, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (buf[0])
				break;
			MPI_Send(buf, size, MPI_CHAR, 0, DATA, MPI_COMM_WORLD);
		}
	}
	double took = now_s() - start, used = cpu_s() - cpu;
	report(took, used, trips, 2ull * trips * size);
}

// farm is the bulk processor farm, dealt as cmd/farm does: each worker keeps ten
// requests outstanding, each is answered with fanout messages, which are tasks
// of ten types (message tags) or say that there are no more, and each task is
// answered with its result.
enum { TASK = 10, TYPES = 10, OUTSTANDING = 10, REQUEST = 1, RESULT = 2, NONE = 3, RESULT_LEN = 8 + 32 + 256 * 8, RING = 64 };

static char *ring;
static MPI_Request ring_reqs[RING];
static int ring_next;

// ring_take returns a send buffer that is not in use any more.
static char *ring_take(int size) {
	MPI_Wait(&ring_reqs[ring_next], MPI_STATUS_IGNORE);
	return ring + (size_t)ring_next * size;
}

static void ring_send(void *p, int n, int to, int tag) {
	MPI_Isend(p, n, MPI_CHAR, to, tag, MPI_COMM_WORLD, &ring_reqs[ring_next]);
	ring_next = (ring_next + 1) % RING;
}

static void manage(int size, long tasks, int fanout) {
	char result[RESULT_LEN];
	long given = 0, done = 0;
	int workers = ranks - 1;
	while (workers > 0 || done < tasks) {
		MPI_Status st;
		MPI_Recv(result, sizeof result, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		if (st.MPI_TAG == RESULT) {
			done++;
			continue;
		}
		if (result[0]) { // goodbye
			workers--;
			continue;
		}
		for (int i = 0; i < fanout; i++) {
			char *buf = ring_take(size);
			if (given < tasks) {
				memset(buf, (int)given, size);
				ring_send(buf, size, st.MPI_SOURCE, TASK + given % TYPES);
				given++;
			} else {
				ring_send(buf, 0, st.MPI_SOURCE, NONE);
			}
		}
	}
}

// compute stands for the work: a histogram and a hash of the bytes.
static void compute(const unsigned char *task, int n, char *result) {
	unsigned int hist[256] = {0};
	unsigned long long hash = 14695981039346656037ull;
	for (int i = 0; i < n; i++) {
		hist[task[i]]++;
		hash = (hash ^ task[i]) * 1099511628211ull;
	}
	memcpy(result, &hash, sizeof hash);
	memcpy(result + 40, hist, sizeof hist);
}

static void work(int size, int fanout) {
	char *task = malloc(size), ask = 0;
	int more = 1;
	long open = (long)OUTSTANDING * fanout, got = 0;
	for (int i = 0; i < OUTSTANDING; i++)
		MPI_Send(&ask, 1, MPI_CHAR, 0, REQUEST, MPI_COMM_WORLD);
	for (; open > 0; open--) {
		MPI_Status st;
		MPI_Recv(task, size, MPI_CHAR, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		if (st.MPI_TAG == NONE) {
			more = 0;
		} else {
			char *result = ring_take(RESULT_LEN);
			int n;
			MPI_Get_count(&st, MPI_CHAR, &n);
			compute((unsigned char *)task, n, result);
			ring_send(result, RESULT_LEN, 0, RESULT);
		}
		if (++got % fanout == 0 && more) {
			MPI_Send(&ask, 1, MPI_CHAR, 0, REQUEST, MPI_COMM_WORLD);
			open += fanout;
		}
	}
	char bye = 1;
	MPI_Send(&bye, 1, MPI_CHAR, 0, REQUEST, MPI_COMM_WORLD);
}

static void farm(int size, long tasks, int fanout) {
	ring = malloc((size_t)RING * (rank ? RESULT_LEN : size));
	for (int i = 0; i < RING; i++)
		ring_reqs[i] = MPI_REQUEST_NULL;
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now_s(), cpu = cpu_s();
	if (rank == 0)
		manage(size, tasks, fanout);
	else
		work(size, fanout);
	MPI_Waitall(RING, ring_reqs, MPI_STATUSES_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	double took = now_s() - start, used = cpu_s() - cpu;
	report(took, used, tasks, (unsigned long long)tasks * size);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int size = argc > 2 ? atoi(argv[2]) : 0;
	double amount = argc > 3 ? atof(argv[3]) : 0;
	if (size < 1 || amount <= 0) {
		fprintf(stderr, "usage: mpi bulk|trip|count|farm SIZE AMOUNT [FANOUT]\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (strcmp(argv[1], "bulk") == 0)
		bulk(size, amount);
	else if (strcmp(argv[1], "trip") == 0)
		trip(size, amount, 0);
	else if (strcmp(argv[1], "count") == 0)
		trip(size, 0, amount);
	else
		farm(size, amount, argc > 4 ? atoi(argv[4]) : 1);
	MPI_Finalize();
}
