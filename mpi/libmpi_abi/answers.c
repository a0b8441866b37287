//go:build linux && cgo

#include "answers.h"

#include <string.h>
#include <time.h>

uint64_t weft_comm_ranks[WEFT_ENTRIES];
uint64_t weft_comm_sizes[WEFT_ENTRIES];
uint64_t weft_type_sizes[WEFT_ENTRIES];
int32_t weft_phase_now;

double weft_wtime(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double weft_wtick(void)
{
	struct timespec t;
	clock_getres(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

_Static_assert(sizeof(MPI_Status) == 8 * sizeof(MPI_Fint), "MPI_Status is MPI_F_STATUS_SIZE integers");
_Static_assert(sizeof(MPI_Status) == sizeof(MPI_F08_status), "the statuses of C and Fortran are alike");

/* MPI-5.0, 19.3.5: neither may be an ignored status. */
int weft_copy_status(const void *from, void *to)
{
	if (from == NULL || to == NULL)
		return MPI_ERR_ARG;
	memcpy(to, from, sizeof(MPI_Status));
	return MPI_SUCCESS;
}
