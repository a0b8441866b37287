// Everything at once: four threads of each rank send, probe, reduce, update windows, write files, make objects and
// mistakes. Then the books are closed: what was sent was received, what was started is complete, and handles and
// memory are as before. A longer run: weft run -n 4 conserve ROUNDS SEED
// cabi: ranks=2,3 transports=shm,sctp flags=-pthread
#include "conserve_messages.h"
#include "conserve_memory.h"
#include "conserve_objects.h"
#include <pthread.h>
#include <time.h>

enum { MAX_GROWTH = 32 << 20 };

static struct thread threads[THREADS];
static int rank, size, rounds = 40, first, last;

static void (*const actions[])(struct thread *) = {exchange, exchange, exchange, exchange, around, around, partitions, mistakes,
	repeat, communicators, communicators, attributes, locals, updates, updates, epochs, windows, files};

static void *work(void *arg)
{
	struct thread *t = arg;

	for (int i = first; i < last; i++)
		actions[together(t, sizeof actions / sizeof *actions)](t);
	MUST(MPI_Barrier(t->comm));
	return NULL;
}

/* Runs the rounds from one to another in all threads, while this thread does collectives of its own. */
static void run(int from, int to)
{
	pthread_t p[THREADS];
	MPI_Comm c;

	first = from;
	last = to;
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&p[i], NULL, work, &threads[i]) == 0, "thread %d does not start", i);
	for (int i = from; i < to; i += 4) {
		MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
		MUST(MPI_Barrier(c));
		MUST(MPI_Comm_free(&c));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(p[i], NULL);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
}

/* Returns a performance variable. */
static unsigned long long variable(const char *name)
{
	int i, n, class;
	unsigned long long v = 0;
	MPI_T_pvar_session s;
	MPI_T_pvar_handle h;

	for (class = MPI_T_PVAR_CLASS_LEVEL; MPI_T_pvar_get_index(name, class, &i) != MPI_SUCCESS;)
		CHECK(0, "there is no variable %s", name);
	MUST(MPI_T_pvar_session_create(&s));
	MUST(MPI_T_pvar_handle_alloc(s, i, NULL, &h, &n));
	MUST(MPI_T_pvar_read(s, h, &v));
	MUST(MPI_T_pvar_handle_free(s, &h));
	MUST(MPI_T_pvar_session_free(&s));
	return v;
}

static const char *const levels[] = {"weft_communicator_handles", "weft_group_handles", "weft_window_handles", "weft_file_handles",
	"weft_session_handles", "weft_info_handles", "weft_errhandler_handles", "weft_message_handles", "weft_keyval_handles", "weft_op_handles",
	"weft_datatype_handles", "weft_request_handles", "weft_posted_receives", "weft_unexpected_messages", "weft_announced_sends"};
enum { LEVELS = sizeof levels / sizeof *levels, HANDLES = LEVELS - 3 };

static void measure(unsigned long long *n)
{
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	for (int i = 0; i < LEVELS; i++)
		n[i] = variable(levels[i]);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
}

static long resident(void)
{
	long pages = 0, all;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static void begin(void)
{
	MPI_Errhandler h;

	MUST(MPI_Comm_create_errhandler(on_error, &h));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, h));
	for (int i = 0; i < THREADS; i++) {
		struct thread *t = &threads[i];
		t->id = i;
		t->rank = rank;
		t->size = size;
		t->common = seed + i;
		t->own = mix(seed * 31 + rank) + i;
		t->buffer = malloc(BSEND_BYTES);
		MUST(MPI_Comm_dup(MPI_COMM_WORLD, &t->comm));
		MUST(MPI_Comm_set_errhandler(t->comm, h));
		MUST(MPI_Comm_attach_buffer(t->comm, t->buffer, BSEND_BYTES));
		MUST(MPI_Comm_create_keyval(on_copy, on_delete, &t->key, NULL));
		MUST(MPI_Win_allocate(SLOTS * sizeof *t->mem, sizeof *t->mem, MPI_INFO_NULL, t->comm, &t->mem, &t->win));
		MUST(MPI_Win_set_errhandler(t->win, MPI_ERRORS_RETURN));
		memset(t->mem, 0, SLOTS * sizeof *t->mem);
	}
	MUST(MPI_Errhandler_free(&h));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
}

/* Closes the books, of all ranks together. */
static void balance(void)
{
	int64_t sums[6], all[6];

	sums[0] = books.sent, sums[1] = books.sent_ints, sums[2] = books.sent_sum;
	sums[3] = books.received, sums[4] = books.received_ints, sums[5] = books.received_sum;
	MUST(MPI_Allreduce(sums, all, 6, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
	for (int i = 0; i < 3; i++)
		CHECK(all[i] == all[i + 3], "sum %d: sent %lld, received %lld", i, (long long)all[i], (long long)all[i + 3]);
	CHECK(books.started == books.completed, "%lld operations started, %lld complete", (long long)books.started, (long long)books.completed);
	CHECK(books.errors_made == books.errors_handled, "%lld errors, %lld handled", (long long)books.errors_made, (long long)books.errors_handled);
	CHECK(books.values_set + books.copies == books.deletes, "%lld attributes and %lld copies, %lld deleted", (long long)books.values_set,
	      (long long)books.copies, (long long)books.deletes);
	for (int i = 0; i < THREADS; i++) {
		int64_t added[RANKS];
		MUST(MPI_Allreduce(threads[i].added, added, size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
		MUST(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, threads[i].win));
		CHECK(added[rank] == threads[i].mem[0], "thread %d: %lld were added, %lld are there", i, (long long)added[rank], (long long)threads[i].mem[0]);
		MUST(MPI_Win_unlock(rank, threads[i].win));
	}
	if (rank == 0)
		printf("%lld messages, %lld bytes; rank 0: %lld operations, %lld errors, %lld receives cancelled\n", (long long)all[0],
		       4 * (long long)all[1], (long long)books.started, (long long)books.errors_made, (long long)books.cancelled);
}

int main(int argc, char **argv)
{
	unsigned long long before[LEVELS], after[LEVELS];
	long small, big;
	int provided;

	MUST(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	CHECK(provided == MPI_THREAD_MULTIPLE, "threads %d", provided);
	MUST(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	CHECK(size <= RANKS, "%d ranks", size);
	if (argc > 1)
		rounds = atoi(argv[1]);
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 1000003 + getpid();
	MUST(MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
	if (rank == 0)
		printf("%d rounds, seed %llu\n", rounds, (unsigned long long)seed), fflush(stdout);
	begin();
	measure(before);
	run(0, rounds / 2);
	small = resident();
	run(rounds / 2, rounds);
	big = resident();
	balance();
	measure(after);
	for (int i = 0; i < LEVELS; i++) /* a rank may be in the next barrier already */
		CHECK(i < HANDLES ? after[i] == before[i] : after[i] <= before[i] + size, "rank %d: %s is %llu, and was %llu", rank, levels[i], after[i], before[i]);
	CHECK(big - small < MAX_GROWTH, "%ld bytes of memory in the second half, %ld in the first", big, small);
	for (int i = 0; i < THREADS; i++) {
		void *buffer;
		int n;
		MUST(MPI_Win_free(&threads[i].win));
		MUST(MPI_Comm_free_keyval(&threads[i].key));
		MUST(MPI_Comm_detach_buffer(threads[i].comm, &buffer, &n));
		CHECK(buffer == threads[i].buffer && n == BSEND_BYTES, "another buffer, of %d bytes", n);
		free(buffer);
		MUST(MPI_Comm_free(&threads[i].comm));
	}
	MUST(MPI_T_finalize());
	done();
	MUST(MPI_Finalize());
	return 0;
}
