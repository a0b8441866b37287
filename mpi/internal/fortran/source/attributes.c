/* Attributes. C caches a pointer, Fortran an integer (MPI-5.0, 19.3.7): what Fortran
 * sets is kept in a cell, whose address C sees; what C sets, Fortran sees as the
 * value of the pointer. */
#include "fortran.h"
#include <pthread.h>

/* The cells that exist, by address, in a table with open addressing. */
static pthread_mutex_t cells_mutex = PTHREAD_MUTEX_INITIALIZER;
static MPI_Aint **cells;
static size_t cells_room, cells_used;

static size_t place_of(MPI_Aint **in, size_t room, void *p) {
    size_t i = ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> 20;
    for (i &= room - 1; in[i] != NULL && in[i] != p; i = (i + 1) & (room - 1))
        ;
    return i;
}

/* cell returns a new cell that holds a value, NULL if there is no memory. */
static MPI_Aint *cell(MPI_Aint value) {
    MPI_Aint *c = malloc(sizeof *c);
    if (c == NULL)
        return NULL;
    *c = value;
    pthread_mutex_lock(&cells_mutex);
    if (2 * (cells_used + 1) > cells_room) {
        size_t room = cells_room == 0 ? 64 : 2 * cells_room;
        MPI_Aint **wider = calloc(room, sizeof *wider);
        if (wider == NULL) {
            pthread_mutex_unlock(&cells_mutex);
            free(c);
            return NULL;
        }
        for (size_t i = 0; i < cells_room; i++)
            if (cells[i] != NULL)
                wider[place_of(wider, room, cells[i])] = cells[i];
        free(cells);
        cells = wider;
        cells_room = room;
    }
    cells[place_of(cells, cells_room, c)] = c;
    cells_used++;
    pthread_mutex_unlock(&cells_mutex);
    return c;
}

static int is_cell(void *p) {
    pthread_mutex_lock(&cells_mutex);
    int yes = cells_room > 0 && p != NULL && cells[place_of(cells, cells_room, p)] == p;
    pthread_mutex_unlock(&cells_mutex);
    return yes;
}

static void free_cell(void *p) {
    pthread_mutex_lock(&cells_mutex);
    size_t i = 0;
    int yes = cells_room > 0 && p != NULL && cells[i = place_of(cells, cells_room, p)] == p;
    if (yes) {
        cells[i] = NULL;
        cells_used--;
        /* Entries behind a free place move to where a search finds them. */
        for (i = (i + 1) & (cells_room - 1); cells[i] != NULL; i = (i + 1) & (cells_room - 1)) {
            MPI_Aint *moved = cells[i];
            cells[i] = NULL;
            cells[place_of(cells, cells_room, moved)] = moved;
        }
    }
    pthread_mutex_unlock(&cells_mutex);
    if (yes)
        free(p);
}

static MPI_Aint value_of(void *p) { return is_cell(p) ? *(MPI_Aint *)p : (MPI_Aint)(intptr_t)p; }

/* Callbacks of a key of Fortran. Keys with the same callbacks share one: it is never
 * freed, because nothing says when the last attribute of a key is gone. */
typedef void copy_function(int *object, int *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, int *flag, int *ierror);
typedef void delete_function(int *object, int *keyval, MPI_Aint *value, MPI_Aint *extra, int *ierror);
typedef void old_copy_function(int *comm, int *keyval, int *extra, int *in, int *out, int *flag, int *ierror);
typedef void old_delete_function(int *comm, int *keyval, int *value, int *extra, int *ierror);

struct key {
    struct key *next;
    void *copy, *delete;
    MPI_Aint extra;
    int old; /* made by MPI_Keyval_create: integers are INTEGERs */
};

static struct key *key_of(void *copy, void *delete, MPI_Aint extra, int old) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct key *keys;
    pthread_mutex_lock(&mutex);
    struct key *k = keys;
    while (k != NULL && !(k->copy == copy && k->delete == delete && k->extra == extra && k->old == old))
        k = k->next;
    if (k == NULL && (k = malloc(sizeof *k)) != NULL) {
        *k = (struct key){keys, copy, delete, extra, old};
        keys = k;
    }
    pthread_mutex_unlock(&mutex);
    return k;
}

static int copy_attribute(int object, int keyval, struct key *k, void *in, void **out, int *flag) {
    MPI_Aint value = value_of(in), copied = value, extra = k->extra;
    int ierror = MPI_SUCCESS, yes = 0;
    if (k->old) {
        int value32 = (int)value, copied32 = value32, extra32 = (int)extra;
        ((old_copy_function *)k->copy)(&object, &keyval, &extra32, &value32, &copied32, &yes, &ierror);
        copied = copied32 == value32 ? value : copied32;
    } else {
        ((copy_function *)k->copy)(&object, &keyval, &extra, &value, &copied, &yes, &ierror);
    }
    *flag = yes != 0;
    if (ierror != MPI_SUCCESS || !*flag)
        return ierror;
    if (copied == (MPI_Aint)(intptr_t)in && !is_cell(in))
        *out = in; /* a pointer that C has set stays one */
    else if ((*out = cell(copied)) == NULL)
        return MPI_ERR_NO_MEM;
    return MPI_SUCCESS;
}

static int delete_attribute(int object, int keyval, struct key *k, void *attribute) {
    MPI_Aint value = value_of(attribute), extra = k->extra;
    int ierror = MPI_SUCCESS;
    if (k->old) {
        int value32 = (int)value, extra32 = (int)extra;
        ((old_delete_function *)k->delete)(&object, &keyval, &value32, &extra32, &ierror);
    } else {
        ((delete_function *)k->delete)(&object, &keyval, &value, &extra, &ierror);
    }
    if (ierror == MPI_SUCCESS)
        free_cell(attribute);
    return ierror;
}

/* attribute_got turns what C has into what Fortran gets. The values of the library's
 * own keys are pointers to an int or an MPI_Aint in C, and that integer in Fortran. */
static MPI_Aint attribute_got(int keyval, void *p) {
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *(int *)p;
    case MPI_WIN_SIZE:
        return *(MPI_Aint *)p;
    case MPI_WIN_BASE:
        return (MPI_Aint)(intptr_t)p;
    }
    return value_of(p);
}

#define RETURN(e)                                                                                                      \
    do {                                                                                                               \
        int result = (e);                                                                                              \
        if (ierror != NULL)                                                                                            \
            *ierror = result;                                                                                          \
        return;                                                                                                        \
    } while (0)

#define ATTRIBUTES(Object, object, Handle)                                                                             \
    static int copy_##object(Handle o, int keyval, void *extra, void *in, void *out, int *flag) {                      \
        return copy_attribute(TO_FORTRAN(o), keyval, extra, in, out, flag);                                            \
    }                                                                                                                  \
    static int delete_##object(Handle o, int keyval, void *value, void *extra) {                                       \
        return delete_attribute(TO_FORTRAN(o), keyval, extra, value);                                                  \
    }                                                                                                                  \
    void pmpi_##object##_create_keyval_(copy_function *copy, delete_function *delete, int *keyval, MPI_Aint *extra,    \
                                        int *ierror) {                                                                 \
        struct key *k = key_of(copy, delete, *extra, 0);                                                               \
        RETURN(k == NULL ? MPI_ERR_NO_MEM                                                                              \
                         : PMPI_##Object##_create_keyval(copy_##object, delete_##object, keyval, k));                  \
    }                                                                                                                  \
    void pmpi_##object##_set_attr_(int *o, int *keyval, MPI_Aint *value, int *ierror) {                                \
        MPI_Aint *c = cell(*value);                                                                                    \
        int e = c == NULL ? MPI_ERR_NO_MEM : PMPI_##Object##_set_attr(TO_C(Handle, *o), *keyval, c);                   \
        if (e != MPI_SUCCESS)                                                                                          \
            free_cell(c);                                                                                              \
        RETURN(e);                                                                                                     \
    }                                                                                                                  \
    void pmpi_##object##_get_attr_(int *o, int *keyval, MPI_Aint *value, int *flag, int *ierror) {                     \
        void *p = NULL;                                                                                                \
        int yes = 0, e = PMPI_##Object##_get_attr(TO_C(Handle, *o), *keyval, &p, &yes);                                \
        if (e == MPI_SUCCESS && (*flag = yes))                                                                         \
            *value = attribute_got(*keyval, p);                                                                        \
        RETURN(e);                                                                                                     \
    }                                                                                                                  \
    WEAK_F08(object##_create_keyval) WEAK_F08(object##_set_attr) WEAK_F08(object##_get_attr)

ATTRIBUTES(Comm, comm, MPI_Comm)
ATTRIBUTES(Type, type, MPI_Datatype)
ATTRIBUTES(Win, win, MPI_Win)

/* The calls of MPI-1, for communicators. */
void pmpi_keyval_create_(old_copy_function *copy, old_delete_function *delete, int *keyval, int *extra, int *ierror) {
    struct key *k = key_of(copy, delete, *extra, 1);
    RETURN(k == NULL ? MPI_ERR_NO_MEM : PMPI_Comm_create_keyval(copy_comm, delete_comm, keyval, k));
}

void pmpi_attr_put_(int *comm, int *keyval, int *value, int *ierror) {
    MPI_Aint wide = *value;
    pmpi_comm_set_attr_(comm, keyval, &wide, ierror);
}

void pmpi_attr_get_(int *comm, int *keyval, int *value, int *flag, int *ierror) {
    MPI_Aint wide = 0;
    int e = MPI_SUCCESS;
    pmpi_comm_get_attr_(comm, keyval, &wide, flag, &e);
    if (e == MPI_SUCCESS && *flag)
        *value = (int)wide;
    RETURN(e);
}

WEAK(keyval_create) WEAK(attr_put) WEAK(attr_get)

/* Predefined callbacks (MPI-5.0, 7.7). */
#define CALLBACKS(object)                                                                                              \
    void pmpi_##object##_dup_fn_(int *o, int *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, int *flag,         \
                                 int *ierror) {                                                                        \
        *out = *in;                                                                                                    \
        *flag = 1;                                                                                                     \
        *ierror = MPI_SUCCESS;                                                                                         \
    }                                                                                                                  \
    void pmpi_##object##_null_copy_fn_(int *o, int *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, int *flag,   \
                                       int *ierror) {                                                                  \
        *flag = 0;                                                                                                     \
        *ierror = MPI_SUCCESS;                                                                                         \
    }                                                                                                                  \
    void pmpi_##object##_null_delete_fn_(int *o, int *keyval, MPI_Aint *value, MPI_Aint *extra, int *ierror) {         \
        *ierror = MPI_SUCCESS;                                                                                         \
    }                                                                                                                  \
    WEAK(object##_dup_fn) WEAK(object##_null_copy_fn) WEAK(object##_null_delete_fn)

CALLBACKS(comm)
CALLBACKS(type)
CALLBACKS(win)

void pmpi_dup_fn_(int *comm, int *keyval, int *extra, int *in, int *out, int *flag, int *ierror) {
    *out = *in;
    *flag = 1;
    *ierror = MPI_SUCCESS;
}

void pmpi_null_copy_fn_(int *comm, int *keyval, int *extra, int *in, int *out, int *flag, int *ierror) {
    *flag = 0;
    *ierror = MPI_SUCCESS;
}

void pmpi_null_delete_fn_(int *comm, int *keyval, int *value, int *extra, int *ierror) { *ierror = MPI_SUCCESS; }

WEAK(dup_fn) WEAK(null_copy_fn) WEAK(null_delete_fn)
