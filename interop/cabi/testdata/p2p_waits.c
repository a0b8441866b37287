/* Waits and tests on several requests, with receives that complete in another order. */
#include "p2p.h"

enum { N = 12 };

static int out[N], in[N];
static MPI_Request rs[2 * N];
static MPI_Status sts[2 * N];

/* Starts N receives from the rank before and N sends to the one behind, in the opposite order. */
static void start(int round)
{
	for (int i = 0; i < N; i++) {
		in[i] = -1;
		out[i] = 1000 * rank + 100 * round + i;
		MUST(MPI_Irecv(&in[i], 1, MPI_INT, prev, i, MPI_COMM_WORLD, &rs[i]));
	}
	for (int i = N - 1; i >= 0; i--)
		MUST(MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &rs[N + i]));
}

static void check(int i, int round, MPI_Status *st)
{
	int count;
	SAME(rs[i], MPI_REQUEST_NULL);
	if (i >= N)
		return;
	SAME(in[i], 1000 * prev + 100 * round + i);
	if (st == MPI_STATUS_IGNORE)
		return;
	SAME(st->MPI_SOURCE, prev);
	SAME(st->MPI_TAG, i);
	MUST(MPI_Get_count(st, MPI_INT, &count));
	SAME(count, 1);
}

static void all_of(int round)
{
	int flag = 0;
	start(round);
	MUST(MPI_Waitall(2 * N, rs, sts));
	for (int i = 0; i < 2 * N; i++)
		check(i, round, &sts[i]);
	start(round + 1);
	MUST(MPI_Waitall(2 * N, rs, MPI_STATUSES_IGNORE));
	for (int i = 0; i < 2 * N; i++)
		check(i, round + 1, MPI_STATUS_IGNORE);
	start(round + 2);
	while (!flag)
		MUST(MPI_Testall(2 * N, rs, &flag, sts));
	for (int i = 0; i < 2 * N; i++)
		check(i, round + 2, &sts[i]);
}

static void any_of(int round)
{
	int index, flag;
	MPI_Status st;
	start(round);
	for (int k = 0; k < 2 * N; k++) {
		if (k % 2) {
			MUST(MPI_Waitany(2 * N, rs, &index, &st));
		} else {
			do
				MUST(MPI_Testany(2 * N, rs, &index, &flag, &st));
			while (!flag);
		}
		CHECK(index >= 0 && index < 2 * N, "index %d", index);
		check(index, round, &st);
	}
	MUST(MPI_Waitany(2 * N, rs, &index, &st));
	SAME(index, MPI_UNDEFINED);
	SAME(st.MPI_SOURCE, MPI_ANY_SOURCE);
	SAME(st.MPI_TAG, MPI_ANY_TAG);
	flag = 0;
	MUST(MPI_Testany(2 * N, rs, &index, &flag, &st));
	SAME(flag, 1);
	SAME(index, MPI_UNDEFINED);
}

static void some_of(int round)
{
	int indices[2 * N], n;
	start(round);
	for (int seen = 0, k = 0; seen < 2 * N; k++) {
		if (k % 2)
			MUST(MPI_Testsome(2 * N, rs, &n, indices, sts));
		else
			MUST(MPI_Waitsome(2 * N, rs, &n, indices, sts));
		CHECK(n >= 1 - k % 2, "%d are done", n);
		for (int j = 0; j < n; j++)
			check(indices[j], round, &sts[j]);
		seen += n;
	}
	MUST(MPI_Waitsome(2 * N, rs, &n, indices, sts));
	SAME(n, MPI_UNDEFINED);
	MUST(MPI_Testsome(2 * N, rs, &n, indices, MPI_STATUSES_IGNORE));
	SAME(n, MPI_UNDEFINED);
}

/* Looks that leave the requests. */
static void looks(int round)
{
	int flag = 0, index, n, indices[2 * N];
	MPI_Status st;
	start(round);
	while (!flag)
		MUST(MPI_Request_get_status(rs[0], &flag, &st));
	SAME(st.MPI_SOURCE, prev);
	CHECK(rs[0] != MPI_REQUEST_NULL, "freed");
	flag = 0;
	while (!flag)
		MUST(MPI_Request_get_status_all(2 * N, rs, &flag, sts));
	SAME(sts[N - 1].MPI_TAG, N - 1);
	MUST(MPI_Request_get_status_any(2 * N, rs, &index, &flag, &st));
	SAME(flag, 1);
	SAME(index, 0);
	MUST(MPI_Request_get_status_some(2 * N, rs, &n, indices, sts));
	SAME(n, 2 * N);
	SAME(sts[3].MPI_TAG, 3);
	MUST(MPI_Waitall(2 * N, rs, sts));
	for (int i = 0; i < 2 * N; i++)
		check(i, round, &sts[i]);
	MUST(MPI_Request_get_status_some(2 * N, rs, &n, indices, sts));
	SAME(n, MPI_UNDEFINED);
	MUST(MPI_Request_get_status_any(2 * N, rs, &index, &flag, &st));
	SAME(flag, 1);
	SAME(index, MPI_UNDEFINED);
}

/* Persistent requests stay in the lists, and are skipped while they are inactive. */
static void persistent(void)
{
	int index, flag, n, indices[N];
	MPI_Status st;
	for (int i = 0; i < N; i += 2) {
		MUST(MPI_Recv_init(&in[i], 1, MPI_INT, prev, i, MPI_COMM_WORLD, &rs[i]));
		MUST(MPI_Send_init(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &rs[i + 1]));
	}
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < N; i++)
			out[i] = 100 * round + i;
		MUST(MPI_Startall(N, rs));
		switch (round) {
		case 0:
			MUST(MPI_Waitall(N, rs, sts));
			break;
		case 1:
			for (int k = 0; k < N; k++) {
				MUST(MPI_Waitany(N, rs, &index, &st));
				CHECK(index != MPI_UNDEFINED, "after %d", k);
			}
			break;
		case 2:
			for (int k = 0; k < N; k += n)
				MUST(MPI_Waitsome(N, rs, &n, indices, sts));
			break;
		default:
			for (flag = 0; !flag;)
				MUST(MPI_Testall(N, rs, &flag, sts));
		}
		for (int i = 0; i < N; i += 2)
			SAME(in[i], 100 * round + i);
		MUST(MPI_Waitany(N, rs, &index, &st));
		SAME(index, MPI_UNDEFINED);
		MUST(MPI_Waitall(N, rs, sts));
		SAME(sts[0].MPI_SOURCE, MPI_ANY_SOURCE);
		for (int i = 0; i < N; i++)
			CHECK(rs[i] != MPI_REQUEST_NULL, "request %d was freed", i);
	}
	for (int i = 0; i < N; i++)
		MUST(MPI_Request_free(&rs[i]));
}

/* An error of one of several operations is in its status. */
static void failures(void)
{
	int big[4] = {1, 2, 3, 4}, one, n, indices[3];
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 3; i++)
			sts[i].MPI_ERROR = 77;
		MUST(MPI_Irecv(&in[0], 1, MPI_INT, prev, 0, MPI_COMM_WORLD, &rs[0]));
		MUST(MPI_Irecv(&one, 1, MPI_INT, prev, 1, MPI_COMM_WORLD, &rs[1]));
		MUST(MPI_Irecv(&in[2], 1, MPI_INT, prev, 2, MPI_COMM_WORLD, &rs[2]));
		MUST(MPI_Send(big, 1, MPI_INT, next, 0, MPI_COMM_WORLD));
		MUST(MPI_Send(big, 4, MPI_INT, next, 1, MPI_COMM_WORLD));
		MUST(MPI_Send(big, 1, MPI_INT, next, 2, MPI_COMM_WORLD));
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		if (k == 0) {
			FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(3, rs, sts));
			SAME(sts[0].MPI_ERROR, MPI_SUCCESS);
			int class;
			MUST(MPI_Error_class(sts[1].MPI_ERROR, &class));
			SAME(class, MPI_ERR_TRUNCATE);
			SAME(sts[2].MPI_ERROR, MPI_SUCCESS);
			continue;
		}
		for (int seen = 0, errors = 0; seen < 3; seen += n) {
			int code = MPI_Waitsome(3, rs, &n, indices, sts), class;
			MUST(MPI_Error_class(code, &class));
			if (class == MPI_ERR_IN_STATUS)
				for (int j = 0; j < n; j++) {
					MUST(MPI_Error_class(sts[j].MPI_ERROR, &class));
					SAME(class, indices[j] == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
					errors += class != MPI_SUCCESS;
				}
			else
				SAME(class, MPI_SUCCESS);
			if (seen + n == 3)
				SAME(errors, 1);
		}
	}
	MUST(MPI_Irecv(&one, 1, MPI_INT, prev, 1, MPI_COMM_WORLD, &rs[0]));
	MUST(MPI_Send(big, 4, MPI_INT, next, 1, MPI_COMM_WORLD));
	sts[0].MPI_ERROR = 77;
	FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&rs[0], &sts[0]));
	SAME(rs[0], MPI_REQUEST_NULL);
	SAME(sts[0].MPI_ERROR, 77);
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

static MPI_Request fresh;

static int no_query(void *state, MPI_Status *st)
{
	(void)state;
	MUST(MPI_Status_set_elements(st, MPI_INT, 0));
	return MPI_Status_set_cancelled(st, 0);
}

/* Starts a receive while the list is completed: it may get the memory of a request that the list has freed. */
static int start_another(void *state)
{
	(void)state;
	return MPI_Irecv(&in[1], 1, MPI_INT, prev, 31, MPI_COMM_WORLD, &fresh);
}

static int no_cancel(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;
}

/* The same request twice in a list, which is erroneous, completes no other one. */
static void twice(void)
{
	int flag, n, indices[3];

	for (int how = 0; how < 4; how++) {
		MPI_Request q[3];
		in[0] = in[1] = -1;
		out[0] = 10 * rank + how;
		out[1] = out[0] + 5;
		fresh = MPI_REQUEST_NULL;
		MUST(MPI_Irecv(&in[0], 1, MPI_INT, prev, 30, MPI_COMM_WORLD, &q[0]));
		q[2] = q[0];
		MUST(MPI_Grequest_start(no_query, start_another, no_cancel, NULL, &q[1]));
		MUST(MPI_Grequest_complete(q[1]));
		MUST(MPI_Send(&out[0], 1, MPI_INT, next, 30, MPI_COMM_WORLD));
		do
			MUST(MPI_Request_get_status(q[0], &flag, MPI_STATUS_IGNORE));
		while (!flag);
		switch (how) {
		case 0:
			MUST(MPI_Waitall(3, q, sts));
			break;
		case 1:
			MUST(MPI_Testall(3, q, &flag, sts));
			SAME(flag, 1);
			break;
		case 2:
			MUST(MPI_Waitsome(3, q, &n, indices, sts));
			break;
		default:
			MUST(MPI_Testsome(3, q, &n, indices, sts));
		}
		SAME(in[0], 10 * prev + how);
		SAME(q[0], MPI_REQUEST_NULL);
		SAME(q[1], MPI_REQUEST_NULL);
		CHECK(fresh != MPI_REQUEST_NULL, "the generalized request was not freed");
		MUST(MPI_Test(&fresh, &flag, MPI_STATUS_IGNORE));
		SAME(flag, 0);
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		MUST(MPI_Send(&out[1], 1, MPI_INT, next, 31, MPI_COMM_WORLD));
		MUST(MPI_Wait(&fresh, MPI_STATUS_IGNORE));
		SAME(in[1], 10 * prev + how + 5);
	}
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	ring_of_all();
	for (int i = 0; i < 2 * N; i++)
		rs[i] = MPI_REQUEST_NULL;
	all_of(0);
	any_of(4);
	some_of(5);
	looks(6);
	persistent();
	failures();
	twice();
	done();
	return MPI_Finalize();
}
