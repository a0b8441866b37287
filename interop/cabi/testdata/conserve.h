/* What the parts of conserve.c have in common: what a thread knows, random numbers, and the books. */
#ifndef CONSERVE_H
#define CONSERVE_H

#include "check.h"
#include <stdatomic.h>
#include <stdint.h>

enum { THREADS = 4, RANKS = 16, SLOTS = 2 + RANKS };

/* A thread does what the threads of its number in the other ranks do at the same time. */
struct thread {
	int id, rank, size;
	MPI_Comm comm;             /* of the threads of this number */
	MPI_Win win;               /* likewise, SLOTS numbers in each rank */
	int64_t *mem;              /* the caller's */
	int64_t added[RANKS];      /* what the caller has added to the first number of each rank */
	uint64_t common, own;      /* random numbers: the same in all ranks, and the caller's own */
	int out[RANKS], in[RANKS]; /* messages to and from each rank so far */
	int key, key_value;        /* an attribute of comm */
	void *buffer;              /* for buffered sends */
};

static uint64_t seed;

/* The books: what all threads of the rank have done. */
static struct {
	_Atomic int64_t sent, sent_ints, sent_sum, received, received_ints, received_sum;
	_Atomic int64_t started, completed, cancelled;
	_Atomic int64_t errors_made, errors_handled, copies, deletes, values_set;
} books;

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Returns a number below n. */
static int draw(uint64_t *state, int n)
{
	*state = mix(*state);
	return (int)((*state >> 33) % (uint64_t)n);
}

static int together(struct thread *t, int n) { return draw(&t->common, n); }
static int alone(struct thread *t, int n) { return draw(&t->own, n); }

static void start_request(MPI_Request *r)
{
	MUST(MPI_Start(r));
	books.started++;
}

static void wait_request(MPI_Request *r, MPI_Status *s)
{
	MUST(MPI_Wait(r, s));
	books.completed++;
}

/* wait_all completes n requests by one of the calls that do. Those that are null count as well. */
static void wait_all(struct thread *t, int n, MPI_Request *r)
{
	int i, k, done = 0, *at = malloc((n + 1) * sizeof *at);

	books.completed += n;
	switch (alone(t, 6)) {
	case 0:
		MUST(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
		break;
	case 1:
		while (!done)
			MUST(MPI_Testall(n, r, &done, MPI_STATUSES_IGNORE));
		break;
	case 2:
		for (k = 0; k != MPI_UNDEFINED;)
			MUST(MPI_Waitsome(n, r, &k, at, MPI_STATUSES_IGNORE));
		break;
	case 3:
		for (k = 0; k != MPI_UNDEFINED;)
			MUST(MPI_Testsome(n, r, &k, at, MPI_STATUSES_IGNORE));
		break;
	case 4:
		for (k = 0; k != MPI_UNDEFINED;)
			MUST(MPI_Waitany(n, r, &k, MPI_STATUS_IGNORE));
		break;
	default:
		for (i = n - 1; i >= 0; i--)
			MUST(MPI_Wait(&r[i], MPI_STATUS_IGNORE));
	}
	for (i = 0; i < n; i++)
		CHECK(r[i] == MPI_REQUEST_NULL, "request %d of %d is left", i, n);
	free(at);
}

#endif
