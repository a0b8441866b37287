//go:build linux && cgo

#define _GNU_SOURCE // pthread_timedjoin_np

#include "callbacks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mpi.h"

void weft_call_user_op(uintptr_t fn, uintptr_t in, uintptr_t inout, int64_t count, uintptr_t datatype, int large)
{
	MPI_Datatype type = (MPI_Datatype)datatype;
	if (large) {
		MPI_Count n = count;
		((MPI_User_function_c *)fn)((void *)in, (void *)inout, &n, &type);
		return;
	}
	int n = (int)count;
	((MPI_User_function *)fn)((void *)in, (void *)inout, &n, &type);
}

/* The copy functions of communicators, windows and datatypes differ in the type of the handle
   alone, and all handles are pointers; so it is with the delete functions and error handlers. */
int weft_call_copy_attr(uintptr_t fn, uintptr_t object, int keyval, uintptr_t extra, uintptr_t in, uintptr_t *out, int *flag)
{
	return ((MPI_Comm_copy_attr_function *)fn)((MPI_Comm)object, keyval, (void *)extra, (void *)in, out, flag);
}

int weft_call_delete_attr(uintptr_t fn, uintptr_t object, int keyval, uintptr_t value, uintptr_t extra)
{
	return ((MPI_Comm_delete_attr_function *)fn)((MPI_Comm)object, keyval, (void *)value, (void *)extra);
}

int weft_call_errhandler(uintptr_t fn, uintptr_t object, int code)
{
	MPI_Comm handle = (MPI_Comm)object;
	((MPI_Comm_errhandler_function *)fn)(&handle, &code);
	return code;
}

int weft_call_grequest_query(uintptr_t fn, uintptr_t extra, uintptr_t status)
{
	return ((MPI_Grequest_query_function *)fn)((void *)extra, (MPI_Status *)status);
}

int weft_call_grequest_free(uintptr_t fn, uintptr_t extra)
{
	return ((MPI_Grequest_free_function *)fn)((void *)extra);
}

int weft_call_grequest_cancel(uintptr_t fn, uintptr_t extra, int complete)
{
	return ((MPI_Grequest_cancel_function *)fn)((void *)extra, complete);
}

int weft_call_datarep_extent(uintptr_t fn, uintptr_t datatype, int64_t *extent, uintptr_t extra)
{
	MPI_Aint n = 0;
	int code = ((MPI_Datarep_extent_function *)fn)((MPI_Datatype)datatype, &n, (void *)extra);
	*extent = n;
	return code;
}

int weft_call_datarep_convert(uintptr_t fn, uintptr_t user, uintptr_t datatype, int64_t count, uintptr_t file,
	int64_t position, uintptr_t extra, int large)
{
	if (large)
		return ((MPI_Datarep_conversion_function_c *)fn)((void *)user, (MPI_Datatype)datatype, count, (void *)file, position,
			(void *)extra);
	return ((MPI_Datarep_conversion_function *)fn)((void *)user, (MPI_Datatype)datatype, (int)count, (void *)file, position,
		(void *)extra);
}

uintptr_t weft_allocate(int64_t n, int64_t alignment)
{
	void *p;
	if ((size_t)alignment < sizeof p)
		alignment = sizeof p;
	if (n < 0 || posix_memalign(&p, (size_t)alignment, (size_t)(n ? n : 1)) != 0)
		return 0;
	return (uintptr_t)p;
}

void weft_release(uintptr_t p)
{
	free((void *)p);
}

static void flush(FILE *f)
{
	/* Another thread may hold the lock as long as it waits for input. */
	if (ftrylockfile(f) == 0) {
		fflush(f);
		funlockfile(f);
	}
}

/* gfortran's library, if the program has it: writes what the units of Fortran hold. */
extern void _gfortran_flush_i4(int *unit) __attribute__((weak));

static void *flush_units(void *unused)
{
	_gfortran_flush_i4(NULL);
	return unused;
}

/* Another thread, or a statement that this call is part of, may hold a unit for as
 * long as it likes. Units are flushed by a thread that is not waited for longer. */
enum { FLUSH_SECONDS = 1 };

static void flush_fortran(void)
{
	static atomic_bool stuck; /* there is a thread that waits for a unit */
	pthread_t thread;
	struct timespec until;
	if (_gfortran_flush_i4 == NULL || stuck || clock_gettime(CLOCK_REALTIME, &until) != 0)
		return;
	until.tv_sec += FLUSH_SECONDS;
	if (pthread_create(&thread, NULL, flush_units, NULL) == 0 && pthread_timedjoin_np(thread, NULL, &until) != 0) {
		stuck = true;
		pthread_detach(thread);
	}
}

void weft_flush(void)
{
	flush(stdout);
	flush(stderr);
	flush_fortran();
}

/* Ends the process: not by exit, because functions that it would call may wait for MPI. */
void weft_exit(int code)
{
	weft_flush();
	_exit(code);
}

extern void weft_exiting(void);

static pid_t owner;

/* A child of fork has the handlers of its parent, but none of its threads. */
static void exiting(void)
{
	if (getpid() == owner)
		weft_exiting();
}

/* Has weft_exiting called at the exit of this process. */
void weft_at_exit(void)
{
	owner = getpid();
	atexit(exiting);
}
