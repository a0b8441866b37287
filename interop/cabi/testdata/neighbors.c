// Collectives of neighbours in grids and graphs, in all forms, with gaps, and with a neighbour twice.
// cabi: ranks=1,2,4,8 transports=shm,sctp
#include "coll.h"

enum { N = 3 };

/* In a ring of one or two ranks a neighbour is there twice: what goes down comes from above. */
static void ring(int form, MPI_Comm c)
{
	int a[4 * N], b[4 * N], up = (rank + 1) % size, down = (rank + size - 1) % size;
	fill(a, N, rank);
	fill(b, 4 * N, -1);
	DO(form, Neighbor_allgather, neighbor_allgather, a, N, MPI_INT, b, N, MPI_INT, c);
	CHECK(b[0] == down && b[N] == up && b[2 * N - 1] == up && b[2 * N] == -1, "Neighbor_allgather: %d, %d", b[0], b[N]);

	int counts[2] = {N, N}, displs[2] = {2 * N, 0};
	fill(b, 4 * N, -1);
	DO(form, Neighbor_allgatherv, neighbor_allgatherv, a, N, MPI_INT, b, counts, displs, MPI_INT, c);
	CHECK(b[2 * N] == down && b[0] == up && b[N] == -1, "Neighbor_allgatherv: %d, %d", b[2 * N], b[0]);

	for (int i = 0; i < 2 * N; i++)
		a[i] = 100 * rank + i;
	fill(b, 4 * N, -1);
	DO(form, Neighbor_alltoall, neighbor_alltoall, a, N, MPI_INT, b, N, MPI_INT, c);
	CHECK(b[0] == 100 * down + N && b[N] == 100 * up, "Neighbor_alltoall: %d, %d", b[0], b[N]);

	int sdispls[2] = {N, 0};
	fill(b, 4 * N, -1);
	DO(form, Neighbor_alltoallv, neighbor_alltoallv, a, counts, sdispls, MPI_INT, b, counts, displs, MPI_INT, c);
	CHECK(b[2 * N] == 100 * down && b[0] == 100 * up + N, "Neighbor_alltoallv: %d, %d", b[2 * N], b[0]);

	/* One side of ints in a row, the other of every other int. */
	MPI_Datatype every, types[2];
	MUST(MPI_Type_vector(N, 1, 2, MPI_INT, &every));
	MUST(MPI_Type_commit(&every));
	types[0] = MPI_INT, types[1] = every;
	int n[2] = {N, 1};
	MPI_Aint to[2] = {0, N * sizeof(int)}, from[2] = {0, 2 * N * sizeof(int)};
	MPI_Datatype out[2] = {MPI_INT, MPI_INT};
	int lens[2] = {N, N};
	fill(b, 4 * N, -1);
	DO(form, Neighbor_alltoallw, neighbor_alltoallw, a, lens, to, out, b, n, from, types, c);
	CHECK(b[0] == 100 * down + N && b[2 * N] == 100 * up && b[2 * N + 1] == -1 && b[2 * N + 2] == 100 * up + 1,
	      "Neighbor_alltoallw: %d, %d, %d, %d", b[0], b[2 * N], b[2 * N + 1], b[2 * N + 2]);
	MUST(MPI_Type_free(&every));
}

/* Blocks of neighbours that are not there stay as they are. */
static void line(int form, MPI_Comm c)
{
	int a = rank, b[2] = {-1, -1};
	DO(form, Neighbor_allgather, neighbor_allgather, &a, 1, MPI_INT, b, 1, MPI_INT, c);
	CHECK(b[0] == (rank > 0 ? rank - 1 : -1), "from below: %d", b[0]);
	CHECK(b[1] == (rank + 1 < size ? rank + 1 : -1), "from above: %d", b[1]);
}

/* All to rank 0, and nothing back. */
static void star(int form, MPI_Comm c)
{
	int a[2] = {rank, -rank}, b[16];
	fill(b, 16, -77);
	DO(form, Neighbor_alltoall, neighbor_alltoall, a, 2, MPI_INT, b, 2, MPI_INT, c);
	for (int i = 0; i < (rank ? 0 : size); i++)
		CHECK(b[2 * i] == i && b[2 * i + 1] == -i, "from %d: %d, %d", i, b[2 * i], b[2 * i + 1]);
	CHECK(rank == 0 || b[0] == -77, "something came to a leaf: %d", b[0]);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	int yes = 1, no = 0, zero = 0, all[8], index[8], edges[16];
	MPI_Comm circle, chain, hub, graph;
	MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &yes, 0, &circle));
	MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &no, 0, &chain));
	for (int i = 0; i < size; i++) {
		all[i] = i;
		edges[2 * i] = (i + size - 1) % size;
		edges[2 * i + 1] = (i + 1) % size;
		index[i] = 2 * i + 2;
	}
	MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank ? 0 : size, all, MPI_UNWEIGHTED, 1, &zero,
	     MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &hub));
	MUST(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
	for (int form = 0; form < FORMS; form++) {
		ring(form, circle);
		line(form, chain);
		star(form, hub);
		int b[2] = {-1, -1};
		DO(form, Neighbor_allgather, neighbor_allgather, &rank, 1, MPI_INT, b, 1, MPI_INT, graph);
		CHECK(b[0] == edges[2 * rank] && b[1] == edges[2 * rank + 1], "in a graph: %d, %d", b[0], b[1]);
	}
	MUST(MPI_Comm_free(&circle));
	MUST(MPI_Comm_free(&chain));
	MUST(MPI_Comm_free(&hub));
	MUST(MPI_Comm_free(&graph));
	end();
	return 0;
}
