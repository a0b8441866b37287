/* Collectives in their forms: 0 blocking, 1 nonblocking, 2 persistent. */
#ifndef COLL_H
#define COLL_H

#include "check.h"

#define FORMS 3

/* DO(form, Bcast, bcast, arguments…) */
#define DO(form, name, lower, ...) \
	do { \
		MPI_Request request_ = MPI_REQUEST_NULL; \
		switch (form) { \
		case 0: \
			MUST(MPI_##name(__VA_ARGS__)); \
			break; \
		case 1: \
			MUST(MPI_I##lower(__VA_ARGS__, &request_)); \
			CHECK(request_ != MPI_REQUEST_NULL, "no request"); \
			MUST(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
			break; \
		default: \
			MUST(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_)); \
			MUST(MPI_Start(&request_)); \
			MUST(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
			CHECK(request_ != MPI_REQUEST_NULL, "a persistent request is gone"); \
			MUST(MPI_Request_free(&request_)); \
		} \
	} while (0)

static int rank, size;

static inline void begin(int *argc, char ***argv)
{
	MUST(MPI_Init(argc, argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
}

static inline void end(void)
{
	done();
	MUST(MPI_Finalize());
}

/* Fills n ints with a value. */
static inline void fill(int *p, int n, int v)
{
	for (int i = 0; i < n; i++)
		p[i] = v;
}

#endif
