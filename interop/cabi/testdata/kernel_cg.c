// Conjugate gradients with a sparse matrix, as in CG of the NAS benchmarks: ranks are a square, each with a block of
// the matrix and a piece of the vectors. A product adds up partial results along a row of ranks, pair by pair, and
// exchanges them with the rank at the mirrored place; scalar products are short reductions.
// Arguments: n, solutions. The solution is known.
// cabi: ranks=1,4 transports=shm,sctp flags=-lm
#include "check.h"
#include <math.h>
#include <stdint.h>

#define DIAGONALS 64 /* below the main one, as many above */
#define STEPS 25     /* of one solution */

static int n, side, m; /* of the matrix, of the square, of a piece */
static int line, column, mirrored;
static MPI_Comm row;
static int *first, *of; /* the block, by lines: of[first[i]] ... are the columns of line i */
static double *value, *half, *got;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31, x *= 0x9e3779b97f4a7c15u, x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

/* Diagonal d is this far from the main one, and wraps around. */
static int offset(int d) { return 1 + (int)(mix(d + 1) % (uint64_t)(n / 2 - 1)); }

/* The element of diagonal d in line i, below 0; the matrix is symmetric. */
static double element(int i, int d) { return -(double)(mix((uint64_t)i * DIAGONALS + d) >> 40) / (1 << 24); }

static double exact(int i) { return 1 + 0.5 * sin(0.01 * i); }

/* Twice the sum of the others: the condition is below 3, and a few steps suffice. */
static double diagonal(int i)
{
	double s = 1;
	for (int d = 0; d < DIAGONALS; d++)
		s -= 2 * (element(i, d) + element((i - offset(d) + n) % n, d));
	return s;
}

/* Puts the elements of line i, which is global, into e and their columns into c, and returns how many there are. */
static int line_of(int i, int *c, double *e)
{
	int k = 0;
	c[k] = i, e[k++] = diagonal(i);
	for (int d = 0; d < DIAGONALS; d++) {
		int o = offset(d), before = (i - o + n) % n;
		c[k] = (i + o) % n, e[k++] = element(i, d);
		c[k] = before, e[k++] = element(before, d);
	}
	return k;
}

/* Computes the piece of q = A p that this rank has, from that of p. */
static void product(const double *p, double *q)
{
	for (int i = 0; i < m; i++) {
		double s = 0;
		for (int k = first[i]; k < first[i + 1]; k++)
			s += value[k] * p[of[k]];
		half[i] = s;
	}
	for (int d = 1; d < side; d *= 2) {
		MUST(MPI_Sendrecv(half, m, MPI_DOUBLE, column ^ d, 1, got, m, MPI_DOUBLE, column ^ d, 1, row, MPI_STATUS_IGNORE));
		for (int i = 0; i < m; i++)
			half[i] += got[i];
	}
	MPI_Request r;
	MUST(MPI_Irecv(q, m, MPI_DOUBLE, mirrored, 2, MPI_COMM_WORLD, &r));
	MUST(MPI_Send(half, m, MPI_DOUBLE, mirrored, 2, MPI_COMM_WORLD));
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static double dot(const double *a, const double *b)
{
	double s = 0;
	for (int i = 0; i < m; i++)
		s += a[i] * b[i];
	MUST(MPI_Allreduce(MPI_IN_PLACE, &s, 1, MPI_DOUBLE, MPI_SUM, row));
	return s;
}

int main(int argc, char **argv)
{
	int size, rank, solutions, c[2 * DIAGONALS + 1];
	double e[2 * DIAGONALS + 1];
	MUST(MPI_Init(&argc, &argv));
	n = argc > 1 ? atoi(argv[1]) : 1400;
	solutions = argc > 2 ? atoi(argv[2]) : 3;
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	for (side = 1; side * side < size; side *= 2)
		;
	CHECK(side * side == size && n >= 4 && n % side == 0 && solutions > 0, "n = %d on %d ranks, want a power of 4", n, size);
	m = n / side, line = rank / side, column = rank % side, mirrored = column * side + line;
	MUST(MPI_Comm_split(MPI_COMM_WORLD, line, column, &row));

	size_t most = (size_t)m * (2 * DIAGONALS + 1);
	first = calloc(m + 1, sizeof *first), of = calloc(most, sizeof *of), value = calloc(most, sizeof *value);
	double *vectors = calloc((size_t)m * 7, sizeof *vectors);
	CHECK(first && of && value && vectors, "no memory for %d lines", m);
	double *b = vectors, *x = b + m, *r = x + m, *p = r + m, *q = p + m;
	half = q + m, got = half + m;
	for (int i = 0; i < m; i++) {
		first[i + 1] = first[i];
		for (int k = line_of(line * m + i, c, e) - 1; k >= 0; k--)
			if (c[k] / m == column)
				of[first[i + 1]] = c[k] % m, value[first[i + 1]++] = e[k];
		b[i] = 0; /* the right side is computed without messages */
		for (int k = line_of(column * m + i, c, e) - 1; k >= 0; k--)
			b[i] += e[k] * exact(c[k]);
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	double begun = MPI_Wtime();
	for (int t = 0; t < solutions; t++) {
		for (int i = 0; i < m; i++)
			x[i] = 0, r[i] = p[i] = b[i];
		double rho = dot(r, r);
		for (int k = 0; k < STEPS && rho > 1e-28; k++) {
			product(p, q);
			double alpha = rho / dot(p, q), before = rho;
			for (int i = 0; i < m; i++)
				x[i] += alpha * p[i], r[i] -= alpha * q[i];
			rho = dot(r, r);
			for (int i = 0; i < m; i++)
				p[i] = r[i] + rho / before * p[i];
		}
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	double seconds = MPI_Wtime() - begun, error = 0;
	for (int i = 0; i < m; i++)
		error = fmax(error, fabs(x[i] - exact(column * m + i)));
	MUST(MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
	CHECK(error < 1e-9, "error %g", error);
	if (rank == 0)
		printf("seconds %.4f\n", seconds);
	MUST(MPI_Comm_free(&row));
	done();
	MUST(MPI_Finalize());
	return 0;
}
