/* What the programs check with: a failure says where and what, and ends the job. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CHECK(condition, format, values...): the text says what was there. */
#define CHECK(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\n"); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
			exit(1); \
		} \
	} while (0)

/* MUST(call): the call returns MPI_SUCCESS. */
#define MUST(call) \
	do { \
		int code_ = (call); \
		if (code_ != MPI_SUCCESS) { \
			char text_[MPI_MAX_ERROR_STRING]; \
			int length_ = 0; \
			MPI_Error_string(code_, text_, &length_); \
			CHECK(code_ == MPI_SUCCESS, "%s", text_); \
		} \
	} while (0)

/* FAILS(class, call): the call returns an error of the class. */
#define FAILS(class, call) \
	do { \
		int code_ = (call), class_ = -1; \
		MPI_Error_class(code_, &class_); \
		CHECK(class_ == (class), "%s: class %d, want %s (%d)", #call, class_, #class, (class)); \
	} while (0)

/* Prints what says that all went well, on rank 0, when all ranks have come here. */
static inline void done(void)
{
	int rank;
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	if (rank == 0)
		printf("ok\n");
}

#endif
