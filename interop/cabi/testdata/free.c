// What is pending on a communicator when it is freed completes: messages of all lengths, a duplicate's, and
// persistent requests, which may be started again.
// cabi: ranks=2
#include "check.h"

#define HOLDS(x) CHECK(x, "does not hold")

enum { LONG = 1 << 20 };

int main(int argc, char **argv)
{
	static int in[2][LONG], out[2][LONG];
	int rank, other;
	MPI_Comm c;
	MPI_Request reqs[4], again[2];

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	other = 1 - rank;
	for (int i = 0; i < LONG; i++)
		out[0][i] = out[1][i] = rank + i;
	for (int first = 0; first < 2; first++) { // which rank frees first
		memset(in, 0, sizeof in);
		MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
		if (rank == first) {
			MUST(MPI_Irecv(in[0], 1, MPI_INT, other, 1, c, &reqs[0]));
			MUST(MPI_Irecv(in[1], LONG, MPI_INT, MPI_ANY_SOURCE, 2, c, &reqs[1]));
			MUST(MPI_Isend(out[0], 1, MPI_INT, other, 1, c, &reqs[2]));
			MUST(MPI_Isend(out[1], LONG, MPI_INT, other, 2, c, &reqs[3]));
			MUST(MPI_Comm_free(&c));
			MUST(MPI_Barrier(MPI_COMM_WORLD));
			MUST(MPI_Waitall(4, reqs, MPI_STATUSES_IGNORE));
		} else {
			MUST(MPI_Barrier(MPI_COMM_WORLD));
			MUST(MPI_Irecv(in[0], 1, MPI_INT, other, 1, c, &reqs[0]));
			MUST(MPI_Irecv(in[1], LONG, MPI_INT, other, 2, c, &reqs[1]));
			MUST(MPI_Isend(out[0], 1, MPI_INT, other, 1, c, &reqs[2]));
			MUST(MPI_Isend(out[1], LONG, MPI_INT, other, 2, c, &reqs[3]));
			MUST(MPI_Comm_free(&c));
			MUST(MPI_Waitall(4, reqs, MPI_STATUSES_IGNORE));
		}
		HOLDS(in[0][0] == other && in[1][0] == other && in[1][LONG - 1] == other + LONG - 1);
	}

	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	MUST(MPI_Recv_init(in[0], 8, MPI_INT, other, 3, c, &again[0]));
	MUST(MPI_Send_init(out[0], 8, MPI_INT, other, 3, c, &again[1]));
	MUST(MPI_Comm_free(&c));
	for (int i = 0; i < 3; i++) {
		memset(in[0], 0, 32);
		MUST(MPI_Startall(2, again));
		MUST(MPI_Waitall(2, again, MPI_STATUSES_IGNORE));
		HOLDS(in[0][7] == other + 7);
	}
	MUST(MPI_Request_free(&again[0]));
	MUST(MPI_Request_free(&again[1]));
	done();
	MUST(MPI_Finalize());
	return 0;
}
