// Operators of the program: on structs with gaps and pairs, not commutative, on whole items only, with the
// datatype that the caller gave, of both kinds of counts.
// cabi: ranks=1,2,4,8 transports=shm,sctp
#include <stddef.h>

#include "coll.h"

/* x -> a x + b; what follows from doing one after the other depends on the order. */
struct map {
	long a;
	int pad; /* is not sent */
	int b;
};

static MPI_Datatype map;
static int calls;

static void chain(void *in, void *inout, int *n, MPI_Datatype *type)
{
	struct map *x = in, *y = inout;
	CHECK(*type == map, "the operator got another datatype");
	calls++;
	for (int i = 0; i < *n; i++) {
		y[i].b = (int)(x[i].a * y[i].b) + x[i].b;
		y[i].a = x[i].a * y[i].a;
	}
}

static void chain_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
	int count = (int)*n;
	chain(in, inout, &count, type);
}

static void widest(void *in, void *inout, int *n, MPI_Datatype *type)
{
	struct interval {
		double low;
		int high;
	} *x = in, *y = inout;
	(void)type;
	for (int i = 0; i < *n; i++) {
		if (x[i].low < y[i].low)
			y[i].low = x[i].low;
		if (x[i].high > y[i].high)
			y[i].high = x[i].high;
	}
}

/* Adds the elements of a row of a matrix; a row is one item of a vector. */
static MPI_Datatype row;
static void rows(void *in, void *inout, int *n, MPI_Datatype *type)
{
	long lb, extent;
	CHECK(*type == row, "the operator got another datatype");
	MUST(MPI_Type_get_extent(*type, &lb, &extent));
	for (int i = 0; i < *n; i++) {
		int *x = (int *)((char *)in + i * extent), *y = (int *)((char *)inout + i * extent);
		for (int k = 0; k < 4; k++)
			y[3 * k] += x[3 * k];
	}
}

/* The datatype can be asked, although the program has freed it. */
static void sized(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int bytes = -1;
	MUST(MPI_Type_size(*type, &bytes));
	CHECK(bytes == (int)(sizeof(long) + sizeof(int)), "items of %d bytes", bytes);
	chain(in, inout, n, &map);
}

static struct map of(int r, int i) { return (struct map){1 + (r + i) % 2, -9, r + i}; }

static struct map fold(int from, int to, int i)
{
	struct map x = of(from, i);
	for (int r = from + 1; r <= to; r++) {
		struct map y = of(r, i);
		y.b = (int)(x.a * y.b) + x.b;
		y.a = x.a * y.a;
		x = y;
	}
	return x;
}

static void equal(const char *what, const struct map *got, int i, struct map want)
{
	CHECK(got[i].a == want.a && got[i].b == want.b, "%s: item %d is %ld, %d, want %ld, %d", what, i, got[i].a, got[i].b, want.a,
	      want.b);
}

int main(int argc, char **argv)
{
	enum { N = 3000 };
	static struct map send[N], recv[N];
	begin(&argc, &argv);

	int lens[2] = {1, 1};
	MPI_Aint at[2] = {offsetof(struct map, a), offsetof(struct map, b)};
	MPI_Datatype parts[2] = {MPI_LONG, MPI_INT}, raw;
	MUST(MPI_Type_create_struct(2, lens, at, parts, &raw));
	MUST(MPI_Type_create_resized(raw, 0, sizeof(struct map), &map));
	MUST(MPI_Type_free(&raw));
	MUST(MPI_Type_commit(&map));

	MPI_Op ops[2];
	MUST(MPI_Op_create(chain, 0, &ops[0]));
	MUST(MPI_Op_create_c(chain_c, 0, &ops[1]));
	for (int o = 0; o < 2; o++) {
		int commute = -1;
		MUST(MPI_Op_commutative(ops[o], &commute));
		CHECK(commute == 0, "commute is %d", commute);
		for (int form = 0; form < FORMS; form++) {
			static const int lengths[] = {0, 1, 9, N};
			for (int l = 0; l < 4; l++) {
				int n = lengths[l], root = l % size;
				for (int i = 0; i < n; i++) {
					send[i] = of(rank, i);
					recv[i] = (struct map){-1, -7, -1};
				}
				DO(form, Reduce, reduce, send, recv, n, map, ops[o], root, MPI_COMM_WORLD);
				for (int i = 0; i < n && rank == root; i++) {
					equal("Reduce", recv, i, fold(0, size - 1, i));
					CHECK(recv[i].pad == -7, "the gap of item %d was written: %d", i, recv[i].pad);
				}
				DO(form, Allreduce, allreduce, send, recv, n, map, ops[o], MPI_COMM_WORLD);
				for (int i = 0; i < n; i++)
					equal("Allreduce", recv, i, fold(0, size - 1, i));
				DO(form, Scan, scan, send, recv, n, map, ops[o], MPI_COMM_WORLD);
				for (int i = 0; i < n; i++)
					equal("Scan", recv, i, fold(0, rank, i));
				DO(form, Exscan, exscan, send, recv, n, map, ops[o], MPI_COMM_WORLD);
				for (int i = 0; i < n && rank > 0; i++)
					equal("Exscan", recv, i, fold(0, rank - 1, i));
				DO(form, Reduce_scatter_block, reduce_scatter_block, send, recv, n / size, map, ops[o], MPI_COMM_WORLD);
				for (int i = 0; i < n / size; i++)
					equal("Reduce_scatter_block", recv, i, fold(0, size - 1, rank * (n / size) + i));
				memcpy(recv, send, sizeof recv);
				DO(form, Allreduce, allreduce, MPI_IN_PLACE, recv, n, map, ops[o], MPI_COMM_WORLD);
				for (int i = 0; i < n; i++)
					equal("Allreduce in place", recv, i, fold(0, size - 1, i));
			}
		}
	}
	CHECK(size == 1 || calls > 0, "the operator was not called");
	struct map x = of(3, 0), y = of(4, 0), want = fold(3, 4, 0);
	MUST(MPI_Reduce_local(&x, &y, 1, map, ops[0]));
	equal("Reduce_local", &y, 0, want);

	/* On a pair of C. */
	struct {
		double low;
		int high;
	} mine = {-rank, 10 * rank}, all = {0, 0};
	MPI_Op hull;
	MUST(MPI_Op_create(widest, 1, &hull));
	MUST(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE_INT, hull, MPI_COMM_WORLD));
	CHECK(all.low == 1 - size && all.high == 10 * (size - 1), "from %g to %d", all.low, all.high);

	/* A reduction in progress goes on with an operator that is freed. */
	MPI_Request request;
	MUST(MPI_Iallreduce(&mine, &all, 1, MPI_DOUBLE_INT, hull, MPI_COMM_WORLD, &request));
	MUST(MPI_Op_free(&hull));
	CHECK(hull == MPI_OP_NULL, "a freed operator is not null");
	MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK(all.low == 1 - size && all.high == 10 * (size - 1), "then from %g to %d", all.low, all.high);

	/* And with a datatype that is freed. */
	MPI_Datatype copy;
	MUST(MPI_Type_dup(map, &copy));
	MUST(MPI_Op_create(sized, 0, &hull));
	send[0] = of(rank, 0);
	MUST(MPI_Iallreduce(send, recv, 1, copy, hull, MPI_COMM_WORLD, &request));
	MUST(MPI_Type_free(&copy));
	MUST(MPI_Op_free(&hull));
	MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
	equal("Iallreduce of a freed datatype", recv, 0, fold(0, size - 1, 0));

	/* Columns of a matrix, which interleave. */
	MPI_Datatype column;
	int matrix[12], sum[12];
	MUST(MPI_Type_vector(4, 1, 3, MPI_INT, &column));
	MUST(MPI_Type_create_resized(column, 0, sizeof(int), &row));
	MUST(MPI_Type_free(&column));
	MUST(MPI_Type_commit(&row));
	MPI_Op add;
	MUST(MPI_Op_create(rows, 1, &add));
	for (int i = 0; i < 12; i++)
		matrix[i] = 100 * rank + i, sum[i] = -1;
	MUST(MPI_Allreduce(matrix, sum, 2, row, add, MPI_COMM_WORLD));
	for (int i = 0; i < 12; i++) {
		int value = i % 3 == 2 ? -1 : 100 * size * (size - 1) / 2 + size * i;
		CHECK(sum[i] == value, "element %d is %d, want %d", i, sum[i], value);
	}
	MUST(MPI_Op_free(&add));
	MUST(MPI_Op_free(&ops[0]));
	MUST(MPI_Op_free(&ops[1]));
	MUST(MPI_Type_free(&row));
	MUST(MPI_Type_free(&map));
	end();
	return 0;
}
