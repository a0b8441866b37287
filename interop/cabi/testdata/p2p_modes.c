/* Messages in all modes and of all lengths around a ring, blocking, nonblocking and persistent. */
/* cabi: ranks=1,2,8 */
#include "p2p.h"

static void fill(int *b, int n, int seed)
{
	for (int i = 0; i < n; i++)
		b[i] = seed * 7919 + i;
}

static void verify(const int *b, int n, int seed)
{
	for (int i = 0; i < n; i++)
		SAME(b[i], seed * 7919 + i);
}

static void received(MPI_Status *st, int source, int tag, int n)
{
	int count;
	SAME(st->MPI_SOURCE, source);
	SAME(st->MPI_TAG, tag);
	MPI_Get_count(st, MPI_INT, &count);
	SAME(count, n);
}

enum { STANDARD, BUFFERED, SYNCHRONOUS, READY, MODES };

static int isend(int mode, int *b, int n, int tag, MPI_Request *r)
{
	switch (mode) {
	case BUFFERED: return MPI_Ibsend(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
	case SYNCHRONOUS: return MPI_Issend(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
	case READY: return MPI_Irsend(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
	}
	return MPI_Isend(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
}

static int send(int mode, int *b, int n, int tag)
{
	switch (mode) {
	case BUFFERED: return MPI_Bsend(b, n, MPI_INT, next, tag, MPI_COMM_WORLD);
	case SYNCHRONOUS: return MPI_Ssend(b, n, MPI_INT, next, tag, MPI_COMM_WORLD);
	case READY: return MPI_Rsend(b, n, MPI_INT, next, tag, MPI_COMM_WORLD);
	}
	return MPI_Send(b, n, MPI_INT, next, tag, MPI_COMM_WORLD);
}

static int sendinit(int mode, int *b, int n, int tag, MPI_Request *r)
{
	switch (mode) {
	case BUFFERED: return MPI_Bsend_init(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
	case SYNCHRONOUS: return MPI_Ssend_init(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
	case READY: return MPI_Rsend_init(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
	}
	return MPI_Send_init(b, n, MPI_INT, next, tag, MPI_COMM_WORLD, r);
}

static void ring(int n)
{
	int *out = malloc((n + 1) * sizeof(int)), *in = malloc((n + 1) * sizeof(int));
	MPI_Request rs[2];
	MPI_Status sts[2], st;
	for (int mode = 0; mode < MODES; mode++) {
		/* Blocking, into a receive that is posted: ready sends need that. */
		memset(in, 255, n * sizeof(int));
		fill(out, n, mode + rank);
		MPI_Irecv(in, n, MPI_INT, prev, mode, MPI_COMM_WORLD, &rs[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		send(mode, out, n, mode);
		MPI_Wait(&rs[0], &st);
		SAME(rs[0], MPI_REQUEST_NULL);
		received(&st, prev, mode, n);
		verify(in, n, mode + prev);

		/* Nonblocking, from any source with any tag. */
		memset(in, 255, n * sizeof(int));
		fill(out, n, 10 + mode + rank);
		MPI_Irecv(in, n, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &rs[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		isend(mode, out, n, 10 + mode, &rs[1]);
		MPI_Waitall(2, rs, sts);
		received(&sts[0], prev, 10 + mode, n);
		verify(in, n, 10 + mode + prev);
		MPI_Barrier(MPI_COMM_WORLD);

		/* Persistent, three times. */
		MPI_Recv_init(in, n, MPI_INT, prev, 20 + mode, MPI_COMM_WORLD, &rs[0]);
		sendinit(mode, out, n, 20 + mode, &rs[1]);
		for (int i = 0; i < 3; i++) {
			memset(in, 255, n * sizeof(int));
			fill(out, n, 20 + mode + rank + i);
			MPI_Start(&rs[0]);
			MPI_Barrier(MPI_COMM_WORLD);
			MPI_Startall(1, &rs[1]);
			MPI_Wait(&rs[1], MPI_STATUS_IGNORE);
			MPI_Wait(&rs[0], &st);
			CHECK(rs[0] != MPI_REQUEST_NULL && rs[1] != MPI_REQUEST_NULL, "rank %d", rank);
			received(&st, prev, 20 + mode, n);
			verify(in, n, 20 + mode + prev + i);
		}
		MPI_Request_free(&rs[0]);
		MPI_Request_free(&rs[1]);
		CHECK(rs[0] == MPI_REQUEST_NULL, "rank %d", rank);
	}
	/* Both directions in one call. */
	fill(out, n, rank);
	MPI_Sendrecv(out, n, MPI_INT, next, 1, in, n, MPI_INT, prev, 1, MPI_COMM_WORLD, &st);
	received(&st, prev, 1, n);
	verify(in, n, prev);
	MPI_Sendrecv_replace(out, n, MPI_INT, next, 2, prev, 2, MPI_COMM_WORLD, &st);
	received(&st, prev, 2, n);
	verify(out, n, prev);
	fill(out, n, rank);
	MPI_Isendrecv(out, n, MPI_INT, next, 3, in, n, MPI_INT, prev, MPI_ANY_TAG, MPI_COMM_WORLD, &rs[0]);
	MPI_Wait(&rs[0], &st);
	received(&st, prev, 3, n);
	verify(in, n, prev);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isendrecv_replace(out, n, MPI_INT, next, 4, prev, 4, MPI_COMM_WORLD, &rs[0]);
	MPI_Wait(&rs[0], &st);
	received(&st, prev, 4, n);
	verify(out, n, prev);
	free(out);
	free(in);
}

/* Items with gaps: every second column of a matrix, of another layout on the other side. */
static void columns(int n)
{
	double *m = malloc(n * 4 * sizeof(double)), *v = malloc(2 * n * sizeof(double));
	MPI_Datatype column, both;
	MPI_Request r;
	MPI_Status st;
	int count;
	MPI_Type_vector(n, 1, 4, MPI_DOUBLE, &column);
	MPI_Type_create_resized(column, 0, 2 * sizeof(double), &both);
	MPI_Type_commit(&both);
	for (int i = 0; i < 4 * n; i++)
		m[i] = rank * 1e6 + i;
	MPI_Irecv(v, 2 * n, MPI_DOUBLE, prev, 5, MPI_COMM_WORLD, &r);
	MPI_Send(m, 2, both, next, 5, MPI_COMM_WORLD);
	MPI_Wait(&r, &st);
	MPI_Get_count(&st, both, &count);
	SAME(count, 2);
	for (int i = 0; i < n; i++) {
		CHECK(v[i] == prev * 1e6 + 4 * i, "rank %d", rank);
		CHECK(v[n + i] == prev * 1e6 + 4 * i + 2, "rank %d", rank);
	}
	/* Back into the matrix, only half of it. */
	MPI_Irecv(m, 2, both, next, 6, MPI_COMM_WORLD, &r);
	for (int i = 0; i < n; i++)
		v[i] = -i;
	MPI_Send(v, n, MPI_DOUBLE, prev, 6, MPI_COMM_WORLD);
	MPI_Wait(&r, &st);
	MPI_Get_count(&st, both, &count);
	SAME(count, 1);
	MPI_Get_elements(&st, both, &count);
	SAME(count, n);
	for (int i = 0; i < n; i++) {
		CHECK(m[4 * i] == -i, "rank %d", rank);
		CHECK(m[4 * i + 1] == rank * 1e6 + 4 * i + 1, "rank %d", rank);
		CHECK(m[4 * i + 2] == rank * 1e6 + 4 * i + 2, "rank %d", rank);
	}
	MPI_Type_free(&column);
	MPI_Type_free(&both);
	free(m);
	free(v);
}

/* Absolute addresses, and a datatype with a negative lower bound. */
static void bottom(void)
{
	int a = rank, b[3] = {10, 20, 30}, ia = -1, ib[3] = {0};
	MPI_Aint at[2];
	int lens[2] = {1, 3};
	MPI_Datatype types[2] = {MPI_INT, MPI_INT}, out, in;
	MPI_Get_address(&a, &at[0]);
	MPI_Get_address(b, &at[1]);
	MPI_Type_create_struct(2, lens, at, types, &out);
	MPI_Get_address(&ia, &at[0]);
	MPI_Get_address(ib, &at[1]);
	MPI_Type_create_struct(2, lens, at, types, &in);
	MPI_Type_commit(&out);
	MPI_Type_commit(&in);
	MPI_Sendrecv(MPI_BOTTOM, 1, out, next, 7, MPI_BOTTOM, 1, in, prev, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	SAME(ia, prev);
	SAME(ib[2], 30);
	MPI_Type_free(&out);
	MPI_Type_free(&in);

	int back[4] = {1, 2, 3, 4}, got[4] = {0};
	MPI_Datatype reversed;
	MPI_Type_vector(4, 1, -1, MPI_INT, &reversed);
	MPI_Type_commit(&reversed);
	MPI_Sendrecv(&back[3], 1, reversed, next, 8, got, 4, MPI_INT, prev, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 4; i++)
		SAME(got[i], 4 - i);
	MPI_Type_free(&reversed);
}

static void nobody(void)
{
	int b = 5, count, flag = 0;
	MPI_Status st;
	MPI_Request r;
	MPI_Send(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Ssend(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Bsend(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Recv(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st);
	SAME(b, 5);
	SAME(st.MPI_SOURCE, MPI_PROC_NULL);
	SAME(st.MPI_TAG, MPI_ANY_TAG);
	MPI_Get_count(&st, MPI_INT, &count);
	SAME(count, 0);
	MPI_Irecv(&b, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &r);
	MPI_Wait(&r, &st);
	SAME(st.MPI_SOURCE, MPI_PROC_NULL);
	MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &st);
	SAME(st.MPI_SOURCE, MPI_PROC_NULL);
	MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &st);
	SAME(flag, 1);
	MPI_Sendrecv(&b, 1, MPI_INT, MPI_PROC_NULL, 1, &b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st);
	SAME(st.MPI_SOURCE, MPI_PROC_NULL);
	MPI_Send_init(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r);
	MPI_Start(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
	static char room[16 << 20];
	void *detached;
	int bytes;
	MUST(MPI_Init(&argc, &argv));
	ring_of_all();
	MPI_Buffer_attach(room, sizeof room);
	int lengths[] = {0, 1, 100, 20000, 300000};
	for (int i = 0; i < 5; i++)
		ring(lengths[i]);
	columns(10);
	columns(30000);
	bottom();
	nobody();
	MPI_Buffer_detach(&detached, &bytes);
	CHECK(detached == (void *)room, "rank %d", rank);
	SAME(bytes, sizeof room);
	done();
	return MPI_Finalize();
}
