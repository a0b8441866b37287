// Fourier transforms in three dimensions, as in FT of the NAS benchmarks: ranks have slabs of n^3 values; the lines
// across them are transformed after an exchange of all with all. The equation of heat is solved step by step, each from
// the transform of the beginning, and compared with its solution, which is known.
// Arguments: n, a power of 2, and steps.
// cabi: ranks=1,4 transports=shm,sctp flags=-lm
#include "check.h"
#include <complex.h>
#include <math.h>

static int n, size, m; /* of a slab */
static double complex *roots, *packed, *received, *line;

/* Transforms n values in place; the inverse is not divided by n. */
static void transform(double complex *a, int inverse)
{
	for (int i = 1, j = 0; i < n; i++) {
		int bit = n >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			double complex t = a[i];
			a[i] = a[j], a[j] = t;
		}
	}
	for (int l = 2; l <= n; l *= 2)
		for (int i = 0; i < n; i += l)
			for (int k = 0; k < l / 2; k++) {
				double complex w = roots[k * (n / l)];
				double complex s = a[i + k], t = a[i + k + l / 2] * (inverse ? conj(w) : w);
				a[i + k] = s + t, a[i + k + l / 2] = s - t;
			}
}

/* Transforms the lines in y and x of a slab [z][y][x]. */
static void planes(double complex *a, int inverse)
{
	for (int z = 0; z < m; z++) {
		double complex *p = a + (size_t)z * n * n;
		for (int y = 0; y < n; y++)
			transform(p + (size_t)y * n, inverse);
		for (int x = 0; x < n; x++) {
			for (int y = 0; y < n; y++)
				line[y] = p[(size_t)y * n + x];
			transform(line, inverse);
			for (int y = 0; y < n; y++)
				p[(size_t)y * n + x] = line[y];
		}
	}
}

/* Exchanges the slabs [z][y][x] of z for slabs [x][y][z] of x, or the other way, which is the same. */
static void transpose(const double complex *from, double complex *to)
{
	size_t block = (size_t)m * m * n;
	for (int r = 0; r < size; r++)
		for (int z = 0; z < m; z++)
			for (int y = 0; y < n; y++)
				memcpy(packed + r * block + ((size_t)z * n + y) * m, from + ((size_t)z * n + y) * n + (size_t)r * m, m * sizeof *from);
	MUST(MPI_Alltoall(packed, (int)(2 * block), MPI_DOUBLE, received, (int)(2 * block), MPI_DOUBLE, MPI_COMM_WORLD));
	for (int r = 0; r < size; r++)
		for (int z = 0; z < m; z++)
			for (int y = 0; y < n; y++)
				for (int x = 0; x < m; x++)
					to[((size_t)x * n + y) * n + (size_t)r * m + z] = received[r * block + ((size_t)z * n + y) * m + x];
}

static void lines(double complex *a, int inverse)
{
	for (size_t l = 0; l < (size_t)m * n; l++)
		transform(a + l * n, inverse);
}

/* The waves that there are at first: how often each swings along x, y and z. */
static const int waves[][3] = {{0, 0, 0}, {1, 0, 0}, {0, 2, 1}, {3, 1, 2}, {1, 3, 3}};

enum { WAVES = sizeof waves / sizeof waves[0] };

static const double diffusion = 1e-2;

static double decay(int kx, int ky, int kz, double t) { return exp(-diffusion * (kx * kx + ky * ky + kz * kz) * t); }

static double exact(int z, int y, int x, double t)
{
	double s = 0;
	for (int w = 0; w < WAVES; w++) {
		const int *k = waves[w];
		s += (w + 1) * decay(k[0], k[1], k[2], t) * cos(2 * M_PI / n * (k[0] * x + k[1] * y + k[2] * z));
	}
	return s;
}

/* The frequency of index i. */
static int frequency(int i) { return i <= n / 2 ? i : i - n; }

int main(int argc, char **argv)
{
	int rank, steps;
	MUST(MPI_Init(&argc, &argv));
	n = argc > 1 ? atoi(argv[1]) : 32;
	steps = argc > 2 ? atoi(argv[2]) : 6;
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	CHECK(n >= 8 && n <= 1024 && (n & (n - 1)) == 0 && n % size == 0 && steps > 0, "n = %d, %d steps, on %d ranks", n, steps, size);
	m = n / size;
	size_t all = (size_t)m * n * n;
	double complex *u = calloc(all, sizeof *u), *spectrum = calloc(all, sizeof *u), *v = calloc(all, sizeof *u);
	packed = calloc(all, sizeof *u), received = calloc(all, sizeof *u), line = calloc(n, sizeof *u), roots = calloc(n, sizeof *u);
	CHECK(u && spectrum && v && packed && received && line && roots, "no memory for %zu values", all);
	for (int i = 0; i < n; i++)
		roots[i] = cexp(-2 * M_PI * I * i / n);
	for (int z = 0; z < m; z++)
		for (int y = 0; y < n; y++)
			for (int x = 0; x < n; x++)
				u[((size_t)z * n + y) * n + x] = exact(rank * m + z, y, x, 0);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	double begun = MPI_Wtime(), error = 0;
	planes(u, 0);
	transpose(u, spectrum);
	lines(spectrum, 0);
	for (int t = 1; t <= steps; t++) {
		for (int x = 0; x < m; x++)
			for (int y = 0; y < n; y++)
				for (int z = 0; z < n; z++) {
					size_t at = ((size_t)x * n + y) * n + z;
					v[at] = spectrum[at] * decay(frequency(rank * m + x), frequency(y), frequency(z), t);
				}
		lines(v, 1);
		transpose(v, u);
		planes(u, 1);
		double part = 0;
		for (size_t i = 0; i < all; i += 97) { // some of all: the cosines take longer than the transforms
			int x = (int)(i % n), y = (int)(i / n % n), z = (int)(i / n / n);
			part = fmax(part, cabs(u[i] / ((double)n * n * n) - exact(rank * m + z, y, x, t)));
		}
		MUST(MPI_Allreduce(&part, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
		CHECK(error < 1e-11, "step %d: error %g", t, error);
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	double seconds = MPI_Wtime() - begun;
	if (rank == 0)
		printf("seconds %.4f\n", seconds);
	done();
	MUST(MPI_Finalize());
	return 0;
}
