/* What may be cancelled is cancelled or complete, never half of it. */
#include "p2p.h"

int main(int argc, char **argv)
{
	int in[2] = {-1, -1}, flag, n, *big;
	enum { LONG = 200000 };
	MPI_Request r;
	MPI_Status st;
	MUST(MPI_Init(&argc, &argv));
	ring_of_all();
	big = calloc(LONG, sizeof(int));

	/* A receive that nothing has matched. */
	MUST(MPI_Irecv(in, 1, MPI_INT, prev, 1, MPI_COMM_WORLD, &r));
	MUST(MPI_Cancel(&r));
	MUST(MPI_Wait(&r, &st));
	MUST(MPI_Test_cancelled(&st, &flag));
	SAME(flag, 1);
	MUST(MPI_Get_count(&st, MPI_INT, &n));
	SAME(n, 0);
	MUST(MPI_Barrier(MPI_COMM_WORLD));

	/* It takes no message: the next receive gets it. */
	MUST(MPI_Sendrecv(&rank, 1, MPI_INT, next, 1, in, 1, MPI_INT, prev, 1, MPI_COMM_WORLD, &st));
	SAME(in[0], prev);
	MUST(MPI_Test_cancelled(&st, &flag));
	SAME(flag, 0);

	/* Sends of all modes and lengths: what was not cancelled comes. */
	for (int len = 1; len <= LONG; len += LONG - 1) {
		for (int mode = 0; mode < 3; mode++) {
			int cancelled, theirs, expect;
			if (mode == 0)
				MUST(MPI_Isend(big, len, MPI_INT, next, 2, MPI_COMM_WORLD, &r));
			else if (mode == 1)
				MUST(MPI_Issend(big, len, MPI_INT, next, 2, MPI_COMM_WORLD, &r));
			else
				MUST(MPI_Irsend(big, len, MPI_INT, next, 2, MPI_COMM_WORLD, &r));
			MUST(MPI_Cancel(&r));
			/* A standard send that cannot be cancelled may wait for its receive: the receiver is told by another message. */
			MUST(MPI_Test(&r, &flag, &st));
			MUST(MPI_Barrier(MPI_COMM_WORLD));
			if (!flag)
				MUST(MPI_Wait(&r, &st));
			MUST(MPI_Test_cancelled(&st, &cancelled));
			/* Long and synchronous ones, which nothing has matched, always are. */
			if (mode == 1 || len == LONG)
				SAME(cancelled, 1);
			MUST(MPI_Sendrecv(&cancelled, 1, MPI_INT, next, 3, &theirs, 1, MPI_INT, prev, 3, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE));
			expect = !theirs;
			do
				MUST(MPI_Iprobe(prev, 2, MPI_COMM_WORLD, &flag, &st));
			while (flag != expect); /* a message of another tag may be faster */
			if (flag)
				MUST(MPI_Recv(big, len, MPI_INT, prev, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			MUST(MPI_Barrier(MPI_COMM_WORLD));
		}
	}

	/* A persistent receive is inactive afterwards, and can be started again. */
	MUST(MPI_Recv_init(in, 1, MPI_INT, prev, 4, MPI_COMM_WORLD, &r));
	MUST(MPI_Start(&r));
	MUST(MPI_Cancel(&r));
	MUST(MPI_Wait(&r, &st));
	MUST(MPI_Test_cancelled(&st, &flag));
	SAME(flag, 1);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	in[0] = -1;
	MUST(MPI_Start(&r));
	MUST(MPI_Send(&rank, 1, MPI_INT, next, 4, MPI_COMM_WORLD));
	MUST(MPI_Wait(&r, &st));
	SAME(in[0], prev);
	MUST(MPI_Test_cancelled(&st, &flag));
	SAME(flag, 0);
	MUST(MPI_Request_free(&r));

	/* A freed receive goes on. */
	volatile int late = -1;
	MUST(MPI_Irecv((int *)&late, 1, MPI_INT, prev, 5, MPI_COMM_WORLD, &r));
	MUST(MPI_Request_free(&r));
	SAME(r, MPI_REQUEST_NULL);
	MUST(MPI_Ssend(&rank, 1, MPI_INT, next, 5, MPI_COMM_WORLD));
	while (late == -1)
		MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
	SAME(late, prev);
	free(big);
	done();
	return MPI_Finalize();
}
