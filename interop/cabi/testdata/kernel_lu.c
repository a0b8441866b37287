// A wavefront, as in LU of the NAS benchmarks: symmetric Gauss-Seidel on a grid of n^3 points with 5 values each,
// which ranks share in x and y. In each plane of a sweep a rank needs an edge of two neighbours, and
// sends one to the two others: many short messages, each of which is waited for.
// Arguments: n, iterations. The error must fall as the dominance of the diagonal says.
// cabi: ranks=1,4 transports=shm,sctp flags=-lm
#include "check.h"
#include <math.h>

#define V 5 /* values of a point */

static const double own = 0.13, other = 0.003; /* what a neighbour adds to the same value, and to each other */

static int n, nx, ny, west_x, north_y;
static int west, east, north, south;
static MPI_Comm grid;
static double *u, *b; /* the solution with a margin of one point in x and y, and in z; the right side */

#define AT(k, j, i) ((((size_t)(k) + 1) * (ny + 2) + (j) + 1) * (nx + 2) + (i) + 1) * V

/* The solution is known. It is 0 outside of the grid. */
static double exact(int k, int j, int i, int v)
{
	if (k < 0 || j < 0 || i < 0 || k >= n || j >= n || i >= n)
		return 0;
	return 1 + sin(0.3 * k + v) * cos(0.2 * j) + 0.01 * i;
}

/* Adds what the neighbour at p adds to the values s. */
static inline void add(double *s, const double *p)
{
	double sum = p[0] + p[1] + p[2] + p[3] + p[4];
	for (int v = 0; v < V; v++)
		s[v] += other * sum + (own - other) * p[v];
}

static inline void relax(int k, int j, int i)
{
	double s[V], *p = u + AT(k, j, i);
	const double *r = b + AT(k, j, i);
	for (int v = 0; v < V; v++)
		s[v] = r[v];
	add(s, u + AT(k, j, i - 1));
	add(s, u + AT(k, j, i + 1));
	add(s, u + AT(k, j - 1, i));
	add(s, u + AT(k, j + 1, i));
	add(s, u + AT(k - 1, j, i));
	add(s, u + AT(k + 1, j, i));
	for (int v = 0; v < V; v++)
		p[v] = s[v];
}

static double *edge; /* a column in x, which does not lie in one piece */

static void receive(int k, int column, int row, int from_column, int from_row)
{
	MUST(MPI_Recv(edge, ny * V, MPI_DOUBLE, from_column, 1, grid, MPI_STATUS_IGNORE));
	if (from_column != MPI_PROC_NULL)
		for (int j = 0; j < ny; j++)
			memcpy(u + AT(k, j, column), edge + (size_t)j * V, V * sizeof *u);
	MUST(MPI_Recv(u + AT(k, row, 0), nx * V, MPI_DOUBLE, from_row, 2, grid, MPI_STATUS_IGNORE));
}

static void send(int k, int column, int row, int to_column, int to_row)
{
	for (int j = 0; j < ny; j++)
		memcpy(edge + (size_t)j * V, u + AT(k, j, column), V * sizeof *u);
	MUST(MPI_Send(edge, ny * V, MPI_DOUBLE, to_column, 1, grid));
	MUST(MPI_Send(u + AT(k, row, 0), nx * V, MPI_DOUBLE, to_row, 2, grid));
}

static void iterate(void)
{
	for (int k = 0; k < n; k++) {
		receive(k, -1, -1, west, north);
		for (int j = 0; j < ny; j++)
			for (int i = 0; i < nx; i++)
				relax(k, j, i);
		send(k, nx - 1, ny - 1, east, south);
	}
	for (int k = n - 1; k >= 0; k--) {
		receive(k, nx, ny, east, south);
		for (int j = ny - 1; j >= 0; j--)
			for (int i = nx - 1; i >= 0; i--)
				relax(k, j, i);
		send(k, 0, 0, west, north);
	}
}

/* Returns the largest error of this rank. */
static double error(void)
{
	double most = 0;
	for (int k = 0; k < n; k++)
		for (int j = 0; j < ny; j++)
			for (int i = 0; i < nx; i++)
				for (int v = 0; v < V; v++)
					most = fmax(most, fabs(u[AT(k, j, i) + v] - exact(k, north_y + j, west_x + i, v)));
	return most;
}

int main(int argc, char **argv)
{
	int size, rank, iterations, dims[2] = {0, 0}, periods[2] = {0, 0}, at[2];
	MUST(MPI_Init(&argc, &argv));
	n = argc > 1 ? atoi(argv[1]) : 24;
	iterations = argc > 2 ? atoi(argv[2]) : 40;
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Dims_create(size, 2, dims));
	MUST(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
	MUST(MPI_Comm_rank(grid, &rank));
	MUST(MPI_Cart_coords(grid, rank, 2, at));
	MUST(MPI_Cart_shift(grid, 0, 1, &north, &south));
	MUST(MPI_Cart_shift(grid, 1, 1, &west, &east));
	CHECK(n > 0 && iterations > 0 && n % dims[0] == 0 && n % dims[1] == 0, "n = %d on %d x %d ranks", n, dims[0], dims[1]);
	ny = n / dims[0], north_y = at[0] * ny;
	nx = n / dims[1], west_x = at[1] * nx;
	size_t all = (size_t)(n + 2) * (ny + 2) * (nx + 2) * V;
	u = calloc(all, sizeof *u), b = calloc(all, sizeof *b), edge = calloc((size_t)ny * V, sizeof *edge);
	CHECK(u && b && edge, "no memory for %zu values", all);
	for (int k = 0; k < n; k++)
		for (int j = 0; j < ny; j++)
			for (int i = 0; i < nx; i++)
				for (int v = 0; v < V; v++) {
					int gj = north_y + j, gi = west_x + i;
					double s = exact(k, gj, gi, v);
					for (int w = 0; w < V; w++)
						s -= (v == w ? own : other) * (exact(k, gj, gi - 1, w) + exact(k, gj, gi + 1, w) + exact(k, gj - 1, gi, w) +
								exact(k, gj + 1, gi, w) + exact(k - 1, gj, gi, w) + exact(k + 1, gj, gi, w));
					b[AT(k, j, i) + v] = s;
				}
	double most[2] = {0, error()};
	MUST(MPI_Barrier(grid));
	double begun = MPI_Wtime();
	for (int t = 0; t < iterations; t++)
		iterate();
	MUST(MPI_Barrier(grid));
	double seconds = MPI_Wtime() - begun;
	most[0] = error();
	MUST(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, grid));
	/* Each of the two sweeps makes the largest error smaller by what all neighbours add together. */
	double bound = most[1] * pow(6 * (own + (V - 1) * other), 2 * iterations) + 1e-12;
	CHECK(most[1] > 1 && most[0] <= bound, "error %g at first, %g after %d iterations, want at most %g", most[1], most[0], iterations, bound);
	if (rank == 0)
		printf("seconds %.4f\n", seconds);
	MUST(MPI_Comm_free(&grid));
	done();
	MUST(MPI_Finalize());
	return 0;
}
