/* What the programs about messages have in common. */
#ifndef P2P_H
#define P2P_H
#include "check.h"

/* SAME compares two integers. */
#define SAME(got, want) \
	do { \
		long long got_ = (long long)(got), want_ = (long long)(want); \
		CHECK(got_ == want_, "rank %d: %s is %lld, want %s, %lld", rank, #got, got_, #want, want_); \
	} while (0)

static int rank, size, next, prev;

/* Where the process is in a ring of all. */
static inline void ring_of_all(void)
{
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	next = (rank + 1) % size;
	prev = (rank + size - 1) % size;
}
#endif
