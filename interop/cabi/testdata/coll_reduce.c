// Reductions of all kinds of numbers of C, in all forms, in place and not.
// cabi: ranks=1,2,4,8 transports=shm,sctp
#include <complex.h>
#include <stddef.h>
#include <stdint.h>

#include "coll.h"

enum { N = 600 };

/* Element i of rank r, small enough that results are exact. */
static int small(int r, int i) { return 1 + (r + i) % 3; }

static _Alignas(16) char send[N * 64], recv[N * 64], upto[N * 64], before[N * 64], all[N * 64];

/* A kind of number with an operator. */
struct kind {
	const char *name;
	size_t size;
	MPI_Datatype type;
	MPI_Op op;
	void (*make)(void); /* fills send, and what is to come of it: upto, before and all */
	int (*equal)(const void *x, const void *y);
};

/* EXPR combines x and y. */
#define REDUCE(TYPE, OP, EXPR) \
	static void TYPE##_##OP(void) \
	{ \
		for (int i = 0; i < N; i++) { \
			TYPE x = small(0, i), y; \
			((TYPE *)send)[i] = small(rank, i); \
			((TYPE *)upto)[i] = x; \
			for (int r = 1; r < size; r++) { \
				if (r == rank) \
					((TYPE *)before)[i] = x; \
				y = small(r, i); \
				x = EXPR; \
				if (r == rank) \
					((TYPE *)upto)[i] = x; \
			} \
			((TYPE *)all)[i] = x; \
		} \
	}
#define EQUAL(TYPE) \
	static int TYPE##_equal(const void *x, const void *y) { return *(const TYPE *)x == *(const TYPE *)y; }

/* The n elements at recv must be those at want. */
static void same(const char *what, const struct kind *k, const char *want, int n)
{
	for (int i = 0; i < n; i++)
		CHECK(k->equal(recv + i * k->size, want + i * k->size), "%s, %s: element %d of %d", what, k->name, i, n);
}

static void reduce(const struct kind *k, int form, int root)
{
	int counts[8], mine = 0, at = 0, block = N / size;
	for (int i = 0; i < size; i++) {
		counts[i] = (i + 1) % 3 * 20;
		if (i < rank)
			at += counts[i];
	}
	mine = counts[rank];
	k->make();

	memset(recv, 0, sizeof recv);
	DO(form, Reduce, reduce, send, rank == root ? recv : NULL, N, k->type, k->op, root, MPI_COMM_WORLD);
	same("Reduce", k, all, rank == root ? N : 0);
	memcpy(recv, send, sizeof recv);
	DO(form, Reduce, reduce, rank == root ? MPI_IN_PLACE : recv, rank == root ? recv : NULL, N, k->type, k->op, root,
	   MPI_COMM_WORLD);
	same("Reduce in place", k, all, rank == root ? N : 0);

	memset(recv, 0, sizeof recv);
	DO(form, Allreduce, allreduce, send, recv, N, k->type, k->op, MPI_COMM_WORLD);
	same("Allreduce", k, all, N);
	memcpy(recv, send, sizeof recv);
	DO(form, Allreduce, allreduce, MPI_IN_PLACE, recv, N, k->type, k->op, MPI_COMM_WORLD);
	same("Allreduce in place", k, all, N);

	memset(recv, 0, sizeof recv);
	DO(form, Scan, scan, send, recv, N, k->type, k->op, MPI_COMM_WORLD);
	same("Scan", k, upto, N);
	memcpy(recv, send, sizeof recv);
	DO(form, Scan, scan, MPI_IN_PLACE, recv, N, k->type, k->op, MPI_COMM_WORLD);
	same("Scan in place", k, upto, N);

	memset(recv, 0, sizeof recv);
	DO(form, Exscan, exscan, send, recv, N, k->type, k->op, MPI_COMM_WORLD);
	same("Exscan", k, before, rank > 0 ? N : 0);
	memcpy(recv, send, sizeof recv);
	DO(form, Exscan, exscan, MPI_IN_PLACE, recv, N, k->type, k->op, MPI_COMM_WORLD);
	same("Exscan in place", k, rank > 0 ? before : send, N); /* at rank 0 it stays */

	memset(recv, 0, sizeof recv);
	DO(form, Reduce_scatter, reduce_scatter, send, recv, counts, k->type, k->op, MPI_COMM_WORLD);
	same("Reduce_scatter", k, all + at * k->size, mine);
	memcpy(recv, send, sizeof recv);
	DO(form, Reduce_scatter, reduce_scatter, MPI_IN_PLACE, recv, counts, k->type, k->op, MPI_COMM_WORLD);
	same("Reduce_scatter in place", k, all + at * k->size, mine);

	memset(recv, 0, sizeof recv);
	DO(form, Reduce_scatter_block, reduce_scatter_block, send, recv, block, k->type, k->op, MPI_COMM_WORLD);
	same("Reduce_scatter_block", k, all + rank * block * k->size, block);
	memcpy(recv, send, sizeof recv);
	DO(form, Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, recv, block, k->type, k->op, MPI_COMM_WORLD);
	same("Reduce_scatter_block in place", k, all + rank * block * k->size, block);

	/* What the ranks before have with what this one has is what they have together. */
	if (rank > 0) {
		memcpy(recv, send, sizeof recv);
		MUST(MPI_Reduce_local(before, recv, N, k->type, k->op));
		same("Reduce_local", k, upto, N);
	}
}

#define ARITHMETIC(TYPE) \
	REDUCE(TYPE, MPI_SUM, x + y) \
	REDUCE(TYPE, MPI_PROD, x *y)
#define ORDER(TYPE) \
	REDUCE(TYPE, MPI_MAX, (x > y ? x : y)) \
	REDUCE(TYPE, MPI_MIN, (x < y ? x : y))
#define BITS(TYPE) \
	REDUCE(TYPE, MPI_BAND, x &y) \
	REDUCE(TYPE, MPI_BOR, x | y) \
	REDUCE(TYPE, MPI_BXOR, x ^ y)
#define LOGIC(TYPE) \
	REDUCE(TYPE, MPI_LAND, (x && y)) \
	REDUCE(TYPE, MPI_LOR, (x || y)) \
	REDUCE(TYPE, MPI_LXOR, (!x != !y))
#define INTEGER(TYPE) EQUAL(TYPE) ARITHMETIC(TYPE) ORDER(TYPE) BITS(TYPE) LOGIC(TYPE)
#define WIDE(TYPE) EQUAL(TYPE) ARITHMETIC(TYPE) ORDER(TYPE) BITS(TYPE)
#define REAL(TYPE) EQUAL(TYPE) ARITHMETIC(TYPE) ORDER(TYPE)
#define COMPLEX(TYPE) EQUAL(TYPE) ARITHMETIC(TYPE)

typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort_;
typedef unsigned uint_;
typedef unsigned long ulong_;
typedef long long llong;
typedef unsigned long long ullong;
typedef long double ldouble;
typedef float complex fcomplex;
typedef double complex dcomplex;
typedef long double complex lcomplex;
typedef _Bool bool_;

INTEGER(schar)
INTEGER(uchar)
INTEGER(short)
INTEGER(ushort_)
INTEGER(int)
INTEGER(uint_)
INTEGER(long)
INTEGER(ulong_)
INTEGER(llong)
INTEGER(ullong)
INTEGER(int8_t)
INTEGER(uint8_t)
INTEGER(int16_t)
INTEGER(uint16_t)
INTEGER(int32_t)
INTEGER(uint32_t)
INTEGER(int64_t)
INTEGER(uint64_t)
WIDE(MPI_Aint)
WIDE(MPI_Count)
WIDE(MPI_Offset)
EQUAL(char)
BITS(char)
REAL(float)
REAL(double)
REAL(ldouble)
COMPLEX(fcomplex)
COMPLEX(dcomplex)
COMPLEX(lcomplex)
EQUAL(bool_)
LOGIC(bool_)

#define KIND(TYPE, DATATYPE, OP) {#OP " of " #DATATYPE, sizeof(TYPE), DATATYPE, OP, TYPE##_##OP, TYPE##_equal}
#define K_ARITHMETIC(T, D) KIND(T, D, MPI_SUM), KIND(T, D, MPI_PROD)
#define K_ORDER(T, D) KIND(T, D, MPI_MAX), KIND(T, D, MPI_MIN)
#define K_BITS(T, D) KIND(T, D, MPI_BAND), KIND(T, D, MPI_BOR), KIND(T, D, MPI_BXOR)
#define K_LOGIC(T, D) KIND(T, D, MPI_LAND), KIND(T, D, MPI_LOR), KIND(T, D, MPI_LXOR)
#define K_INTEGER(T, D) K_ARITHMETIC(T, D), K_ORDER(T, D), K_BITS(T, D), K_LOGIC(T, D)
#define K_WIDE(T, D) K_ARITHMETIC(T, D), K_ORDER(T, D), K_BITS(T, D)
#define K_REAL(T, D) K_ARITHMETIC(T, D), K_ORDER(T, D)

static const struct kind kinds[] = {
    K_INTEGER(schar, MPI_SIGNED_CHAR),
    K_INTEGER(uchar, MPI_UNSIGNED_CHAR),
    K_INTEGER(short, MPI_SHORT),
    K_INTEGER(ushort_, MPI_UNSIGNED_SHORT),
    K_INTEGER(int, MPI_INT),
    K_INTEGER(uint_, MPI_UNSIGNED),
    K_INTEGER(long, MPI_LONG),
    K_INTEGER(ulong_, MPI_UNSIGNED_LONG),
    K_INTEGER(llong, MPI_LONG_LONG),
    K_INTEGER(ullong, MPI_UNSIGNED_LONG_LONG),
    K_INTEGER(int8_t, MPI_INT8_T),
    K_INTEGER(uint8_t, MPI_UINT8_T),
    K_INTEGER(int16_t, MPI_INT16_T),
    K_INTEGER(uint16_t, MPI_UINT16_T),
    K_INTEGER(int32_t, MPI_INT32_T),
    K_INTEGER(uint32_t, MPI_UINT32_T),
    K_INTEGER(int64_t, MPI_INT64_T),
    K_INTEGER(uint64_t, MPI_UINT64_T),
    K_WIDE(MPI_Aint, MPI_AINT),
    K_WIDE(MPI_Count, MPI_COUNT),
    K_WIDE(MPI_Offset, MPI_OFFSET),
    K_BITS(char, MPI_BYTE),
    K_REAL(float, MPI_FLOAT),
    K_REAL(double, MPI_DOUBLE),
    K_REAL(ldouble, MPI_LONG_DOUBLE),
    K_ARITHMETIC(fcomplex, MPI_C_FLOAT_COMPLEX),
    K_ARITHMETIC(dcomplex, MPI_C_DOUBLE_COMPLEX),
    K_ARITHMETIC(lcomplex, MPI_C_LONG_DOUBLE_COMPLEX),
    K_LOGIC(bool_, MPI_C_BOOL),
};

/* A value and where it is, of all predefined pairs: the least and the greatest, of equal ones the first. */
#define LOCATE(VALUE, DATATYPE) \
	static void DATATYPE##_loc(int form) \
	{ \
		struct pair { \
			VALUE value; \
			int at; \
		}; \
		static struct pair send[N], recv[N]; /* not those above */ \
		for (int i = 0; i < N; i++) { \
			send[i].value = (rank + i) % 3; \
			send[i].at = rank; \
		} \
		for (int most = 0; most < 2; most++) { \
			memset(recv, 0xee, sizeof recv); \
			DO(form, Allreduce, allreduce, send, recv, N, DATATYPE, most ? MPI_MAXLOC : MPI_MINLOC, MPI_COMM_WORLD); \
			for (int i = 0; i < N; i++) { \
				int best = 0; \
				for (int r = 1; r < size; r++) \
					if (most ? (r + i) % 3 > (best + i) % 3 : (r + i) % 3 < (best + i) % 3) \
						best = r; \
				CHECK(recv[i].value == (best + i) % 3 && recv[i].at == best, #DATATYPE " %d, most %d: %g at %d, want %d at %d", i, \
				      most, (double)recv[i].value, recv[i].at, (best + i) % 3, best); \
			} \
			if (offsetof(struct pair, at) + sizeof(int) < sizeof(struct pair)) \
				CHECK(((unsigned char *)&recv[1])[-1] == 0xee, #DATATYPE ": padding was written"); \
		} \
	}

LOCATE(float, MPI_FLOAT_INT)
LOCATE(double, MPI_DOUBLE_INT)
LOCATE(long, MPI_LONG_INT)
LOCATE(int, MPI_2INT)
LOCATE(short, MPI_SHORT_INT)
LOCATE(long double, MPI_LONG_DOUBLE_INT)

int main(int argc, char **argv)
{
	static void (*const pairs[])(int) = {MPI_FLOAT_INT_loc, MPI_DOUBLE_INT_loc, MPI_LONG_INT_loc,
	                                     MPI_2INT_loc,      MPI_SHORT_INT_loc,  MPI_LONG_DOUBLE_INT_loc};
	begin(&argc, &argv);
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		reduce(&kinds[i], i % FORMS, i % size);
	for (int form = 0; form < FORMS; form++)
		for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++)
			pairs[i](form);
	end();
	return 0;
}
