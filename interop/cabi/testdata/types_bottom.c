// Absolute addresses: variables on the stack, on the heap and in static memory travel by MPI_BOTTOM, in
// any order of addresses; negative lower bounds; addresses and their differences.
// cabi: ranks=1,2 transports=shm,hybrid,sctp,tcp
#include "check.h"

static double fixed[3];

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
	free(heap);
	free(in);
	done();
	MUST(MPI_Finalize());
	return 0;
}
