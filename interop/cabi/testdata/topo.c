// Grids and graphs, and what is asked of them.
// cabi: ranks=1,2,4,6,8 transports=shm
#include "coll.h"

static void grids(void)
{
	int dims[3] = {0, 0, 0}, periods[2] = {1, 0}, got[3], rings[3], coords[3], n, kind;
	MPI_Comm grid, copy, row, none;

	MUST(MPI_Dims_create(size, 2, dims));
	CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1], "%d x %d", dims[0], dims[1]);
	int six[3] = {0, 3, 0};
	MUST(MPI_Dims_create(24, 3, six));
	CHECK(six[0] == 4 && six[1] == 3 && six[2] == 2, "%d x %d x %d", six[0], six[1], six[2]);
	MUST(MPI_Dims_create(7, 0, NULL));

	MUST(MPI_Topo_test(MPI_COMM_WORLD, &kind));
	CHECK(kind == MPI_UNDEFINED, "MPI_COMM_WORLD has topology %d", kind);
	MUST(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
	MUST(MPI_Topo_test(grid, &kind));
	CHECK(kind == MPI_CART, "topology %d", kind);
	MUST(MPI_Cartdim_get(grid, &n));
	CHECK(n == 2, "%d dimensions", n);
	MUST(MPI_Cart_get(grid, 3, got, rings, coords));
	CHECK(got[0] == dims[0] && got[1] == dims[1] && rings[0] && !rings[1], "%d x %d, %d %d", got[0],
	     got[1], rings[0], rings[1]);
	CHECK(coords[0] == rank / dims[1] && coords[1] == rank % dims[1], "at %d, %d", coords[0], coords[1]);
	for (int r = 0; r < size; r++) {
		int at[2], back;
		MUST(MPI_Cart_coords(grid, r, 2, at));
		at[0] += dims[0] * (r - 3); /* a ring */
		MUST(MPI_Cart_rank(grid, at, &back));
		CHECK(back == r, "rank %d is at that of %d", r, back);
	}
	int from, to, up = (coords[0] + 1) % dims[0], down = (coords[0] + dims[0] - 1) % dims[0];
	MUST(MPI_Cart_shift(grid, 0, 1, &from, &to));
	CHECK(to == up * dims[1] + coords[1] && from == down * dims[1] + coords[1], "from %d to %d", from, to);
	MUST(MPI_Cart_shift(grid, 1, 1, &from, &to));
	CHECK(to == (coords[1] + 1 < dims[1] ? rank + 1 : MPI_PROC_NULL), "to %d", to);
	CHECK(from == (coords[1] > 0 ? rank - 1 : MPI_PROC_NULL), "from %d", from);
	MUST(MPI_Cart_shift(grid, 1, -1, &from, &to));
	CHECK(from == (coords[1] + 1 < dims[1] ? rank + 1 : MPI_PROC_NULL), "backwards from %d", from);

	/* A duplicate has the topology, what is made otherwise has not. */
	MUST(MPI_Comm_dup(grid, &copy));
	MUST(MPI_Topo_test(copy, &kind));
	CHECK(kind == MPI_CART, "the duplicate has topology %d", kind);
	MUST(MPI_Cart_get(copy, 2, got, rings, coords));
	CHECK(got[0] == dims[0] && rings[0] && !rings[1], "the duplicate is other");
	MUST(MPI_Comm_free(&copy));
	MUST(MPI_Comm_split(grid, 0, 0, &copy));
	MUST(MPI_Topo_test(copy, &kind));
	CHECK(kind == MPI_UNDEFINED, "a part has topology %d", kind);
	MUST(MPI_Comm_free(&copy));

	int keep[2] = {0, 1}, places[2];
	MUST(MPI_Cart_sub(grid, keep, &row));
	MUST(MPI_Cart_get(row, 2, got, rings, places));
	CHECK(got[0] == dims[1] && !rings[0] && places[0] == coords[1], "a row of %d, at %d", got[0], places[0]);
	MUST(MPI_Comm_free(&row));
	keep[1] = 0; /* no dimension: every rank for itself */
	MUST(MPI_Cart_sub(grid, keep, &row));
	MUST(MPI_Cartdim_get(row, &n));
	MUST(MPI_Comm_size(row, &kind));
	CHECK(n == 0 && kind == 1, "%d dimensions, %d ranks", n, kind);
	MUST(MPI_Comm_free(&row));
	MUST(MPI_Comm_free(&grid));

	/* A grid that does not need all ranks, and one of no dimension. */
	int one = 1, ring = 0, newrank;
	MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &ring, 1, &none));
	int in = none != MPI_COMM_NULL, all;
	MUST(MPI_Allreduce(&in, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(all == 1, "%d ranks are in a grid of 1", all);
	if (in)
		MUST(MPI_Comm_free(&none));
	MUST(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &none));
	CHECK((none != MPI_COMM_NULL) == (rank == 0), "a grid without dimensions");
	if (rank == 0)
		MUST(MPI_Comm_free(&none));
	MUST(MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &newrank));
	CHECK(newrank >= 0 && newrank < size, "mapped to %d", newrank);
}

static void graphs(void)
{
	int index[8], edges[16], kind, n, e, gotindex[8], gotedges[16];
	MPI_Comm ring, copy;
	for (int i = 0; i < size; i++) {
		edges[2 * i] = (i + 1) % size;
		edges[2 * i + 1] = (i + size - 1) % size;
		index[i] = 2 * i + 2;
	}
	MUST(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &ring));
	MUST(MPI_Topo_test(ring, &kind));
	CHECK(kind == MPI_GRAPH, "topology %d", kind);
	MUST(MPI_Graphdims_get(ring, &n, &e));
	CHECK(n == size && e == 2 * size, "%d nodes, %d edges", n, e);
	MUST(MPI_Comm_dup(ring, &copy));
	MUST(MPI_Graph_get(copy, 8, 16, gotindex, gotedges));
	CHECK(!memcmp(index, gotindex, size * sizeof(int)) && !memcmp(edges, gotedges, 2 * size * sizeof(int)),
	     "another graph");
	MUST(MPI_Graph_neighbors_count(copy, size - 1, &n));
	CHECK(n == 2, "%d neighbours", n);
	MUST(MPI_Graph_neighbors(copy, size - 1, 2, gotedges));
	CHECK(gotedges[0] == 0 && gotedges[1] == (2 * size - 2) % size, "neighbours %d, %d", gotedges[0], gotedges[1]);
	MUST(MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &n));
	CHECK(n >= 0 && n < size, "mapped to %d", n);
	MUST(MPI_Comm_free(&copy));
	MUST(MPI_Comm_free(&ring));
	MUST(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &ring));
	CHECK(ring == MPI_COMM_NULL, "a graph without nodes");
}

static void distributed(void)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size, kind, in, out, weighted, s[2], d[2],
	     sw[2], dw[2];
	MPI_Comm g;
	MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next,
	     MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g));
	MUST(MPI_Topo_test(g, &kind));
	CHECK(kind == MPI_DIST_GRAPH, "topology %d", kind);
	MUST(MPI_Dist_graph_neighbors_count(g, &in, &out, &weighted));
	CHECK(in == 1 && out == 1 && !weighted, "%d in, %d out, weighted %d", in, out, weighted);
	MUST(MPI_Dist_graph_neighbors(g, 2, s, MPI_UNWEIGHTED, 2, d, MPI_UNWEIGHTED));
	CHECK(s[0] == previous && d[0] == next, "from %d to %d", s[0], d[0]);
	MUST(MPI_Comm_free(&g));

	int w = 5 + rank, v = 5 + previous;
	MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, &v, 1, &next, &w, MPI_INFO_NULL, 1, &g));
	MUST(MPI_Dist_graph_neighbors_count(g, &in, &out, &weighted));
	MUST(MPI_Dist_graph_neighbors(g, 1, s, sw, 1, d, dw));
	CHECK(in == 1 && out == 1 && weighted, "%d in, %d out, weighted %d", in, out, weighted);
	MUST(MPI_Comm_free(&g));

	/* Rank 0 says all: a star, whose edges weigh their target. */
	int source = 0, degree = size - 1, leaves[8], weights[8];
	for (int i = 0; i < size - 1; i++)
		leaves[i] = i + 1, weights[i] = 10 + i + 1;
	MUST(MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0, &source, &degree, leaves,
	     rank == 0 && size > 1 ? weights : MPI_WEIGHTS_EMPTY,
	                           MPI_INFO_NULL, 0, &g));
	MUST(MPI_Dist_graph_neighbors_count(g, &in, &out, &weighted));
	CHECK(in == (rank > 0) && out == (rank ? 0 : size - 1) && weighted, "%d in, %d out, weighted %d", in,
	     out, weighted);
	int targets[8], tw[8];
	MUST(MPI_Dist_graph_neighbors(g, 1, s, sw, 8, targets, tw));
	if (rank > 0)
		CHECK(s[0] == 0 && sw[0] == 10 + rank, "from %d, weight %d", s[0], sw[0]);
	else
		for (int i = 0; i < out; i++)
			CHECK(tw[i] == 10 + targets[i], "to %d, weight %d", targets[i], tw[i]);
	MUST(MPI_Comm_free(&g));
}

static void refused(void)
{
	int dims[2] = {0, 0}, periods[2] = {0, 0}, n, x[4];
	MPI_Comm c, grid, none = MPI_COMM_WORLD;
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	MUST(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	dims[0] = size + 1, dims[1] = 1;
	FAILS(MPI_ERR_DIMS, MPI_Cart_create(c, 2, dims, periods, 0, &grid));
	FAILS(MPI_ERR_DIMS, MPI_Cart_create(c, -1, dims, periods, 0, &grid));
	FAILS(MPI_ERR_ARG, MPI_Cart_create(c, 2, dims, NULL, 0, &grid));
	FAILS(MPI_ERR_ARG, MPI_Cart_create(c, 2, dims, periods, 0, NULL));
	dims[0] = size;
	FAILS(MPI_ERR_COMM, MPI_Cart_create(MPI_COMM_NULL, 2, dims, periods, 0, &grid));
	MUST(MPI_Cart_create(c, 2, dims, periods, 0, &grid));
	FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_get(c, 2, x, x, x));
	FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(grid, &n, x));
	FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(grid, &n, x, x));
	FAILS(MPI_ERR_ARG, MPI_Cart_get(grid, 1, x, x, x));
	FAILS(MPI_ERR_RANK, MPI_Cart_coords(grid, size, 2, x));
	FAILS(MPI_ERR_ARG, MPI_Cart_coords(grid, 0, 1, x));
	FAILS(MPI_ERR_DIMS, MPI_Cart_shift(grid, 2, 1, x, x));
	FAILS(MPI_ERR_DIMS, MPI_Cart_shift(grid, -1, 1, x, x));
	int far[2] = {size, 0};
	FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid, far, &n));
	FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(x, 1, MPI_INT, x + 1, 1, MPI_INT, c));
	int bad[2] = {5, 0};
	FAILS(MPI_ERR_DIMS, MPI_Dims_create(7, 2, bad));
	bad[0] = -1;
	FAILS(MPI_ERR_DIMS, MPI_Dims_create(4, 2, bad));
	FAILS(MPI_ERR_DIMS, MPI_Dims_create(4, -1, bad));
	int index[2] = {2, 1}, edges[2] = {0, 0}, other = size, weight = -1;
	FAILS(MPI_ERR_ARG, MPI_Graph_create(c, 2, index, edges, 0, &none));
	FAILS(MPI_ERR_ARG, MPI_Graph_create(c, -2, index, edges, 0, &none));
	FAILS(MPI_ERR_RANK, MPI_Dist_graph_create_adjacent(c, 1, &other, MPI_UNWEIGHTED, 0, NULL,
	     MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &none));
	other = 0;
	FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(c, 1, &other, &weight, 0, NULL, MPI_WEIGHTS_EMPTY,
	     MPI_INFO_NULL, 0, &none));
	FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(c, -1, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
	     MPI_INFO_NULL, 0, &none));
	FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(c, 1, &other, MPI_WEIGHTS_EMPTY, 0, NULL,
	     MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &none));
	CHECK(none == MPI_COMM_NULL, "a failed call made a communicator");
	MUST(MPI_Comm_free(&grid));
	MUST(MPI_Comm_free(&c));
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	grids();
	graphs();
	distributed();
	refused();
	end();
	return 0;
}
