// Reductions of all kinds of numbers of C, in all forms, in place and not.
// cabi: ranks=1,2,4,8 transports=shm,sctp
#include <complex.h>
#include <stddef.h>
#include <stdint.h>

#include "coll.h"

enum { N = 600 };

/* Element i of rank r, small enough that results are exact. */
static int small(int r, int i) { return 1 + (r + i) % 3; }

/* Reduces N elements of a type in all ways and compares with what one rank computes. EXPR combines x and y. */
#define REDUCE(TYPE, DATATYPE, OP, EXPR) \
	static void TYPE##_##OP(int form, int root) \
	{ \
		static TYPE send[N * 8], recv[N * 8], upto[N * 8], before[N * 8], all[N * 8]; \
		int counts[8], mine = 0, at = 0, total = 0; \
		for (int i = 0; i < size; i++) { \
			counts[i] = (i + 1) % 3 * 20; \
			if (i < rank) \
				at += counts[i]; \
			total += counts[i]; \
		} \
		mine = counts[rank]; \
		for (int i = 0; i < N; i++) { \
			TYPE x = small(0, i); \
			send[i] = small(rank, i); \
			before[i] = x; \
			upto[i] = x; \
			for (int r = 1; r < size; r++) { \
				TYPE y = small(r, i); \
				if (r == rank) \
					before[i] = x; \
				x = EXPR; \
				if (r == rank) \
					upto[i] = x; \
			} \
			all[i] = x; \
		} \
		memset(recv, 0, sizeof recv); \
		DO(form, Reduce, reduce, send, rank == root ? recv : NULL, N, DATATYPE, OP, root, MPI_COMM_WORLD); \
		for (int i = 0; i < N && rank == root; i++) \
			CHECK(recv[i] == all[i], "Reduce " #OP " of " #TYPE ": element %d", i); \
		memcpy(recv, send, sizeof recv); \
		DO(form, Reduce, reduce, rank == root ? MPI_IN_PLACE : recv, rank == root ? recv : NULL, N, DATATYPE, OP, root, \
		   MPI_COMM_WORLD); \
		for (int i = 0; i < N && rank == root; i++) \
			CHECK(recv[i] == all[i], "Reduce in place, " #OP " of " #TYPE ": element %d", i); \
		memset(recv, 0, sizeof recv); \
		DO(form, Allreduce, allreduce, send, recv, N, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < N; i++) \
			CHECK(recv[i] == all[i], "Allreduce " #OP " of " #TYPE ": element %d", i); \
		memcpy(recv, send, sizeof recv); \
		DO(form, Allreduce, allreduce, MPI_IN_PLACE, recv, N, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < N; i++) \
			CHECK(recv[i] == all[i], "Allreduce in place, " #OP " of " #TYPE ": element %d", i); \
		DO(form, Scan, scan, send, recv, N, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < N; i++) \
			CHECK(recv[i] == upto[i], "Scan " #OP " of " #TYPE ": element %d", i); \
		memcpy(recv, send, sizeof recv); \
		DO(form, Scan, scan, MPI_IN_PLACE, recv, N, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < N; i++) \
			CHECK(recv[i] == upto[i], "Scan in place, " #OP " of " #TYPE ": element %d", i); \
		memset(recv, 0, sizeof recv); \
		DO(form, Exscan, exscan, send, recv, N, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < N && rank > 0; i++) \
			CHECK(recv[i] == before[i], "Exscan " #OP " of " #TYPE ": element %d", i); \
		memcpy(recv, send, sizeof recv); \
		DO(form, Exscan, exscan, MPI_IN_PLACE, recv, N, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < N && rank > 0; i++) \
			CHECK(recv[i] == before[i], "Exscan in place, " #OP " of " #TYPE ": element %d", i); \
		memset(recv, 0, sizeof recv); \
		DO(form, Reduce_scatter, reduce_scatter, send, recv, counts, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < mine; i++) \
			CHECK(recv[i] == all[at + i], "Reduce_scatter " #OP " of " #TYPE ": element %d", i); \
		memcpy(recv, send, sizeof recv); \
		DO(form, Reduce_scatter, reduce_scatter, MPI_IN_PLACE, recv, counts, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < mine; i++) \
			CHECK(recv[i] == all[at + i], "Reduce_scatter in place, " #OP " of " #TYPE ": element %d", i); \
		int block = N / size; \
		DO(form, Reduce_scatter_block, reduce_scatter_block, send, recv, block, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < block; i++) \
			CHECK(recv[i] == all[rank * block + i], "Reduce_scatter_block " #OP " of " #TYPE ": element %d", i); \
		memcpy(recv, send, sizeof recv); \
		DO(form, Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, recv, block, DATATYPE, OP, MPI_COMM_WORLD); \
		for (int i = 0; i < block; i++) \
			CHECK(recv[i] == all[rank * block + i], "Reduce_scatter_block in place, " #OP " of " #TYPE ": element %d", i); \
		memcpy(recv, send, sizeof recv); \
		MUST(MPI_Reduce_local(send, recv, N, DATATYPE, OP)); \
		for (int i = 0; i < N; i++) { \
			TYPE x = send[i], y = send[i]; \
			CHECK(recv[i] == (EXPR), "Reduce_local " #OP " of " #TYPE ": element %d", i); \
		} \
	}

#define ARITHMETIC(TYPE, DATATYPE) \
	REDUCE(TYPE, DATATYPE, MPI_SUM, x + y) \
	REDUCE(TYPE, DATATYPE, MPI_PROD, x *y)
#define ORDER(TYPE, DATATYPE) \
	REDUCE(TYPE, DATATYPE, MPI_MAX, (x > y ? x : y)) \
	REDUCE(TYPE, DATATYPE, MPI_MIN, (x < y ? x : y))
#define BITS(TYPE, DATATYPE) \
	REDUCE(TYPE, DATATYPE, MPI_BAND, x &y) \
	REDUCE(TYPE, DATATYPE, MPI_BOR, x | y) \
	REDUCE(TYPE, DATATYPE, MPI_BXOR, x ^ y)
#define LOGIC(TYPE, DATATYPE) \
	REDUCE(TYPE, DATATYPE, MPI_LAND, (x && y)) \
	REDUCE(TYPE, DATATYPE, MPI_LOR, (x || y)) \
	REDUCE(TYPE, DATATYPE, MPI_LXOR, (!x != !y))
#define INTEGER(TYPE, DATATYPE) ARITHMETIC(TYPE, DATATYPE) ORDER(TYPE, DATATYPE) BITS(TYPE, DATATYPE) LOGIC(TYPE, DATATYPE)
#define REAL(TYPE, DATATYPE) ARITHMETIC(TYPE, DATATYPE) ORDER(TYPE, DATATYPE)

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

INTEGER(schar, MPI_SIGNED_CHAR)
INTEGER(uchar, MPI_UNSIGNED_CHAR)
INTEGER(short, MPI_SHORT)
INTEGER(ushort_, MPI_UNSIGNED_SHORT)
INTEGER(int, MPI_INT)
INTEGER(uint_, MPI_UNSIGNED)
INTEGER(long, MPI_LONG)
INTEGER(ulong_, MPI_UNSIGNED_LONG)
INTEGER(llong, MPI_LONG_LONG)
INTEGER(ullong, MPI_UNSIGNED_LONG_LONG)
INTEGER(int8_t, MPI_INT8_T)
INTEGER(uint8_t, MPI_UINT8_T)
INTEGER(int16_t, MPI_INT16_T)
INTEGER(uint16_t, MPI_UINT16_T)
INTEGER(int32_t, MPI_INT32_T)
INTEGER(uint32_t, MPI_UINT32_T)
INTEGER(int64_t, MPI_INT64_T)
INTEGER(uint64_t, MPI_UINT64_T)
ARITHMETIC(MPI_Aint, MPI_AINT) ORDER(MPI_Aint, MPI_AINT) BITS(MPI_Aint, MPI_AINT)
ARITHMETIC(MPI_Count, MPI_COUNT) ORDER(MPI_Count, MPI_COUNT) BITS(MPI_Count, MPI_COUNT)
ARITHMETIC(MPI_Offset, MPI_OFFSET) ORDER(MPI_Offset, MPI_OFFSET) BITS(MPI_Offset, MPI_OFFSET)
BITS(char, MPI_BYTE)
REAL(float, MPI_FLOAT)
REAL(double, MPI_DOUBLE)
REAL(ldouble, MPI_LONG_DOUBLE)
ARITHMETIC(fcomplex, MPI_C_FLOAT_COMPLEX)
ARITHMETIC(dcomplex, MPI_C_DOUBLE_COMPLEX)
ARITHMETIC(lcomplex, MPI_C_LONG_DOUBLE_COMPLEX)
LOGIC(bool_, MPI_C_BOOL)

#define RUN_ARITHMETIC(TYPE) TYPE##_MPI_SUM, TYPE##_MPI_PROD
#define RUN_ORDER(TYPE) TYPE##_MPI_MAX, TYPE##_MPI_MIN
#define RUN_BITS(TYPE) TYPE##_MPI_BAND, TYPE##_MPI_BOR, TYPE##_MPI_BXOR
#define RUN_LOGIC(TYPE) TYPE##_MPI_LAND, TYPE##_MPI_LOR, TYPE##_MPI_LXOR
#define RUN_INTEGER(TYPE) RUN_ARITHMETIC(TYPE), RUN_ORDER(TYPE), RUN_BITS(TYPE), RUN_LOGIC(TYPE)
#define RUN_REAL(TYPE) RUN_ARITHMETIC(TYPE), RUN_ORDER(TYPE)
#define RUN_WIDE(TYPE) RUN_ARITHMETIC(TYPE), RUN_ORDER(TYPE), RUN_BITS(TYPE)

/* A value and where it is, of all predefined pairs: the least and the greatest, of equal ones the first. */
#define LOCATE(VALUE, DATATYPE) \
	static void DATATYPE##_loc(int form) \
	{ \
		struct pair { \
			VALUE value; \
			int at; \
		}; \
		static struct pair send[N], recv[N]; \
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
	static void (*const numbers[])(int, int) = {
	    RUN_INTEGER(schar), RUN_INTEGER(uchar), RUN_INTEGER(short), RUN_INTEGER(ushort_), RUN_INTEGER(int), RUN_INTEGER(uint_),
	    RUN_INTEGER(long), RUN_INTEGER(ulong_), RUN_INTEGER(llong), RUN_INTEGER(ullong), RUN_INTEGER(int8_t),
	    RUN_INTEGER(uint8_t), RUN_INTEGER(int16_t), RUN_INTEGER(uint16_t), RUN_INTEGER(int32_t), RUN_INTEGER(uint32_t),
	    RUN_INTEGER(int64_t), RUN_INTEGER(uint64_t), RUN_WIDE(MPI_Aint), RUN_WIDE(MPI_Count), RUN_WIDE(MPI_Offset),
	    RUN_BITS(char), RUN_REAL(float), RUN_REAL(double), RUN_REAL(ldouble), RUN_ARITHMETIC(fcomplex),
	    RUN_ARITHMETIC(dcomplex), RUN_ARITHMETIC(lcomplex), RUN_LOGIC(bool_)};
	static void (*const pairs[])(int) = {MPI_FLOAT_INT_loc, MPI_DOUBLE_INT_loc, MPI_LONG_INT_loc,
	                                     MPI_2INT_loc,      MPI_SHORT_INT_loc,  MPI_LONG_DOUBLE_INT_loc};
	begin(&argc, &argv);
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
		numbers[i](i % FORMS, i % size);
	for (int form = 0; form < FORMS; form++)
		for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++)
			pairs[i](form);
	end();
	return 0;
}
