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
    int made;              /* the datatype is one of weft_section's own */
    void *copy;            /* a copy without gaps */
    const CFI_cdesc_t *of; /* where the copy goes back to; NULL: nowhere */
};

/* How a call uses a buffer. */
enum {
    WEFT_COPY = 1, /* not after its return, so that a copy will do */
    WEFT_BACK = 2  /* it stores there */
};

/* weft_section fills s. If d is not contiguous, one item of a datatype that it makes
 * describes the section's part that count items of the datatype occupy. If that is
 * not possible, the buffer is a copy where use allows it. */
int weft_section(struct weft_section *s, const CFI_cdesc_t *d, MPI_Count count, int datatype, int use);

/* weft_packed fills the buffer of s: a copy if d is not contiguous. */
int weft_packed(struct weft_section *s, const CFI_cdesc_t *d, int use);

/* weft_section_free releases what s has, and copies back what the call has stored. */
void weft_section_free(struct weft_section *s);

/* weft_contiguous returns MPI_SUCCESS if the memory of d has no gaps. */
int weft_contiguous(const CFI_cdesc_t *d);

#endif
