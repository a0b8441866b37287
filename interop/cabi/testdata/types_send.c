// Messages and collectives with datatypes that have gaps, short ones and long ones: each side has its own
// layout, nothing between the data is touched, and a message may fill a part of the receiver's items.
// cabi: ranks=1,2,4 transports=shm,hybrid,sctp,tcp
#include "check.h"
#include <stddef.h>

enum { max = 200000 };
static int mem[3 * max], out[3 * max];

/* Sends n ints in blocks of the given length, twice as far apart, and receives them in blocks of another. */
static void exchange(int n, int block, int rblock, int to, int from, int rank)
{
	MPI_Datatype s, r;
	MUST(MPI_Type_vector(n / block, block, 2 * block, MPI_INT, &s));
	MUST(MPI_Type_vector(n / rblock, rblock, 3 * rblock, MPI_INT, &r));
	MUST(MPI_Type_commit(&s));
	MUST(MPI_Type_commit(&r));
	for (int i = 0; i < 3 * max; i++)
		mem[i] = -1, out[i] = -2;
	for (int i = 0; i < n; i++)
		mem[i / block * 2 * block + i % block] = rank * 1000000 + i;
	MPI_Status status;
	MUST(MPI_Sendrecv(mem, 1, s, to, n, out, 1, r, from, n, MPI_COMM_WORLD, &status));
	int count;
	MUST(MPI_Get_elements(&status, r, &count));
	CHECK(count == n, "%d elements, want %d", count, n);
	MUST(MPI_Get_count(&status, r, &count));
	CHECK(count == 1, "%d items", count);
	for (int i = 0; i < 3 * n; i++) {
		int k = i / (3 * rblock) * rblock + i % (3 * rblock);
		int want = i % (3 * rblock) < rblock ? from * 1000000 + k : -2;
		CHECK(out[i] == want, "n %d, blocks of %d and %d: element %d is %d, want %d", n, block, rblock, i, out[i], want);
	}
	MUST(MPI_Type_free(&s));
	MUST(MPI_Type_free(&r));
}

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	int lengths[] = {8, 1600, 20000, max};
	for (int k = 0; k < 4; k++) {
		exchange(lengths[k], 1, 2, to, from, rank);
		exchange(lengths[k], 2, 8, to, from, rank);
		if (lengths[k] >= 1600) {
			exchange(lengths[k], 800, 1, to, from, rank);
			exchange(lengths[k], 400, 800, to, from, rank);
		}
	}

	/* A struct with padding: only its fields travel. */
	struct item { char c; double d; short s; };
	int one[] = {1, 1, 1};
	MPI_Aint at[] = {offsetof(struct item, c), offsetof(struct item, d), offsetof(struct item, s)};
	MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, t;
	MUST(MPI_Type_create_struct(3, one, at, parts, &t));
	MUST(MPI_Type_commit(&t));
	enum { items = 5000 };
	struct item *a = malloc(items * sizeof *a), *b = malloc(items * sizeof *b);
	memset(a, 0x11, items * sizeof *a);
	memset(b, 0x22, items * sizeof *b);
	for (int i = 0; i < items; i++)
		a[i].c = i, a[i].d = rank + i / 4., a[i].s = -i;
	MPI_Request r[2];
	MPI_Status status[2];
	int n;
	MUST(MPI_Irecv(b, items, t, from, 1, MPI_COMM_WORLD, &r[0]));
	MUST(MPI_Isend(a, items - 10, t, to, 1, MPI_COMM_WORLD, &r[1]));
	MUST(MPI_Waitall(2, r, status));
	MUST(MPI_Get_count(&status[0], t, &n));
	CHECK(n == items - 10, "%d items", n);
	for (int i = 0; i < items - 10; i++) {
		CHECK(b[i].c == (char)i && b[i].d == from + i / 4. && b[i].s == (short)-i, "item %d", i);
		unsigned char *p = (unsigned char *)&b[i];
		CHECK(p[1] == 0x22 && p[7] == 0x22 && p[18] == 0x22 && p[23] == 0x22, "item %d: padding was written", i);
	}
	CHECK(((unsigned char *)&b[items - 10])[0] == 0x22, "an item too much");

	/* A part of an item. */
	double three[3] = {1, 2, 3}, four[8] = {0};
	MPI_Datatype pairs;
	MUST(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &pairs));
	MUST(MPI_Type_commit(&pairs));
	MUST(MPI_Sendrecv(three, 3, MPI_DOUBLE, to, 2, four, 2, pairs, from, 2, MPI_COMM_WORLD, &status[0]));
	MUST(MPI_Get_count(&status[0], pairs, &n));
	CHECK(n == MPI_UNDEFINED, "%d items", n);
	MUST(MPI_Get_elements(&status[0], pairs, &n));
	CHECK(n == 3, "%d elements", n);
	CHECK(four[0] == 1 && four[2] == 2 && four[3] == 3 && four[5] == 0, "%g %g %g %g", four[0], four[2], four[3], four[5]);

	/* Columns of a matrix to all ranks, as rows. */
	int *matrix = malloc(size * size * sizeof *matrix), *rows = malloc(size * size * sizeof *rows);
	for (int i = 0; i < size * size; i++)
		matrix[i] = rank * 10000 + i;
	MPI_Datatype line, column;
	MUST(MPI_Type_vector(size, 1, size, MPI_INT, &line));
	MUST(MPI_Type_create_resized(line, 0, sizeof(int), &column));
	MUST(MPI_Type_commit(&column));
	MUST(MPI_Alltoall(matrix, 1, column, rows, size, MPI_INT, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		for (int k = 0; k < size; k++)
			CHECK(rows[i * size + k] == i * 10000 + k * size + rank, "row %d, element %d is %d", i, k, rows[i * size + k]);
	MUST(MPI_Type_free(&line));
	MUST(MPI_Type_free(&column));

	/* Long counts. */
	MPI_Count count = 1000, got = 0;
	MUST(MPI_Sendrecv_c(mem, count, MPI_INT, to, 9, out, 2 * count, MPI_INT, from, 9, MPI_COMM_WORLD, &status[0]));
	MUST(MPI_Get_count_c(&status[0], MPI_INT, &got));
	CHECK(got == count, "%lld", (long long)got);

	MUST(MPI_Type_free(&t));
	MUST(MPI_Type_free(&pairs));
	free(a);
	free(b);
	free(matrix);
	free(rows);
	done();
	MUST(MPI_Finalize());
	return 0;
}
