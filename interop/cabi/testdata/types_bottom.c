// Absolute addresses: variables on the stack, on the heap and in static memory travel by MPI_BOTTOM, in
// any order of addresses; negative lower bounds; addresses and their differences; blocks of collectives.
// cabi: ranks=1,2 transports=shm,hybrid,sctp,tcp
#include "check.h"

static double fixed[3];

/* absolute returns a datatype of n ints at addresses from p on, two ints apart. */
static MPI_Datatype absolute(int *p, int n)
{
	MPI_Aint d[4];
	MPI_Datatype t;
	for (int i = 0; i < n; i++)
		MUST(MPI_Get_address(p + 2 * i, &d[i]));
	MUST(MPI_Type_create_hindexed_block(n, 1, d, MPI_INT, &t));
	MUST(MPI_Type_commit(&t));
	return t;
}

/* Blocks of collectives that begin some bytes from MPI_BOTTOM. */
static void blocks(int rank, int size)
{
	int a[16], b[16], ones[4], one_on[4], bytes[4], last = size - 1;
	MPI_Datatype at_a = absolute(a, 1), at_b = absolute(b, 1), two = absolute(b, 2), as[4], bs[4];
	for (int i = 0; i < size; i++)
		ones[i] = 1, one_on[i] = i + 1, bytes[i] = 4 * (i + 1), as[i] = at_a, bs[i] = at_b;

#define CLEAR(x) memset(x, -1, sizeof x)
	/* Blocks of x have values, in which i is the rank. What is before them is as it was. */
#define HOLDS(x, from, value) \
	do { \
		for (int i = 0; i < size; i++) \
			CHECK(x[from + i] == (value), "block %d is %d, want %d", i, x[from + i], value); \
		CHECK(from == 0 || x[0] == -1, "%d is before the blocks", x[0]); \
	} while (0)

	a[rank] = 10 + rank;
	MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, MPI_BOTTOM, 1, at_a, MPI_COMM_WORLD));
	HOLDS(a, 0, 10 + i);
	a[rank] = 20 + rank;
	if (rank == last)
		MUST(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, MPI_BOTTOM, 1, at_a, last, MPI_COMM_WORLD));
	else
		MUST(MPI_Gather(a + rank, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, last, MPI_COMM_WORLD));
	if (rank == last) {
		HOLDS(a, 0, 20 + i);
		MUST(MPI_Scatter(MPI_BOTTOM, 1, at_a, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, last, MPI_COMM_WORLD));
	} else {
		MUST(MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, b, 1, MPI_INT, last, MPI_COMM_WORLD));
		CHECK(b[0] == 20 + rank, "scattered %d", b[0]);
	}

	/* The lowest block is not the first item. */
	CLEAR(b);
	MUST(MPI_Gatherv(&rank, 1, MPI_INT, MPI_BOTTOM, ones, one_on, at_b, 0, MPI_COMM_WORLD));
	if (rank == 0)
		HOLDS(b, 1, i);
	int got = -1;
	MUST(MPI_Scatterv(MPI_BOTTOM, ones, one_on, at_b, &got, 1, MPI_INT, 0, MPI_COMM_WORLD));
	CHECK(got == rank, "scattered %d", got);
	CLEAR(b);
	b[rank + 1] = 30 + rank;
	MUST(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, MPI_BOTTOM, ones, one_on, at_b, MPI_COMM_WORLD));
	HOLDS(b, 1, 30 + i);
	for (int i = 0; i < size; i++)
		a[i + 1] = 10 * rank + i;
	CLEAR(b);
	MUST(MPI_Alltoallv(MPI_BOTTOM, ones, one_on, at_a, MPI_BOTTOM, ones, one_on, at_b, MPI_COMM_WORLD));
	HOLDS(b, 1, 10 * i + rank);
	CLEAR(b);
	MUST(MPI_Alltoallw(MPI_BOTTOM, ones, bytes, as, MPI_BOTTOM, ones, bytes, bs, MPI_COMM_WORLD));
	HOLDS(b, 1, 10 * i + rank);

	/* Blocks with a gap, three ints from one to the next; a displacement down from MPI_BOTTOM. */
	CLEAR(b);
	b[3 * rank] = b[3 * rank + 2] = rank;
	MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, MPI_BOTTOM, 1, two, MPI_COMM_WORLD));
	for (int i = 0; i < 3 * size; i++)
		CHECK(b[i] == (i % 3 == 1 ? -1 : i / 3), "element %d is %d", i, b[i]);
	MPI_Datatype high = absolute(b + 1, 1);
	int down = -1, one = 1;
	MUST(MPI_Allgatherv(&size, 1, MPI_INT, MPI_BOTTOM, &one, &down, high, MPI_COMM_SELF));
	CHECK(b[0] == size && b[1] == -1, "before the first item %d", b[0]);

	/* MPI_BOTTOM is no buffer for MPI_INT, wherever the block is. */
	FAILS(MPI_ERR_BUFFER, MPI_Allgatherv(&rank, 1, MPI_INT, MPI_BOTTOM, &one, &one, MPI_INT, MPI_COMM_SELF));
	MUST(MPI_Type_free(&at_a));
	MUST(MPI_Type_free(&at_b));
	MUST(MPI_Type_free(&two));
	MUST(MPI_Type_free(&high));
}

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	int to = (rank + 1) % size, from = (rank + size - 1) % size;

	const int n = 50000;
	short local[4];
	int *heap = malloc(n * sizeof *heap), *in = malloc(n * sizeof *in);
	double got[3];
	short other[4];
	for (int i = 0; i < 4; i++)
		local[i] = 10 * rank + i;
	for (int i = 0; i < n; i++)
		heap[i] = 7 * rank + i, in[i] = -1;
	for (int i = 0; i < 3; i++)
		fixed[i] = rank + i / 8., got[i] = -1;

	int lens[] = {4, n, 3};
	MPI_Aint a[3], b[3];
	MPI_Datatype parts[] = {MPI_SHORT, MPI_INT, MPI_DOUBLE}, out, into;
	MUST(MPI_Get_address(local, &a[0]));
	MUST(MPI_Get_address(heap, &a[1]));
	MUST(MPI_Get_address(fixed, &a[2]));
	MUST(MPI_Get_address(other, &b[0]));
	MUST(MPI_Get_address(in, &b[1]));
	MUST(MPI_Get_address(got, &b[2]));
	MUST(MPI_Type_create_struct(3, lens, a, parts, &out));
	MUST(MPI_Type_create_struct(3, lens, b, parts, &into));
	MUST(MPI_Type_commit(&out));
	MUST(MPI_Type_commit(&into));
	MPI_Request r[2];
	MUST(MPI_Irecv(MPI_BOTTOM, 1, into, from, 3, MPI_COMM_WORLD, &r[0]));
	MUST(MPI_Isend(MPI_BOTTOM, 1, out, to, 3, MPI_COMM_WORLD, &r[1]));
	/* Freed datatypes live on in operations. */
	MUST(MPI_Type_free(&out));
	MUST(MPI_Type_free(&into));
	MUST(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	for (int i = 0; i < 4; i++)
		CHECK(other[i] == 10 * from + i, "short %d is %d", i, other[i]);
	for (int i = 0; i < n; i++)
		CHECK(in[i] == 7 * from + i, "int %d is %d", i, in[i]);
	for (int i = 0; i < 3; i++)
		CHECK(got[i] == from + i / 8., "double %d is %g", i, got[i]);

	/* The other way round: an absolute send, a plain receive. */
	MUST(MPI_Type_create_hindexed_block(1, n, &a[1], MPI_INT, &out));
	MUST(MPI_Type_commit(&out));
	memset(in, 0, n * sizeof *in);
	MUST(MPI_Sendrecv(MPI_BOTTOM, 1, out, to, 4, in, n, MPI_INT, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(in[n - 1] == 7 * from + n - 1, "the last int is %d", in[n - 1]);
	MUST(MPI_Bcast(MPI_BOTTOM, 1, out, 0, MPI_COMM_WORLD));
	CHECK(heap[5] == 5, "after the broadcast int 5 is %d", heap[5]);
	MUST(MPI_Type_free(&out));

	/* A datatype that reaches backward from its buffer. */
	int where[] = {-3, 2, -7};
	int array[20], result[20];
	for (int i = 0; i < 20; i++)
		array[i] = 100 * rank + i, result[i] = -1;
	MUST(MPI_Type_create_indexed_block(3, 1, where, MPI_INT, &out));
	MUST(MPI_Type_commit(&out));
	MUST(MPI_Sendrecv(array + 10, 1, out, to, 5, result + 7, 1, out, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (int i = 0; i < 20; i++) {
		int want = i == 4 || i == 9 || i == 0 ? 100 * from + i + 3 : -1;
		CHECK(result[i] == want, "element %d is %d, want %d", i, result[i], want);
	}
	MUST(MPI_Type_free(&out));

	MPI_Aint d = MPI_Aint_diff(a[1], b[1]);
	CHECK(MPI_Aint_add(b[1], d) == a[1], "addresses do not add up");

	/* MPI_BOTTOM is no buffer for a datatype that is not absolute. */
	FAILS(MPI_ERR_BUFFER, MPI_Send(MPI_BOTTOM, 1, MPI_INT, to, 6, MPI_COMM_WORLD));
	MUST(MPI_Sendrecv(NULL, 0, MPI_INT, to, 7, NULL, 0, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	blocks(rank, size);
	free(heap);
	free(in);
	done();
	MUST(MPI_Finalize());
	return 0;
}
