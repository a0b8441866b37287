/* Special variables, handles and strings of Fortran. */
#include "fortran.h"
#include <stdio.h>

/* Fortran aligns common blocks to 16 bytes. */
#define SPECIAL __attribute__((aligned(16)))

int mpi_weft_bottom_ SPECIAL = 0;
int mpi_weft_in_place_ SPECIAL = 0;
int mpi_weft_buffer_automatic_ SPECIAL = 0;
int mpi_weft_status_ignore_[MPI_F_STATUS_SIZE] SPECIAL = {0};
int mpi_weft_statuses_ignore_[MPI_F_STATUS_SIZE] SPECIAL = {0};
MPI_Status mpi_weft_f08_status_ignore_ SPECIAL = {0};
MPI_Status mpi_weft_f08_statuses_ignore_[1] SPECIAL = {{0}};
int mpi_weft_errcodes_ignore_[1] SPECIAL = {0};
int mpi_weft_unweighted_[1] SPECIAL = {0};
int mpi_weft_weights_empty_[1] SPECIAL = {0};
char mpi_weft_argv_null_[1] SPECIAL = {' '};
char mpi_weft_argvs_null_[1] SPECIAL = {' '};

/* A negative or huge n leaves no array: C then finds the length or the pointer wrong. */
void weft_handles(struct weft_handles *h, const int *integers, int64_t n) {
    h->at = NULL;
    h->n = 0;
    if (integers == NULL || n < 0 || n > INT32_MAX)
        return;
    h->at = h->shorter;
    if (n > WEFT_SHORT_ARRAY && (h->at = malloc(n * sizeof *h->at)) == NULL)
        return;
    h->n = n;
    for (int i = 0; i < h->n; i++)
        h->at[i] = TO_C(void *, integers[i]);
}

void weft_handles_back(struct weft_handles *h, int *integers) {
    for (int i = 0; i < h->n; i++)
        integers[i] = TO_FORTRAN(h->at[i]);
}

void weft_handles_free(struct weft_handles *h) {
    if (h->at != h->shorter)
        free(h->at);
}

int weft_peers(MPI_Comm comm) {
    int inter = 0, n = 0;
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        return -1;
    if ((inter ? PMPI_Comm_remote_size(comm, &n) : PMPI_Comm_size(comm, &n)) != MPI_SUCCESS)
        return -1;
    return n;
}

static int neighbors(MPI_Comm comm, int *in, int *out) {
    int topology = 0, rank, n;
    if (PMPI_Topo_test(comm, &topology) != MPI_SUCCESS)
        return MPI_ERR_COMM;
    switch (topology) {
    case MPI_CART:
        if (PMPI_Cartdim_get(comm, &n) != MPI_SUCCESS)
            return MPI_ERR_COMM;
        *in = *out = 2 * n;
        return MPI_SUCCESS;
    case MPI_GRAPH:
        if (PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS || PMPI_Graph_neighbors_count(comm, rank, &n) != MPI_SUCCESS)
            return MPI_ERR_COMM;
        *in = *out = n;
        return MPI_SUCCESS;
    case MPI_DIST_GRAPH:
        return PMPI_Dist_graph_neighbors_count(comm, in, out, &n);
    }
    return MPI_ERR_TOPOLOGY;
}

int weft_sources(MPI_Comm comm) {
    int in, out;
    return neighbors(comm, &in, &out) == MPI_SUCCESS ? in : -1;
}

int weft_destinations(MPI_Comm comm) {
    int in, out;
    return neighbors(comm, &in, &out) == MPI_SUCCESS ? out : -1;
}

char *weft_string(const char *s, size_t len) {
    while (len > 0 && s[len - 1] == ' ')
        len--;
    char *c = malloc(len + 1);
    if (c != NULL) {
        memcpy(c, s, len);
        c[len] = 0;
    }
    return c;
}

char *weft_word(const char *s, size_t len) {
    while (len > 0 && *s == ' ')
        s++, len--;
    return weft_string(s, len);
}

void weft_pad(char *to, size_t len, const char *from) {
    size_t n = strlen(from);
    if (n > len)
        n = len;
    memcpy(to, from, n);
    memset(to + n, ' ', len - n);
}

/* named puts the name of a procedure in front of the text of a code of this library, in place of
 * the last one, and returns the class. */
static int named(int code, const char *procedure) {
    char text[MPI_MAX_ERROR_STRING], with[2 * MPI_MAX_ERROR_STRING];
    int class, length;
    if (PMPI_Error_class(code, &class) != MPI_SUCCESS || class == code ||
        PMPI_Error_string(code, text, &length) != MPI_SUCCESS)
        return code;
    const char *rest = strstr(text, "a choice buffer");
    snprintf(with, sizeof(with), "%s: %s", procedure, rest != NULL ? rest : text);
    with[MPI_MAX_ERROR_STRING - 1] = 0;
    PMPI_Add_error_string(code, with);
    return class;
}

int weft_raise_comm(MPI_Comm comm, int code, const char *procedure) {
    int class = named(code, procedure);
    PMPI_Comm_call_errhandler(comm, code);
    return class;
}

int weft_raise_win(MPI_Win win, int code, const char *procedure) {
    int class = named(code, procedure);
    PMPI_Win_call_errhandler(win, code);
    return class;
}

int weft_raise_file(MPI_File file, int code, const char *procedure) {
    int class = named(code, procedure);
    PMPI_File_call_errhandler(file, code);
    return class;
}
