/* Probes, and messages that they take. */
#include "p2p.h"

int main(int argc, char **argv)
{
	int n, flag, *big, small[3] = {7, 8, 9}, got[3];
	MPI_Status st;
	MPI_Message msg;
	MPI_Request r[3];
	enum { LONG = 100000 };
	MUST(MPI_Init(&argc, &argv));
	ring_of_all();
	big = malloc(2 * LONG * sizeof(int));

	MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &st));
	SAME(flag, 0);
	MUST(MPI_Barrier(MPI_COMM_WORLD));

	/* A probe leaves the message. */
	MUST(MPI_Isend(small, 3, MPI_INT, next, 5, MPI_COMM_WORLD, &r[0]));
	MUST(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st));
	for (flag = 0; !flag;)
		MUST(MPI_Iprobe(prev, 5, MPI_COMM_WORLD, &flag, &st));
	SAME(st.MPI_SOURCE, prev);
	SAME(st.MPI_TAG, 5);
	MUST(MPI_Get_count(&st, MPI_INT, &n));
	SAME(n, 3);
	MUST(MPI_Iprobe(prev, 6, MPI_COMM_WORLD, &flag, &st));
	SAME(flag, 0);
	MUST(MPI_Recv(got, n, MPI_INT, st.MPI_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	SAME(got[2], 9);
	MUST(MPI_Wait(&r[0], MPI_STATUS_IGNORE));

	/* A matched probe takes it: a receive gets the next one. Short and long ones. */
	for (int i = 0; i < LONG; i++)
		big[i] = 3 * i + rank;
	MUST(MPI_Isend(small, 2, MPI_INT, next, 1, MPI_COMM_WORLD, &r[0]));
	MUST(MPI_Isend(big, LONG, MPI_INT, next, 1, MPI_COMM_WORLD, &r[1]));
	MUST(MPI_Isend(small, 3, MPI_INT, next, 1, MPI_COMM_WORLD, &r[2]));
	MPI_Message first, second;
	MUST(MPI_Mprobe(prev, 1, MPI_COMM_WORLD, &first, &st));
	MUST(MPI_Get_count(&st, MPI_INT, &n));
	SAME(n, 2);
	for (flag = 0; !flag;)
		MUST(MPI_Improbe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, &second, &st));
	MUST(MPI_Get_count(&st, MPI_INT, &n));
	SAME(n, LONG);
	MUST(MPI_Recv(got, 3, MPI_INT, prev, 1, MPI_COMM_WORLD, &st));
	MUST(MPI_Get_count(&st, MPI_INT, &n));
	SAME(n, 3);
	MUST(MPI_Mrecv(big + LONG, LONG, MPI_INT, &second, &st));
	SAME(second, MPI_MESSAGE_NULL);
	SAME(st.MPI_SOURCE, prev);
	for (int i = 0; i < LONG; i++)
		SAME(big[LONG + i], 3 * i + prev);
	MPI_Request q;
	got[0] = 0;
	MUST(MPI_Imrecv(got, 2, MPI_INT, &first, &q));
	SAME(first, MPI_MESSAGE_NULL);
	MUST(MPI_Cancel(&q)); /* in vain: it has its message */
	MUST(MPI_Wait(&q, &st));
	MUST(MPI_Test_cancelled(&st, &flag));
	SAME(flag, 0);
	SAME(st.MPI_TAG, 1);
	SAME(got[0], 7);
	MUST(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));

	/* Nobody. */
	MUST(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &msg, &st));
	SAME(msg, MPI_MESSAGE_NO_PROC);
	MUST(MPI_Mrecv(got, 1, MPI_INT, &msg, &st));
	SAME(msg, MPI_MESSAGE_NULL);
	SAME(st.MPI_SOURCE, MPI_PROC_NULL);
	MUST(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &msg, &st));
	SAME(flag, 1);
	MUST(MPI_Imrecv(got, 1, MPI_INT, &msg, &q));
	MUST(MPI_Cancel(&q));
	MUST(MPI_Wait(&q, &st));
	SAME(st.MPI_SOURCE, MPI_PROC_NULL);
	MUST(MPI_Get_count(&st, MPI_INT, &n));
	SAME(n, 0);

	/* A taken message is received once. */
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_REQUEST, MPI_Mrecv(got, 1, MPI_INT, &msg, &st));
	free(big);
	done();
	return MPI_Finalize();
}
