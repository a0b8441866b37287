/* Choice buffers of the module mpi_f08: descriptors, whose memory may have gaps. */
#ifndef WEFT_SECTIONS_H
#define WEFT_SECTIONS_H

#include "fortran.h"
#include <ISO_Fortran_binding.h>

/* A buffer, count and datatype for C that stand for those of Fortran. */
struct weft_section {
    void *buffer;
    MPI_Count count;
    MPI_Datatype datatype;
    int made; /* the datatype is one of weft_section's own */
};

/* weft_section fills s. If d is not contiguous, one item of a datatype that it makes
 * describes the section's part that count items of the datatype occupy. */
int weft_section(struct weft_section *s, const CFI_cdesc_t *d, MPI_Count count, int datatype);
void weft_section_free(struct weft_section *s);

/* weft_contiguous returns MPI_SUCCESS if the memory of d has no gaps. */
int weft_contiguous(const CFI_cdesc_t *d);

#endif
