/* Buffers for buffered sends: of the process, of a communicator, and automatic ones. */
/* cabi: ranks=1,2,4 transports=shm,hybrid,tcp */
#include "p2p.h"

enum { LONG = 1 << 20, K = 8 }; /* longer than what is sent at once */

static char room[K * (LONG + MPI_BSEND_OVERHEAD)], other[3 * (1000 + MPI_BSEND_OVERHEAD)], third[2 * LONG];
static char *out, *in;

/* Receives n messages of len bytes and checks their contents. */
static void take(int n, int len, int tag, MPI_Comm comm)
{
	for (int k = 0; k < n; k++) {
		MUST(MPI_Recv(in, len, MPI_BYTE, prev, tag, comm, MPI_STATUS_IGNORE));
		for (int i = 0; i < len; i += 97)
			SAME(in[i], (char)(i + k + prev));
	}
}

static void put(int k, int len)
{
	for (int i = 0; i < len; i++)
		out[i] = (char)(i + k + rank);
}

/* While a flush waits for a message, those behind it that have left give their room back, and the flush waits for none
   that is sent after its call. */
static void unfinished_flush(void)
{
	void *at;
	int bytes, flag, code;
	MPI_Request r;
	double end;

	MUST(MPI_Buffer_attach(third, sizeof third));
	put(0, LONG / 2);
	MUST(MPI_Bsend(out, LONG / 2, MPI_BYTE, next, 6, MPI_COMM_WORLD));
	put(0, LONG);
	MUST(MPI_Bsend(out, LONG, MPI_BYTE, next, 7, MPI_COMM_WORLD));
	FAILS(MPI_ERR_BUFFER, MPI_Bsend(out, LONG, MPI_BYTE, next, 8, MPI_COMM_WORLD));
	MUST(MPI_Buffer_iflush(&r));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	take(1, LONG, 7, MPI_COMM_WORLD);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	end = MPI_Wtime() + 10;
	do
		code = MPI_Bsend(out, LONG, MPI_BYTE, next, 8, MPI_COMM_WORLD);
	while (code != MPI_SUCCESS && MPI_Wtime() < end);
	MUST(code);
	MUST(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
	SAME(flag, 0);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	take(1, LONG / 2, 6, MPI_COMM_WORLD);
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MUST(MPI_Barrier(MPI_COMM_WORLD)); /* nobody has received the last one yet */
	take(1, LONG, 8, MPI_COMM_WORLD);
	MUST(MPI_Buffer_flush());
	MUST(MPI_Buffer_detach(&at, &bytes));
}

int main(int argc, char **argv)
{
	void *at;
	int bytes, flag;
	MPI_Count many;
	MPI_Request r;
	MPI_Comm dup;
	MUST(MPI_Init(&argc, &argv));
	ring_of_all();
	out = malloc(LONG);
	in = malloc(LONG);
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_BUFFER, MPI_Bsend(out, 1, MPI_BYTE, next, 1, MPI_COMM_WORLD));
	FAILS(MPI_ERR_BUFFER, MPI_Buffer_detach(&at, &bytes));
	FAILS(MPI_ERR_BUFFER, MPI_Buffer_flush());
	FAILS(MPI_ERR_ARG, MPI_Buffer_attach(room, -1));

	/* As many as fit, before anybody receives. */
	MUST(MPI_Buffer_attach(room, sizeof room));
	FAILS(MPI_ERR_BUFFER, MPI_Buffer_attach(other, sizeof other));
	for (int round = 0; round < 2; round++) {
		for (int k = 0; k < K; k++) {
			put(k, LONG);
			if (k % 2) {
				MUST(MPI_Bsend(out, LONG, MPI_BYTE, next, 1, MPI_COMM_WORLD));
			} else {
				MUST(MPI_Ibsend(out, LONG, MPI_BYTE, next, 1, MPI_COMM_WORLD, &r));
				MUST(MPI_Wait(&r, MPI_STATUS_IGNORE)); /* local */
			}
		}
		FAILS(MPI_ERR_BUFFER, MPI_Bsend(out, LONG, MPI_BYTE, next, 1, MPI_COMM_WORLD));
		FAILS(MPI_ERR_BUFFER, MPI_Ibsend(out, LONG, MPI_BYTE, next, 1, MPI_COMM_WORLD, &r));
		MUST(MPI_Buffer_iflush(&r));
		MUST(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
		SAME(flag, 0);
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		take(K, LONG, 1, MPI_COMM_WORLD);
		if (round == 0) {
			MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
			MUST(MPI_Buffer_flush());
		} else {
			MUST(MPI_Buffer_detach_c(&at, &many));
			CHECK(at == (void *)room, "another buffer");
			SAME(many, sizeof room);
			MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
		}
		MUST(MPI_Barrier(MPI_COMM_WORLD));
	}

	unfinished_flush();

	/* A communicator's buffer counts, not the process's. */
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
	MUST(MPI_Buffer_attach(room, sizeof room));
	MUST(MPI_Comm_attach_buffer(dup, other, sizeof other));
	FAILS(MPI_ERR_BUFFER, MPI_Bsend(out, LONG, MPI_BYTE, next, 1, dup));
	put(0, 1000);
	MUST(MPI_Bsend(out, 1000, MPI_BYTE, next, 2, dup));
	put(1, 1000);
	MUST(MPI_Bsend_init(out, 1000, MPI_BYTE, next, 2, dup, &r));
	MUST(MPI_Start(&r));
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MUST(MPI_Request_free(&r));
	take(2, 1000, 2, dup);
	MUST(MPI_Comm_flush_buffer(dup));
	MUST(MPI_Comm_iflush_buffer(dup, &r));
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MUST(MPI_Comm_detach_buffer(dup, &at, &bytes));
	CHECK(at == (void *)other, "another buffer");
	SAME(bytes, sizeof other);
	FAILS(MPI_ERR_BUFFER, MPI_Comm_detach_buffer(dup, &at, &bytes));

	/* One without a bound. */
	MUST(MPI_Comm_attach_buffer(dup, MPI_BUFFER_AUTOMATIC, -1)); /* the size does not matter */
	for (int k = 0; k < 2 * K; k++) {
		put(k, LONG);
		MUST(MPI_Bsend(out, LONG, MPI_BYTE, next, 3, dup));
	}
	MUST(MPI_Barrier(dup));
	take(2 * K, LONG, 3, dup);
	MUST(MPI_Comm_detach_buffer(dup, &at, &bytes));
	CHECK(at == MPI_BUFFER_AUTOMATIC, "another buffer");

	/* Freeing the communicator, and the end of MPI, let what is in a buffer arrive. */
	MUST(MPI_Comm_attach_buffer(dup, third, sizeof third));
	put(0, LONG);
	MUST(MPI_Bsend(out, LONG, MPI_BYTE, next, 4, dup));
	MUST(MPI_Irecv(in, LONG, MPI_BYTE, prev, 4, dup, &r));
	MUST(MPI_Comm_free(&dup));
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	SAME(in[97], (char)(97 + prev));
	put(1, LONG);
	MUST(MPI_Bsend(out, LONG, MPI_BYTE, next, 5, MPI_COMM_WORLD));
	MUST(MPI_Irecv(in, LONG, MPI_BYTE, prev, 5, MPI_COMM_WORLD, &r));
	memset(out, 0, LONG);
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	SAME(in[97], (char)(98 + prev));
	done();
	return MPI_Finalize();
}
