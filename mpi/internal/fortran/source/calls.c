/* Calls whose arguments differ from those of C in a way of their own. */
#include "fortran.h"

#define RESULT(e)                                                                                                      \
    do {                                                                                                               \
        int result = (e);                                                                                              \
        if (ierror != NULL)                                                                                            \
            *ierror = result;                                                                                          \
    } while (0)

/* Fortran has no argc and argv. */
void pmpi_init_(int *ierror) { RESULT(PMPI_Init(NULL, NULL)); }

void pmpi_init_thread_(int *required, int *provided, int *ierror) {
    RESULT(PMPI_Init_thread(NULL, NULL, *required, provided));
}

void pmpi_info_create_env_(int *info, int *ierror) {
    MPI_Info i = MPI_INFO_NULL;
    int e = PMPI_Info_create_env(0, NULL, &i);
    *info = TO_FORTRAN(i);
    RESULT(e);
}

void pmpi_pcontrol_(int *level) { PMPI_Pcontrol(*level); }

/* Nothing to do: the call itself keeps the compiler from holding buf in registers. */
void pmpi_f_sync_reg_(void *buf) { (void)buf; }
void pmpi_f_sync_reg_f08ts_(void *buf) { (void)buf; }

/* A status has one layout in C and in both forms of Fortran (MPI-5.0, 20.3.3). */
void pmpi_status_f2f08_(const MPI_Status *from, MPI_Status *to, int *ierror) {
    *to = *from;
    RESULT(MPI_SUCCESS);
}

void pmpi_status_f082f_(const MPI_Status *from, MPI_Status *to, int *ierror) {
    *to = *from;
    RESULT(MPI_SUCCESS);
}

/* In mpif.h and the module mpi buffer_addr has the wrong type and is not used
 * (MPI-5.0, 3.6). The module mpi_f08 has a C_PTR there. */
void pmpi_buffer_detach_(void *unused, int *size, int *ierror) {
    void *p;
    RESULT(PMPI_Buffer_detach(&p, size));
}

void pmpi_comm_detach_buffer_(int *comm, void *unused, int *size, int *ierror) {
    void *p;
    RESULT(PMPI_Comm_detach_buffer(TO_C(MPI_Comm, *comm), &p, size));
}

void pmpi_session_detach_buffer_(int *session, void *unused, int *size, int *ierror) {
    void *p;
    RESULT(PMPI_Session_detach_buffer(TO_C(MPI_Session, *session), &p, size));
}

static void detached(int code, void **buffer, int *ierror) {
    if (code == MPI_SUCCESS)
        weft_detached(buffer);
    RESULT(code);
}

void pmpi_buffer_detach_f08_(void **buffer, int *size, int *ierror) {
    detached(PMPI_Buffer_detach(buffer, size), buffer, ierror);
}

void pmpi_comm_detach_buffer_f08_(int *comm, void **buffer, int *size, int *ierror) {
    detached(PMPI_Comm_detach_buffer(TO_C(MPI_Comm, *comm), buffer, size), buffer, ierror);
}

void pmpi_session_detach_buffer_f08_(int *session, void **buffer, int *size, int *ierror) {
    detached(PMPI_Session_detach_buffer(TO_C(MPI_Session, *session), buffer, size), buffer, ierror);
}

WEAK_F08(init) WEAK_F08(init_thread) WEAK_F08(info_create_env) WEAK_F08(pcontrol)
WEAK(f_sync_reg) WEAK(f_sync_reg_f08ts) WEAK_F08(status_f2f08) WEAK_F08(status_f082f)
WEAK(buffer_detach) WEAK(comm_detach_buffer) WEAK(session_detach_buffer)
WEAK(buffer_detach_f08) WEAK(comm_detach_buffer_f08) WEAK(session_detach_buffer_f08)
