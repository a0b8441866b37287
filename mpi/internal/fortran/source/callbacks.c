/* Generalized requests and data representations: callbacks of Fortran, called from C.
 * User operators and error handlers need nothing: C passes addresses there too. */
#include "fortran.h"
#include <pthread.h>

/* A callback gets a copy of extra_state, because the variable that MPI_Grequest_start
 * had may be gone. But if a callback changes it, the variable follows: programs that do
 * so look at it, as with MPIs that keep its address only. A variable that has another
 * value than the copy had is taken to be gone: its memory is somebody else's. */
struct grequest {
    void (*query)(MPI_Aint *extra, MPI_Status *status, int *ierror);
    void (*free)(MPI_Aint *extra, int *ierror);
    void (*cancel)(MPI_Aint *extra, int *complete, int *ierror);
    MPI_Aint extra, *variable;
};

/* followed ends a callback. before is what extra_state was. */
static void followed(struct grequest *g, MPI_Aint before) {
    if (g->extra != before && *g->variable == before)
        *g->variable = g->extra;
}

static int query_grequest(void *state, MPI_Status *status) {
    struct grequest *g = state;
    int ierror = MPI_SUCCESS;
    MPI_Aint before = g->extra;
    g->query(&g->extra, status, &ierror);
    followed(g, before);
    return ierror;
}

/* C calls it once, after the other two. */
static int free_grequest(void *state) {
    struct grequest *g = state;
    int ierror = MPI_SUCCESS;
    MPI_Aint before = g->extra;
    g->free(&g->extra, &ierror);
    followed(g, before);
    free(g);
    return ierror;
}

static int cancel_grequest(void *state, int complete) {
    struct grequest *g = state;
    int ierror = MPI_SUCCESS;
    MPI_Aint before = g->extra;
    g->cancel(&g->extra, &complete, &ierror);
    followed(g, before);
    return ierror;
}

void pmpi_grequest_start_(void *query, void *release, void *cancel, MPI_Aint *extra, int *request, int *ierror) {
    struct grequest *g = malloc(sizeof *g);
    int e = MPI_ERR_NO_MEM;
    if (g != NULL) {
        *g = (struct grequest){query, release, cancel, *extra, extra};
        MPI_Request r = MPI_REQUEST_NULL;
        e = PMPI_Grequest_start(query_grequest, free_grequest, cancel_grequest, g, &r);
        *request = TO_FORTRAN(r);
        if (e != MPI_SUCCESS)
            free(g);
    }
    if (ierror != NULL)
        *ierror = e;
}

WEAK_F08(grequest_start)

/* A data representation stays until the program ends (MPI-5.0, 14.5.3). */
typedef void conversion_function(void *user, int *datatype, int *count, void *file, MPI_Offset *position,
                                 MPI_Aint *extra, int *ierror);
typedef void conversion_function_c(void *user, int *datatype, MPI_Count *count, void *file, MPI_Offset *position,
                                   MPI_Aint *extra, int *ierror);

struct datarep {
    void *read, *write;
    void (*extent)(int *datatype, MPI_Aint *extent, MPI_Aint *extra, int *ierror);
    MPI_Aint extra;
};

#define CONVERT(which, form, count_type)                                                                               \
    static int which##form(void *user, MPI_Datatype datatype, count_type count, void *file, MPI_Offset position,       \
                           void *state) {                                                                              \
        struct datarep *d = state;                                                                                     \
        int ierror = MPI_SUCCESS, type = TO_FORTRAN(datatype);                                                         \
        ((conversion_function##form *)d->which)(user, &type, &count, file, &position, &d->extra, &ierror);             \
        return ierror;                                                                                                 \
    }

CONVERT(read, , int)
CONVERT(write, , int)
CONVERT(read, _c, MPI_Count)
CONVERT(write, _c, MPI_Count)

static int extent_of(MPI_Datatype datatype, MPI_Aint *extent, void *state) {
    struct datarep *d = state;
    int ierror = MPI_SUCCESS, type = TO_FORTRAN(datatype);
    d->extent(&type, extent, &d->extra, &ierror);
    return ierror;
}

/* Nobody may call these two: their addresses say that there is no conversion. */
void pmpi_conversion_fn_null_(void *user, int *datatype, int *count, void *file, MPI_Offset *position, MPI_Aint *extra,
                              int *ierror) {
    *ierror = MPI_ERR_CONVERSION;
}

void pmpi_conversion_fn_null_c_(void *user, int *datatype, MPI_Count *count, void *file, MPI_Offset *position,
                                MPI_Aint *extra, int *ierror) {
    *ierror = MPI_ERR_CONVERSION;
}

WEAK(conversion_fn_null) WEAK(conversion_fn_null_c)

/* Their addresses, as a program has them. */
extern char conversion_fn_null[] __asm__("mpi_conversion_fn_null_");
extern char conversion_fn_null_c[] __asm__("mpi_conversion_fn_null_c_");

static int is_null(void *f) { return f == conversion_fn_null || f == conversion_fn_null_c; }

#define REGISTER(form)                                                                                                 \
    void pmpi_register_datarep##form##_(const char *name, void *read_fn, void *write_fn, void *extent_fn,              \
                                        MPI_Aint *extra, int *ierror, size_t len) {                                    \
        struct datarep *d = malloc(sizeof *d);                                                                         \
        char *c_name = weft_string(name, len);                                                                         \
        int e = MPI_ERR_NO_MEM;                                                                                        \
        if (d != NULL && c_name != NULL) {                                                                             \
            *d = (struct datarep){read_fn, write_fn, extent_fn, *extra};                                               \
            e = PMPI_Register_datarep##form(c_name, is_null(read_fn) ? NULL : read##form,                              \
                                            is_null(write_fn) ? NULL : write##form, extent_of, d);                     \
        }                                                                                                              \
        if (e != MPI_SUCCESS)                                                                                          \
            free(d);                                                                                                   \
        free(c_name);                                                                                                  \
        if (ierror != NULL)                                                                                            \
            *ierror = e;                                                                                               \
    }                                                                                                                  \
    WEAK_F08(register_datarep##form)

REGISTER()
REGISTER(_c)
