/* Neighbours that send blocks of other lengths than they receive, and one that only receives.
 * cabi: ranks=2,4 */
#include "check.h"

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));

	/* Pairs: the even one sends 1 number and receives 5. */
	int peer = rank ^ 1, mine = rank % 2 ? 5 : 1, its = 6 - mine;
	int out[5], in[5];
	MPI_Comm pairs;
	MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &peer, MPI_UNWEIGHTED, 1, &peer, MPI_UNWEIGHTED,
		MPI_INFO_NULL, 0, &pairs));
	for (int what = 0; what < 2; what++) {
		for (int i = 0; i < 5; i++) {
			out[i] = 10 * rank + i;
			in[i] = -1;
		}
		if (what == 0)
			MUST(MPI_Neighbor_allgather(out, mine, MPI_INT, in, its, MPI_INT, pairs));
		else
			MUST(MPI_Neighbor_alltoall(out, mine, MPI_INT, in, its, MPI_INT, pairs));
		for (int i = 0; i < 5; i++)
			CHECK(in[i] == (i < its ? 10 * peer + i : -1), "number %d is %d", i, in[i]);
	}
	MUST(MPI_Comm_free(&pairs));

	/* All others send to rank 0, which sends nothing. */
	int sources[16], hub = 0, n = 0, got[16];
	for (int r = 1; r < size; r++)
		sources[n++] = r;
	MPI_Comm star;
	MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank ? 0 : n, sources, MPI_UNWEIGHTED, rank ? 1 : 0, &hub,
		MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star));
	if (rank == 0) {
		MUST(MPI_Neighbor_allgather(NULL, 0, MPI_INT, got, 1, MPI_INT, star));
		for (int i = 0; i < n; i++)
			CHECK(got[i] == 100 + i + 1, "number %d is %d", i, got[i]);
	} else {
		int v = 100 + rank;
		MUST(MPI_Neighbor_allgather(&v, 1, MPI_INT, NULL, 0, MPI_INT, star));
	}
	MUST(MPI_Comm_free(&star));
	MUST(MPI_Finalize());
	if (rank == 0)
		puts("ok");
	return 0;
}
