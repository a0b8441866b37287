// Every constructor of datatypes: size, bounds, and what a datatype selects, by packing.
// cabi: ranks=1 transports=shm
#include "check.h"
#include <stddef.h>

/* Checks size, extent and true extent of a datatype, and that it packs the listed ints, given by their
 * index in an array around base. */
static void expect(const char *name, MPI_Datatype type, int size, MPI_Aint lb, MPI_Aint extent, MPI_Aint tlb,
	MPI_Aint textent, int n, const int *index)
{
	static int array[400];
	int *base = array + 200;
	int got_size, packed[400], position = 0;
	MPI_Aint a, b;
	MPI_Count c, d;

	MUST(MPI_Type_commit(&type));
	MUST(MPI_Type_size(type, &got_size));
	CHECK(got_size == size, "%s: size %d, want %d", name, got_size, size);
	MUST(MPI_Type_get_extent(type, &a, &b));
	CHECK(a == lb && b == extent, "%s: bounds %ld and %ld, want %ld and %ld", name, (long)a, (long)b, (long)lb, (long)extent);
	MUST(MPI_Type_get_extent_x(type, &c, &d));
	CHECK(c == lb && d == extent, "%s: bounds %ld and %ld", name, (long)c, (long)d);
	MUST(MPI_Type_get_true_extent(type, &a, &b));
	CHECK(a == tlb && b == textent, "%s: true bounds %ld and %ld, want %ld and %ld", name, (long)a, (long)b, (long)tlb, (long)textent);
	MUST(MPI_Type_get_true_extent_c(type, &c, &d));
	CHECK(c == tlb && d == textent, "%s: true bounds %ld and %ld", name, (long)c, (long)d);

	for (int i = 0; i < 400; i++)
		array[i] = i - 200;
	MUST(MPI_Pack(base, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF));
	CHECK(position == size, "%s: packed %d bytes", name, position);
	for (int i = 0; i < n; i++)
		CHECK(packed[i] == index[i], "%s: element %d is %d, want %d", name, i, packed[i], index[i]);

	memset(array, 0, sizeof array);
	position = 0;
	MUST(MPI_Unpack(packed, size, &position, base, 1, type, MPI_COMM_SELF));
	int there = 0;
	for (int i = 0; i < 400; i++)
		there += array[i] != 0;
	int want = 0;
	for (int i = 0; i < n; i++) {
		CHECK(base[index[i]] == index[i], "%s: element %d was not unpacked", name, index[i]);
		want += index[i] != 0;
	}
	CHECK(there == want, "%s: %d elements are not 0 after unpacking %d", name, there, want);
	MUST(MPI_Type_free(&type));
	CHECK(type == MPI_DATATYPE_NULL, "%s: a freed handle is not null", name);
}

#define EXPECT(name, type, lb, extent, tlb, textent, ...) \
	do { \
		int index_[] = {__VA_ARGS__}; \
		int n_ = sizeof index_ / sizeof *index_; \
		expect(name, type, 4 * n_, lb, extent, tlb, textent, n_, index_); \
	} while (0)

int main(int argc, char **argv)
{
	MPI_Datatype t, u;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));

	MUST(MPI_Type_contiguous(3, MPI_INT, &t));
	EXPECT("contiguous", t, 0, 12, 0, 12, 0, 1, 2);
	MUST(MPI_Type_contiguous_c(3, MPI_INT, &t));
	EXPECT("contiguous_c", t, 0, 12, 0, 12, 0, 1, 2);
	MUST(MPI_Type_vector(3, 2, 5, MPI_INT, &t));
	EXPECT("vector", t, 0, 48, 0, 48, 0, 1, 5, 6, 10, 11);
	MUST(MPI_Type_vector(3, 1, -2, MPI_INT, &t));
	EXPECT("vector backward", t, -16, 20, -16, 20, 0, -2, -4);
	MUST(MPI_Type_create_hvector(2, 2, -40, MPI_INT, &t));
	EXPECT("hvector", t, -40, 48, -40, 48, 0, 1, -10, -9);

	int lens[] = {2, 0, 1}, displs[] = {4, 90, -3};
	MPI_Count lens_c[] = {2, 0, 1}, displs_c[] = {4, 90, -3}, bytes_c[] = {16, 360, -12};
	MPI_Aint bytes[] = {16, 360, -12};
	MUST(MPI_Type_indexed(3, lens, displs, MPI_INT, &t));
	EXPECT("indexed", t, -12, 36, -12, 36, 4, 5, -3);
	MUST(MPI_Type_indexed_c(3, lens_c, displs_c, MPI_INT, &t));
	EXPECT("indexed_c", t, -12, 36, -12, 36, 4, 5, -3);
	MUST(MPI_Type_create_hindexed(3, lens, bytes, MPI_INT, &t));
	EXPECT("hindexed", t, -12, 36, -12, 36, 4, 5, -3);
	MUST(MPI_Type_create_hindexed_c(3, lens_c, bytes_c, MPI_INT, &t));
	EXPECT("hindexed_c", t, -12, 36, -12, 36, 4, 5, -3);
	int starts[] = {7, 0, -5};
	MUST(MPI_Type_create_indexed_block(3, 2, starts, MPI_INT, &t));
	EXPECT("indexed_block", t, -20, 56, -20, 56, 7, 8, 0, 1, -5, -4);
	MPI_Aint at[] = {28, 0, -20};
	MUST(MPI_Type_create_hindexed_block(3, 2, at, MPI_INT, &t));
	EXPECT("hindexed_block", t, -20, 56, -20, 56, 7, 8, 0, 1, -5, -4);

	/* A datatype of a datatype with gaps and another lower bound. */
	MUST(MPI_Type_create_resized(MPI_INT, -4, 12, &u));
	MUST(MPI_Type_contiguous(3, u, &t));
	MUST(MPI_Type_free(&u));
	EXPECT("of resized", t, -4, 36, 0, 28, 0, 3, 6);
	MUST(MPI_Type_vector(2, 1, 3, MPI_INT, &u));
	MUST(MPI_Type_create_resized(u, 0, 4, &t));
	MUST(MPI_Type_free(&u));
	MUST(MPI_Type_contiguous(3, t, &u));
	MUST(MPI_Type_free(&t));
	EXPECT("columns", u, 0, 12, 0, 24, 0, 3, 1, 4, 2, 5);

	int sizes[] = {3, 4}, sub[] = {2, 2}, from[] = {1, 1};
	MUST(MPI_Type_create_subarray(2, sizes, sub, from, MPI_ORDER_C, MPI_INT, &t));
	EXPECT("subarray", t, 0, 48, 20, 24, 5, 6, 9, 10);
	MUST(MPI_Type_create_subarray(2, sizes, sub, from, MPI_ORDER_FORTRAN, MPI_INT, &t));
	EXPECT("subarray of Fortran", t, 0, 48, 16, 20, 4, 5, 7, 8);

	int dists[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, dargs[] = {MPI_DISTRIBUTE_DFLT_DARG, 1}, grid[] = {2, 2};
	MUST(MPI_Type_create_darray(4, 1, 2, sizes, dists, dargs, grid, MPI_ORDER_C, MPI_INT, &t));
	EXPECT("darray", t, 0, 48, 4, 28, 1, 3, 5, 7);
	MUST(MPI_Type_create_darray(4, 2, 2, sizes, dists, dargs, grid, MPI_ORDER_C, MPI_INT, &t));
	EXPECT("darray of another rank", t, 0, 48, 32, 12, 8, 10);

	/* A C struct: the extent has the padding at its end, the data has none. */
	struct item { char c; int i[2]; char d; };
	int blocks[] = {1, 2, 1};
	MPI_Aint where[] = {offsetof(struct item, c), offsetof(struct item, i), offsetof(struct item, d)};
	MPI_Datatype parts[] = {MPI_CHAR, MPI_INT, MPI_CHAR};
	MUST(MPI_Type_create_struct(3, blocks, where, parts, &t));
	MPI_Aint lb, extent;
	int size;
	MUST(MPI_Type_get_extent(t, &lb, &extent));
	MUST(MPI_Type_size(t, &size));
	CHECK(lb == 0 && extent == sizeof(struct item) && size == 10, "struct: %ld, %ld, %d bytes", (long)lb, (long)extent, size);
	MUST(MPI_Type_dup(t, &u));
	MUST(MPI_Type_free(&t));
	MUST(MPI_Type_get_extent(u, &lb, &extent));
	CHECK(extent == sizeof(struct item), "a duplicate has the extent %ld", (long)extent);
	MUST(MPI_Type_free(&u));

	/* Pairs of C, and sizes beyond an int. */
	struct { double d; int i; } pair;
	MUST(MPI_Type_get_extent(MPI_DOUBLE_INT, &lb, &extent));
	MUST(MPI_Type_size(MPI_DOUBLE_INT, &size));
	CHECK(extent == sizeof pair && size == 12, "MPI_DOUBLE_INT: %ld, %d bytes", (long)extent, size);
	MUST(MPI_Type_get_extent(MPI_LONG_DOUBLE, &lb, &extent));
	CHECK(extent == sizeof(long double), "MPI_LONG_DOUBLE: %ld", (long)extent);
	MPI_Count huge, want = (MPI_Count)1 << 40;
	MUST(MPI_Type_contiguous_c(want / 8, MPI_DOUBLE, &t));
	MUST(MPI_Type_size(t, &size));
	MUST(MPI_Type_size_x(t, &huge));
	CHECK(size == MPI_UNDEFINED && huge == want, "sizes %d and %lld", size, (long long)huge);
	MUST(MPI_Type_size_c(t, &huge));
	CHECK(huge == want, "size %lld", (long long)huge);
	MUST(MPI_Type_free(&t));

	/* What is refused. */
	FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &t));
	FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
	t = MPI_INT;
	FAILS(MPI_ERR_TYPE, MPI_Type_free(&t));
	t = MPI_DATATYPE_NULL;
	FAILS(MPI_ERR_TYPE, MPI_Type_commit(&t));
	MUST(MPI_Type_contiguous(2, MPI_INT, &t));
	FAILS(MPI_ERR_TYPE, MPI_Send(sizes, 1, t, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
	u = t;
	MUST(MPI_Type_free(&t));
	FAILS(MPI_ERR_TYPE, MPI_Type_size(u, &size));

	char name[MPI_MAX_OBJECT_NAME];
	int length;
	MUST(MPI_Type_get_name(MPI_UNSIGNED_LONG, name, &length));
	CHECK(strcmp(name, "MPI_UNSIGNED_LONG") == 0 && length == 17, "%s, %d", name, length);
	done();
	MUST(MPI_Finalize());
	return 0;
}
