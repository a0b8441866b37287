/* What C answers without calling Go. answers.go stores the values. */
#ifndef WEFT_ANSWERS_H
#define WEFT_ANSWERS_H

#include "mpi.h"

/* A table has an entry for each predefined handle, and 1024 that the other handles share by
   their lowest bits: the handle in the upper half of the entry, the value in the lower, so that
   one load reads both. 0 is no handle. */
enum { WEFT_FIXED = 1024, WEFT_SHARED = 1024, WEFT_ENTRIES = WEFT_FIXED + WEFT_SHARED };

extern uint64_t weft_comm_ranks[WEFT_ENTRIES];
extern uint64_t weft_comm_sizes[WEFT_ENTRIES];
extern uint64_t weft_type_sizes[WEFT_ENTRIES];

/* 0 before MPI_Init, 1 after it, 2 after MPI_Finalize. */
extern int32_t weft_phase_now;

static inline int weft_cached(const uint64_t *table, uintptr_t handle, int *value)
{
	uintptr_t i = handle < WEFT_FIXED ? handle : WEFT_FIXED + handle % WEFT_SHARED;
	uint64_t entry = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE);
	if (entry >> 32 != handle || handle == 0)
		return 0;
	*value = (int)(uint32_t)entry;
	return 1;
}

static inline int weft_phase(void)
{
	return __atomic_load_n(&weft_phase_now, __ATOMIC_ACQUIRE);
}

double weft_wtime(void);
double weft_wtick(void);

/* Copies a status: all its forms have the same 32 bytes. */
int weft_copy_status(const void *from, void *to);

#endif
