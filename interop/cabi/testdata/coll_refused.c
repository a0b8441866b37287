// A collective that one rank refuses for its arguments: the error is local, and the next collectives match those of the
// other ranks, with their own data.
// cabi: ranks=2,3 transports=shm,sctp
#include "coll.h"

enum { rounds = 3 };

/* The last rank refuses what the others can do without it: it would only receive. */
static int last;

static void intra(MPI_Comm c)
{
	int x[8], y[8], all[64], i, counts[8], displs[8];
	MPI_Request r = MPI_REQUEST_NULL;
	MPI_Datatype open;

	MUST(MPI_Type_contiguous(2, MPI_INT, &open)); /* not committed */
	for (i = 0; i < 8; i++)
		counts[i] = 1, displs[i] = i;
	for (int round = 0; round < rounds; round++) {
		for (int what = 0; what < 6; what++) {
			int n = 0, bad = 1000 * round + what;
			for (i = 0; i < 64; i++)
				all[i] = bad;
			x[0] = bad;
			switch (what) {
			case 0:
				if (last)
					FAILS(MPI_ERR_COUNT, MPI_Bcast(x, -1, MPI_INT, 0, c));
				else
					MUST(MPI_Bcast(x, 1, MPI_INT, 0, c));
				break;
			case 1:
				if (last)
					FAILS(MPI_ERR_TYPE, MPI_Ibcast(x, 1, open, 0, c, &r));
				else
					MUST(MPI_Ibcast(x, 1, MPI_INT, 0, c, &r));
				break;
			case 2:
				if (last)
					FAILS(MPI_ERR_TYPE, MPI_Scatter(NULL, 1, MPI_INT, x, 1, MPI_DATATYPE_NULL, 0, c));
				else
					MUST(MPI_Scatter(all, 1, MPI_INT, x, 1, MPI_INT, 0, c));
				break;
			case 3:
				if (last)
					FAILS(MPI_ERR_COUNT, MPI_Iscatterv(NULL, counts, displs, MPI_INT, x, -1, MPI_INT, 0, c, &r));
				else
					MUST(MPI_Iscatterv(all, counts, displs, MPI_INT, x, 1, MPI_INT, 0, c, &r));
				break;
			case 4:
				if (last)
					FAILS(MPI_ERR_ARG, MPI_Ibcast(x, 1, MPI_INT, 0, c, NULL));
				else
					MUST(MPI_Ibcast(x, 1, MPI_INT, 0, c, &r));
				break;
			default:
				if (last) {
					FAILS(MPI_ERR_INFO, MPI_Bcast_init(x, 1, MPI_INT, 0, c, (MPI_Info)12345678, &r));
				} else {
					MUST(MPI_Bcast_init(x, 1, MPI_INT, 0, c, MPI_INFO_NULL, &r));
					MUST(MPI_Request_free(&r));
				}
			}
			MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
			/* What follows is not what the last rank has missed. */
			y[0] = rank == 0 ? 7 + bad : -1;
			MUST(MPI_Bcast(y, 1, MPI_INT, 0, c));
			CHECK(y[0] == 7 + bad, "rank %d, %d: broadcast %d instead of %d", rank, what, y[0], 7 + bad);
			y[1] = rank == 0 ? 8 + bad : -1;
			MUST(MPI_Ibcast(y + 1, 1, MPI_INT, 0, c, &r));
			MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
			CHECK(y[1] == 8 + bad, "rank %d, %d: broadcast %d instead of %d", rank, what, y[1], 8 + bad);
			MUST(MPI_Allreduce(&rank, &n, 1, MPI_INT, MPI_SUM, c));
			CHECK(n == size * (size - 1) / 2, "rank %d, %d: sum %d", rank, what, n);
		}
	}
	MUST(MPI_Type_free(&open));
}

/* Messages go from the first rank to the last one only. */
static void neighbors(MPI_Comm c)
{
	MPI_Comm g;
	int to = size - 1, from = 0, x, y = -1, twice[2];
	MPI_Request r;

	MUST(MPI_Dist_graph_create_adjacent(c, last, &from, MPI_UNWEIGHTED, rank == 0, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g));
	for (int round = 0; round < rounds; round++) {
		x = 10 * round;
		if (last)
			FAILS(MPI_ERR_COUNT, MPI_Neighbor_allgather(&x, 1, MPI_INT, &y, -1, MPI_INT, g));
		else
			MUST(MPI_Neighbor_allgather(&x, 1, MPI_INT, &y, 1, MPI_INT, g));
		x++;
		MUST(MPI_Neighbor_allgather(&x, 1, MPI_INT, &y, 1, MPI_INT, g));
		CHECK(!last || y == x, "round %d: %d instead of %d", round, y, x);
		x++;
		if (last) {
			FAILS(MPI_ERR_TYPE, MPI_Ineighbor_alltoall(&x, 1, MPI_INT, &y, 1, MPI_DATATYPE_NULL, g, &r));
		} else {
			MUST(MPI_Ineighbor_alltoall(&x, 1, MPI_INT, twice, 1, MPI_INT, g, &r));
			MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
		}
		x++;
		MUST(MPI_Ineighbor_alltoall(&x, 1, MPI_INT, &y, 1, MPI_INT, g, &r));
		MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK(!last || y == x, "round %d: %d instead of %d", round, y, x);
	}
	MUST(MPI_Comm_free(&g));
}

/* The first rank alone, and the others, of whom the last refuses. */
static void inter(MPI_Comm c)
{
	MPI_Comm half, both;
	int x, sum, n, bad;

	MUST(MPI_Comm_split(c, rank > 0, rank, &half));
	MUST(MPI_Intercomm_create(half, 0, c, rank > 0 ? 0 : 1, 3, &both));
	for (int round = 0; round < rounds; round++) {
		bad = 100 * round;
		x = rank ? -1 : bad;
		if (last)
			FAILS(MPI_ERR_COUNT, MPI_Bcast(&x, -1, MPI_INT, 0, both));
		else if (size == 2 || rank == 0) /* with more the group of the last rank passes it on */
			MUST(MPI_Bcast(&x, 1, MPI_INT, rank ? 0 : MPI_ROOT, both));
		else
			MUST(MPI_Bcast(&x, 1, MPI_INT, 0, both));
		x = rank ? -1 : bad + 1;
		MUST(MPI_Bcast(&x, 1, MPI_INT, rank ? 0 : MPI_ROOT, both));
		CHECK(x == bad + 1, "round %d: %d instead of %d", round, x, bad + 1);
		n = rank + 1;
		MUST(MPI_Allreduce(&n, &sum, 1, MPI_INT, MPI_SUM, both));
		CHECK(sum == (rank ? 1 : size * (size + 1) / 2 - 1), "round %d: sum %d", round, sum);
	}
	MUST(MPI_Comm_free(&both));
	MUST(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
	MPI_Comm c;

	begin(&argc, &argv);
	last = rank == size - 1;
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	MUST(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	intra(c);
	neighbors(c);
	inter(c);
	MUST(MPI_Comm_free(&c));
	end();
	return 0;
}
