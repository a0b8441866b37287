/* Messages allocate nothing in steady state: the library counts what it allocates.
 * cabi: ranks=2 transports=shm,hybrid,sctp,tcp */
#include "check.h"

enum { LONG = 64 << 10, BATCH = 8, WARMUP = 300, ROUNDS = 500 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;
static int rank, other;
static char out[LONG * 2], in[LONG * 2];
static MPI_Datatype column;
static MPI_Request persistent[2 * BATCH];

static unsigned long long allocated(void)
{
	unsigned long long v = 0;
	CHECK(MPI_T_pvar_read(session, handle, &v) == MPI_SUCCESS, "cannot read");
	return v;
}

static void open_counter(void)
{
	int provided, i, count, begun;
	MUST(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	CHECK(MPI_T_pvar_get_index("weft_allocations", MPI_T_PVAR_CLASS_COUNTER, &i) == MPI_SUCCESS, "no such variable");
	MUST(MPI_T_pvar_session_create(&session));
	MUST(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
	MUST(MPI_T_pvar_start(session, handle));
	begun = allocated() < 1000;
	CHECK(begun, "a handle counts from its own beginning");
	/* What the library allocates is counted. */
	for (i = 0; i < 100; i++) {
		MPI_Comm c;
		MUST(MPI_Comm_dup(MPI_COMM_SELF, &c));
		MUST(MPI_Comm_free(&c));
	}
	CHECK(allocated() >= 100, "%llu after 100 communicators", allocated());
}

static void exchange(int bytes)
{
	if (rank == 0)
		MUST(MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD));
	MUST(MPI_Recv(in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	if (rank == 1)
		MUST(MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD));
}

static void blocking(void) { exchange(8); }
static void blocking_long(void) { exchange(LONG); }

static void synchronous(void)
{
	MPI_Status status;
	int count;
	if (rank == 0) {
		MUST(MPI_Ssend(out, 8, MPI_BYTE, other, 2, MPI_COMM_WORLD));
		return;
	}
	MUST(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
	MUST(MPI_Get_count(&status, MPI_BYTE, &count));
	MUST(MPI_Recv(in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status));
}

static void both(void)
{
	MUST(MPI_Sendrecv(out, 100, MPI_INT, other, 3, in, 100, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void start(MPI_Request *r, int bytes)
{
	for (int i = 0; i < BATCH; i++) {
		MUST(MPI_Irecv(in + i * bytes, bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, &r[i]));
		MUST(MPI_Isend(out + i * bytes, bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, &r[BATCH + i]));
	}
}

static void waits(void)
{
	MPI_Request r[2 * BATCH];
	start(r, 8);
	for (int i = 0; i < 2 * BATCH; i++)
		MUST(MPI_Wait(&r[i], MPI_STATUS_IGNORE));
}

static void waitall(void)
{
	MPI_Request r[2 * BATCH];
	MPI_Status s[2 * BATCH];
	start(r, 1024);
	MUST(MPI_Waitall(2 * BATCH, r, s));
}

static void waitany(void)
{
	MPI_Request r[2 * BATCH];
	int i;
	start(r, 8);
	do
		MUST(MPI_Waitany(2 * BATCH, r, &i, MPI_STATUS_IGNORE));
	while (i != MPI_UNDEFINED);
}

static void tests(void)
{
	MPI_Request r[2 * BATCH];
	int flag = 0;
	start(r, 8);
	while (!flag)
		MUST(MPI_Testall(2 * BATCH, r, &flag, MPI_STATUSES_IGNORE));
}

static void persistents(void)
{
	MUST(MPI_Startall(2 * BATCH, persistent));
	MUST(MPI_Waitall(2 * BATCH, persistent, MPI_STATUSES_IGNORE));
}

static void gaps(void)
{
	MPI_Request r[2];
	MUST(MPI_Irecv(in, 1, column, other, 4, MPI_COMM_WORLD, &r[0]));
	MUST(MPI_Isend(out, 1, column, other, 4, MPI_COMM_WORLD, &r[1]));
	MUST(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*round)(void);
		int messages; /* of a round at a rank, received or sent */
	} cases[] = {
		{"Send and Recv", blocking, 2}, {"Send and Recv of 64 KiB", blocking_long, 2}, {"Ssend, Probe and Recv", synchronous, 1},
		{"Sendrecv", both, 2}, {"Isend, Irecv and Wait", waits, 2 * BATCH}, {"Waitall", waitall, 2 * BATCH},
		{"Waitany", waitany, 2 * BATCH}, {"Testall", tests, 2 * BATCH}, {"persistent requests", persistents, 2 * BATCH},
		{"a datatype with gaps", gaps, 2},
	};
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	other = 1 - rank;
	MUST(MPI_Type_vector(256, 1, 2, MPI_DOUBLE, &column));
	MUST(MPI_Type_commit(&column));
	for (int i = 0; i < BATCH; i++) {
		MUST(MPI_Recv_init(in + 8 * i, 8, MPI_BYTE, other, i, MPI_COMM_WORLD, &persistent[i]));
		MUST(MPI_Send_init(out + 8 * i, 8, MPI_BYTE, other, i, MPI_COMM_WORLD, &persistent[BATCH + i]));
	}
	open_counter();
	for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
		unsigned long long before;
		int messages = ROUNDS * cases[k].messages;
		for (int i = 0; i < WARMUP; i++)
			cases[k].round();
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		before = allocated();
		for (int i = 0; i < ROUNDS; i++)
			cases[k].round();
		before = allocated() - before;
		/* Timers, and goroutines that a long wait wakes, allocate now and then. */
		CHECK(before < (unsigned long long)messages / 10 + 20, "%s: %llu allocations in %d messages", cases[k].name, before, messages);
		if (argc > 1)
			fprintf(stderr, "rank %d: %s: %llu allocations in %d messages\n", rank, cases[k].name, before, messages);
		MUST(MPI_Barrier(MPI_COMM_WORLD));
	}
	for (int i = 0; i < 2 * BATCH; i++)
		MUST(MPI_Request_free(&persistent[i]));
	MUST(MPI_Type_free(&column));
	done();
	MUST(MPI_T_pvar_session_free(&session));
	MUST(MPI_T_finalize());
	MUST(MPI_Finalize());
	return 0;
}
