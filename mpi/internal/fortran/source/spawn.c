/* Arguments of started programs: arrays of CHARACTER that a blank string ends. Blanks
 * at both ends of commands and arguments go (MPI-4.1, Section 11.8.2). */
#include "fortran.h"

/* arguments returns an array of strings of C that NULL ends. Argument i is at
 * argv + i * stride. NULL says that there is no memory. */
static char **arguments(const char *argv, size_t len, size_t stride) {
    int n = 0;
    for (const char *a = argv;; a += stride, n++) {
        size_t i = 0;
        while (i < len && a[i] == ' ')
            i++;
        if (i == len)
            break;
    }
    char **c = calloc(n + 1, sizeof *c);
    for (int i = 0; c != NULL && i < n; i++)
        if ((c[i] = weft_word(argv + i * stride, len)) == NULL) {
            while (--i >= 0)
                free(c[i]);
            free(c);
            return NULL;
        }
    return c;
}

static void free_arguments(char **c) {
    if (c == NULL)
        return;
    for (char **a = c; *a != NULL; a++)
        free(*a);
    free(c);
}

/* Only the root's arguments are significant: those of others need not end with a blank
 * string, so they are not read. */
void pmpi_comm_spawn_(const char *command, const char *argv, int *maxprocs, int *info, int *root, int *comm,
                      int *intercomm, int *errcodes, int *ierror, size_t command_len, size_t argv_len) {
    int rank = -1, e = PMPI_Comm_rank(TO_C(MPI_Comm, *comm), &rank);
    int none = argv == mpi_weft_argv_null_ || e != MPI_SUCCESS || rank != *root;
    char *c_command = weft_word(command, command_len);
    char **c_argv = none ? MPI_ARGV_NULL : arguments(argv, argv_len, argv_len);
    int memory = c_command != NULL && (none || c_argv != NULL);
    MPI_Comm c = MPI_COMM_NULL;
    if (e == MPI_SUCCESS)
        e = !memory ? MPI_ERR_NO_MEM
                    : PMPI_Comm_spawn(c_command, c_argv, *maxprocs, TO_C(MPI_Info, *info), *root,
                                      TO_C(MPI_Comm, *comm), &c,
                                      errcodes == mpi_weft_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : errcodes);
    *intercomm = TO_FORTRAN(c);
    free(c_command);
    if (!none)
        free_arguments(c_argv);
    if (ierror != NULL)
        *ierror = e;
}

/* Only the root's count, commands, arguments and infos are significant, so only
 * those are read. */
void pmpi_comm_spawn_multiple_(int *count, const char *commands, const char *argv, int *maxprocs, int *infos, int *root,
                               int *comm, int *intercomm, int *errcodes, int *ierror, size_t commands_len,
                               size_t argv_len) {
    int rank = -1, e = PMPI_Comm_rank(TO_C(MPI_Comm, *comm), &rank);
    int n = e == MPI_SUCCESS && rank == *root && *count > 0 ? *count : 0;
    int none = argv == mpi_weft_argvs_null_;
    char **c_commands = calloc(n + 1, sizeof *c_commands);
    char ***c_argv = none ? MPI_ARGVS_NULL : calloc(n + 1, sizeof *c_argv);
    struct weft_handles c_infos;
    weft_handles(&c_infos, infos, n);
    int memory = c_commands != NULL && (none || c_argv != NULL) && c_infos.at != NULL;
    for (int i = 0; memory && i < n; i++) {
        memory = (c_commands[i] = weft_word(commands + i * commands_len, commands_len)) != NULL;
        if (memory && !none)
            memory = (c_argv[i] = arguments(argv + i * argv_len, argv_len, *count * argv_len)) != NULL;
    }
    MPI_Comm c = MPI_COMM_NULL;
    if (e == MPI_SUCCESS)
        e = !memory ? MPI_ERR_NO_MEM
                    : PMPI_Comm_spawn_multiple(*count, c_commands, c_argv, maxprocs, (void *)c_infos.at, *root,
                                               TO_C(MPI_Comm, *comm), &c,
                                               errcodes == mpi_weft_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : errcodes);
    *intercomm = TO_FORTRAN(c);
    for (int i = 0; i < n; i++) {
        if (c_commands != NULL)
            free(c_commands[i]);
        if (!none && c_argv != NULL)
            free_arguments(c_argv[i]);
    }
    free(c_commands);
    if (!none)
        free(c_argv);
    weft_handles_free(&c_infos);
    if (ierror != NULL)
        *ierror = e;
}

WEAK_F08(comm_spawn) WEAK_F08(comm_spawn_multiple)
