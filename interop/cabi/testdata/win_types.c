// Updates of windows with all predefined operators and datatypes, pairs and long double included, and derived
// datatypes on both sides: gaps stay as they were.
// cabi: ranks=1,2,4
#include "check.h"
#include <complex.h>
#include <stdint.h>

static int rank, size, right, left;
static char *mem; /* 4096 bytes of the window */
static MPI_Win win;

/* UPDATES(type, datatype, op, expression): all ranks combine the numbers 1, 2 … at the right neighbour, where 3, 3 …
   were. In the expression a is the old value, b the other. */
#define UPDATES(type, datatype, op, expression) \
	do { \
		type *at_ = (type *)mem, src_[5], old_[5]; \
		for (int i_ = 0; i_ < 5; i_++) { \
			at_[i_] = 3; \
			src_[i_] = i_ + 1; \
			old_[i_] = 0; \
		} \
		MUST(MPI_Win_fence(0, win)); \
		MUST(MPI_Accumulate(src_, 4, datatype, right, 0, 4, datatype, op, win)); \
		MUST(MPI_Win_fence(0, win)); \
		for (int i_ = 0; i_ < 5; i_++) { \
			type a = 3, b = i_ + 1, want_ = i_ < 4 ? (type)(expression) : a; \
			(void)b; \
			CHECK(at_[i_] == want_, "%s %s: element %d", #op, #datatype, i_); \
			at_[i_] = 3; \
		} \
		MUST(MPI_Win_fence(0, win)); \
		MUST(MPI_Get_accumulate(src_, 4, datatype, old_, 4, datatype, right, 0, 4, datatype, op, win)); \
		MUST(MPI_Fetch_and_op(&src_[4], &old_[4], datatype, right, 1024, op, win)); \
		MUST(MPI_Win_fence(0, win)); \
		for (int i_ = 0; i_ < 4; i_++) { \
			type a = 3, b = i_ + 1, want_ = (type)(expression); \
			CHECK(at_[i_] == want_ && old_[i_] == a, "%s %s: element %d, fetched", #op, #datatype, i_); \
		} \
	} while (0)

#define ARITHMETIC(type, datatype) \
	UPDATES(type, datatype, MPI_SUM, a + b); \
	UPDATES(type, datatype, MPI_PROD, a * b); \
	UPDATES(type, datatype, MPI_REPLACE, b)

#define ORDERED(type, datatype) \
	ARITHMETIC(type, datatype); \
	UPDATES(type, datatype, MPI_MIN, a < b ? a : b); \
	UPDATES(type, datatype, MPI_MAX, a > b ? a : b)

#define INTEGERS(type, datatype) \
	ORDERED(type, datatype); \
	UPDATES(type, datatype, MPI_BAND, a & b); \
	UPDATES(type, datatype, MPI_BOR, a | b); \
	UPDATES(type, datatype, MPI_BXOR, a ^ b); \
	UPDATES(type, datatype, MPI_LAND, a && b); \
	UPDATES(type, datatype, MPI_LOR, a || b); \
	UPDATES(type, datatype, MPI_LXOR, !a != !b)

static void numbers(void)
{
	INTEGERS(signed char, MPI_SIGNED_CHAR);
	INTEGERS(unsigned char, MPI_UNSIGNED_CHAR);
	INTEGERS(short, MPI_SHORT);
	INTEGERS(unsigned short, MPI_UNSIGNED_SHORT);
	INTEGERS(int, MPI_INT);
	INTEGERS(unsigned, MPI_UNSIGNED);
	INTEGERS(long, MPI_LONG);
	INTEGERS(unsigned long, MPI_UNSIGNED_LONG);
	INTEGERS(long long, MPI_LONG_LONG);
	INTEGERS(int8_t, MPI_INT8_T);
	INTEGERS(uint64_t, MPI_UINT64_T);
	ORDERED(float, MPI_FLOAT);
	ORDERED(double, MPI_DOUBLE);
	ORDERED(long double, MPI_LONG_DOUBLE);
	ORDERED(MPI_Aint, MPI_AINT);
	ORDERED(MPI_Count, MPI_COUNT);
	ORDERED(MPI_Offset, MPI_OFFSET);
	ARITHMETIC(float complex, MPI_C_FLOAT_COMPLEX);
	ARITHMETIC(double complex, MPI_C_DOUBLE_COMPLEX);
	ARITHMETIC(long double complex, MPI_C_LONG_DOUBLE_COMPLEX);
	UPDATES(char, MPI_CHAR, MPI_REPLACE, b);
	UPDATES(char, MPI_BYTE, MPI_BXOR, a ^ b);
	UPDATES(_Bool, MPI_C_BOOL, MPI_LAND, a && b);
}

/* PAIRS(value, datatype): the ranks' pairs meet at rank 0, three at a time. Padding is not touched. */
#define PAIRS(value, datatype) \
	do { \
		struct pair { value v; int i; } *at_ = (struct pair *)mem, src_[3], old_[3]; \
		memset(mem, 0x5a, 256); \
		memset(src_, 0x11, sizeof src_); \
		memset(old_, 0xa5, sizeof old_); \
		for (int k_ = 0; k_ < 3; k_++) { \
			at_[k_].v = k_ == 1 ? -100 : 1; \
			at_[k_].i = 1000; \
			src_[k_].v = k_ == 2 ? 1 : -rank; \
			src_[k_].i = 10 * rank + k_; \
		} \
		MUST(MPI_Win_fence(0, win)); \
		MUST(MPI_Accumulate(src_, 3, datatype, 0, 0, 3, datatype, MPI_MINLOC, win)); \
		MUST(MPI_Win_fence(0, win)); \
		if (rank == 0) { \
			CHECK(at_[0].v == -(size - 1) && at_[0].i == 10 * (size - 1), "%s: %d of %d", #datatype, (int)at_[0].v, at_[0].i); \
			CHECK(at_[1].v == -100 && at_[1].i == 1000, "%s: %d of %d", #datatype, (int)at_[1].v, at_[1].i); \
			CHECK(at_[2].v == 1 && at_[2].i == 2, "%s: %d of %d", #datatype, (int)at_[2].v, at_[2].i); \
			for (char *p_ = (char *)(&at_[0].v + 1); p_ < (char *)&at_[0].i; p_++) \
				CHECK(*p_ == 0x5a, "%s: padding %d", #datatype, *p_); \
			for (char *p_ = (char *)(&at_[0].i + 1); p_ < (char *)&at_[1]; p_++) \
				CHECK(*p_ == 0x5a, "%s: padding %d", #datatype, *p_); \
		} \
		MUST(MPI_Win_fence(0, win)); \
		MUST(MPI_Get_accumulate(NULL, 0, MPI_INT, old_, 3, datatype, 0, 0, 3, datatype, MPI_NO_OP, win)); \
		MUST(MPI_Win_fence(0, win)); \
		CHECK(old_[0].v == -(size - 1) && old_[1].i == 1000 && old_[2].i == 2, "%s: fetched", #datatype); \
		for (char *p_ = (char *)(&old_[1].i + 1); p_ < (char *)&old_[2]; p_++) \
			CHECK(*p_ == (char)0xa5, "%s: padding %d is fetched", #datatype, *p_); \
		if (rank == 0) { \
			src_[0].v = 5; \
			src_[0].i = 4; \
			MUST(MPI_Fetch_and_op(&src_[0], &old_[0], datatype, size - 1, 0, MPI_MAXLOC, win)); \
		} \
		MUST(MPI_Win_fence(0, win)); \
		if (rank == size - 1) \
			CHECK(at_[0].v == 5 && at_[0].i == 4, "%s: %d of %d", #datatype, (int)at_[0].v, at_[0].i); \
		MUST(MPI_Win_fence(0, win)); \
	} while (0)

static void pairs(void)
{
	PAIRS(int, MPI_2INT);
	PAIRS(float, MPI_FLOAT_INT);
	PAIRS(double, MPI_DOUBLE_INT);
	PAIRS(long, MPI_LONG_INT);
	PAIRS(short, MPI_SHORT_INT);
	PAIRS(long double, MPI_LONG_DOUBLE_INT);
}

static void derived(void)
{
	MPI_Datatype column, back, row, dup, shorts, mixed, bytes;
	int i, *at = (int *)mem, src[40], got[40];

	/* A column of a matrix of 4 × 8, and the elements of another one in reverse order, below the beginning. */
	MUST(MPI_Type_vector(4, 1, 8, MPI_INT, &column));
	MUST(MPI_Type_create_hvector(4, 1, -12, MPI_INT, &back));
	MUST(MPI_Type_contiguous(4, MPI_INT, &row));
	MUST(MPI_Type_dup(column, &dup));
	MUST(MPI_Type_commit(&column));
	MUST(MPI_Type_commit(&back));
	MUST(MPI_Type_commit(&row));
	MUST(MPI_Type_commit(&dup));
	for (i = 0; i < 40; i++) {
		at[i] = i;
		src[i] = 100 * (i + 1);
		got[i] = -1;
	}
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Put(src + 20, 1, back, right, 4, 1, column, win)); /* 1, 9, 17, 25 get 20, 17, 14, 11 */
	MUST(MPI_Win_fence(0, win));                                /* 17 is updated again below */
	MUST(MPI_Accumulate(src, 1, row, right, 8, 1, dup, MPI_SUM, win));   /* 2, 10, 18, 26 */
	MUST(MPI_Accumulate(src, 4, MPI_INT, right, 20 * 4, 1, back, MPI_PROD, win)); /* 20, 17, 14, 11 */
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < 32; i++) {
		int want = i;
		if (i % 8 == 1)
			want = 100 * (21 - 3 * (i / 8));
		else if (i % 8 == 2)
			want += 100 * (i / 8 + 1);
		if (i == 20 || i == 14 || i == 11)
			want *= 100 * ((20 - i) / 3 + 1);
		if (i == 17)
			want *= 200;
		CHECK(at[i] == want, "at[%d] = %d, want %d", i, at[i], want);
	}
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Get_accumulate(src, 1, column, got, 1, column, right, 8, 4, MPI_INT, MPI_REPLACE, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < 40; i++) {
		int want = i == 0 ? 2 + 100 : i == 8 ? 3 : i == 16 ? 4 : i == 24 ? 5 : -1;
		CHECK(got[i] == want, "got[%d] = %d, want %d", i, got[i], want);
	}
	for (i = 0; i < 4; i++)
		CHECK(at[2 + i] == 100 * (8 * i + 1), "at[%d] = %d", 2 + i, at[2 + i]);
	/* Pairs of two runs of memory each, in a vector; a struct of several types, which can only be replaced. */
	struct { short v; int i; } *where = (void *)mem, from[3] = {{7, 1}, {8, 2}, {9, 3}};
	struct { char c; double d; } *put = (void *)(mem + 512), thing = {'x', 2.5};
	int lens[2] = {1, 1};
	MPI_Aint displs[2] = {0, 8};
	MPI_Datatype kinds[2] = {MPI_CHAR, MPI_DOUBLE};
	MUST(MPI_Type_vector(3, 1, 2, MPI_SHORT_INT, &shorts));
	MUST(MPI_Type_create_struct(2, lens, displs, kinds, &mixed));
	MUST(MPI_Type_create_subarray(1, (int[]){64}, (int[]){5}, (int[]){7}, MPI_ORDER_C, MPI_BYTE, &bytes));
	MUST(MPI_Type_commit(&shorts));
	MUST(MPI_Type_commit(&mixed));
	MUST(MPI_Type_commit(&bytes));
	memset(mem, 0, 1024);
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Accumulate(from, 3, MPI_SHORT_INT, right, 0, 1, shorts, MPI_MAXLOC, win));
	MUST(MPI_Accumulate(&thing, 1, mixed, right, 512, 1, mixed, MPI_REPLACE, win));
	MUST(MPI_Put("hello", 5, MPI_BYTE, right, 1024, 1, bytes, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < 3; i++)
		CHECK(where[2 * i].v == 7 + i && where[2 * i].i == 1 + i && where[2 * i + 1].v == 0, "pair %d: %d of %d", i,
		      where[2 * i].v, where[2 * i].i);
	CHECK(put->c == 'x' && put->d == 2.5, "replaced by %c and %g", put->c, put->d);
	CHECK(memcmp(mem + 1031, "hello", 5) == 0, "%.5s", mem + 1031);
	MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_TYPE, MPI_Accumulate(&thing, 1, mixed, right, 512, 1, mixed, MPI_SUM, win));
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Type_free(&column));
	MUST(MPI_Type_free(&back));
	MUST(MPI_Type_free(&row));
	MUST(MPI_Type_free(&dup));
	MUST(MPI_Type_free(&shorts));
	MUST(MPI_Type_free(&mixed));
	MUST(MPI_Type_free(&bytes));
}

/* Updates of one rank at one place happen in the order of the calls. */
static void order(void)
{
	double *at = (double *)mem, v[50], old[50];
	int i;

	for (i = 0; i < size; i++)
		at[i] = -1;
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < 50; i++) {
		v[i] = 10 * rank + i;
		MUST(MPI_Get_accumulate(&v[i], 1, MPI_DOUBLE, &old[i], 1, MPI_DOUBLE, right, 8 * rank, 1, MPI_DOUBLE, MPI_REPLACE, win));
	}
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < 50; i++)
		CHECK(old[i] == (i == 0 ? -1 : v[i - 1]), "old[%d] = %g", i, old[i]);
	CHECK(at[left] == 10 * left + 49, "the last is %g", at[left]);
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	mem = calloc(4096, 1);
	MUST(MPI_Win_create(mem, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	numbers();
	pairs();
	derived();
	order();
	MUST(MPI_Win_free(&win));
	free(mem);
	done();
	MUST(MPI_Finalize());
	return 0;
}
