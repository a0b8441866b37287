/* What the generated and the hand-written entry points of Fortran share. */
#ifndef WEFT_FORTRAN_H
#define WEFT_FORTRAN_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "callbacks take a pointer to a handle of C as one to an INTEGER, which holds for little-endian machines only"
#endif

/* A name with pmpi_ is the function. The name with mpi_ is weak, so that a tool can
 * take its place (MPI-5.0, 15.2). */
#define WEAK(name) WEFT_PRAGMA(weak mpi_##name##_ = pmpi_##name##_)
/* SAME gives an entry point the name of a specific procedure of mpi_f08 too. */
#define SAME(name, as) WEFT_PRAGMA(weak mpi_##name##_ = pmpi_##as##_) WEFT_PRAGMA(weak pmpi_##name##_ = pmpi_##as##_)
#define WEAK_F08(name) WEAK(name) SAME(name##_f08, name)
#define WEFT_PRAGMA(x) _Pragma(#x)

/* An INTEGER of Fortran has the value of the handle in C, which is below 2^31. */
#define TO_C(type, integer) ((type)(intptr_t)(integer))
#define TO_FORTRAN(handle) ((int)(intptr_t)(handle))

/* Variables whose addresses stand for the special values of C. mpif.h has them in
 * common blocks, the modules by the names of these variables. */
extern int mpi_weft_bottom_, mpi_weft_in_place_, mpi_weft_buffer_automatic_;
extern int mpi_weft_status_ignore_[], mpi_weft_statuses_ignore_[];
extern MPI_Status mpi_weft_f08_status_ignore_, mpi_weft_f08_statuses_ignore_[];
extern int mpi_weft_errcodes_ignore_[], mpi_weft_unweighted_[], mpi_weft_weights_empty_[];
extern char mpi_weft_argv_null_[], mpi_weft_argvs_null_[];

/* weft_buffer returns the buffer of C that a choice buffer stands for. */
static inline void *weft_buffer(void *p) {
    if (p == &mpi_weft_bottom_)
        return MPI_BOTTOM;
    if (p == &mpi_weft_in_place_)
        return MPI_IN_PLACE;
    if (p == &mpi_weft_buffer_automatic_)
        return MPI_BUFFER_AUTOMATIC;
    return p;
}

/* weft_detached replaces what a call has returned for the address of a buffer, for Fortran. */
static inline void weft_detached(void **p) {
    if (*p == MPI_BUFFER_AUTOMATIC)
        *p = &mpi_weft_buffer_automatic_;
}

static inline int weft_in_place(void *p) { return p == &mpi_weft_in_place_; }

/* weft_status returns the status or the array of statuses that an argument stands for. */
static inline MPI_Status *weft_status(void *p) {
    if (p == mpi_weft_status_ignore_ || p == mpi_weft_statuses_ignore_ || p == &mpi_weft_f08_status_ignore_ ||
        p == mpi_weft_f08_statuses_ignore_)
        return MPI_STATUS_IGNORE;
    return p;
}

/* weft_weights returns the array of weights that an argument stands for. */
static inline int *weft_weights(int *p) {
    if (p == mpi_weft_unweighted_)
        return MPI_UNWEIGHTED;
    if (p == mpi_weft_weights_empty_)
        return MPI_WEIGHTS_EMPTY;
    return p;
}

/* Handles for C of an array of INTEGERs. Those of a short array are on the stack. */
enum { WEFT_SHORT_ARRAY = 32 };

struct weft_handles {
    void **at; /* NULL if there is no memory, or the array is none */
    int n;
    void *shorter[WEFT_SHORT_ARRAY];
};

void weft_handles(struct weft_handles *h, const int *integers, int64_t n);
void weft_handles_back(struct weft_handles *h, int *integers);
void weft_handles_free(struct weft_handles *h);

/* How many blocks a collective call sends and receives. */
int weft_peers(MPI_Comm comm);
int weft_sources(MPI_Comm comm);
int weft_destinations(MPI_Comm comm);

/* weft_string returns a string of C without the blanks at the end of a CHARACTER.
 * free() releases it. weft_word leaves out those at the beginning too, as keys and
 * values of an info do (MPI-5.0, 10). */
char *weft_string(const char *s, size_t len);
char *weft_word(const char *s, size_t len);

/* weft_pad copies a string of C to a CHARACTER: what fits, then blanks. */
void weft_pad(char *to, size_t len, const char *from);

/* Calls of the error handler of an object, for an error that the entry point of a procedure
 * finds. They return the class of the code. */
int weft_raise_comm(MPI_Comm comm, int code, const char *procedure);
int weft_raise_win(MPI_Win win, int code, const char *procedure);
int weft_raise_file(MPI_File file, int code, const char *procedure);

/* weft_count_from_one adds one to each of n indices. */
static inline void weft_count_from_one(int *index, int n) {
    for (int i = 0; i < n; i++)
        index[i]++;
}

#endif
