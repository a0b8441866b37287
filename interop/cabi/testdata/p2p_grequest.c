/* Requests of the program. */
/* cabi: ranks=1,2 transports=shm,sctp flags=-pthread */
#include "p2p.h"
#include <pthread.h>
#include <unistd.h>

static int freed, cancels, complete_at_cancel = -1;

static int query(void *extra, MPI_Status *st)
{
	MPI_Status_set_elements(st, MPI_INT, *(int *)extra);
	MPI_Status_set_cancelled(st, 0);
	st->MPI_SOURCE = 21;
	st->MPI_TAG = 22;
	return MPI_SUCCESS;
}

static int fails(void *extra, MPI_Status *st)
{
	(void)extra;
	(void)st;
	return MPI_ERR_OTHER;
}

static int release(void *extra)
{
	(void)extra;
	freed++;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra;
	cancels++;
	complete_at_cancel = complete;
	return MPI_SUCCESS;
}

static void *later(void *r)
{
	usleep(20000);
	MPI_Grequest_complete(*(MPI_Request *)r);
	return NULL;
}

int main(int argc, char **argv)
{
	int seven = 7, provided, flag, n, index;
	pthread_t thread;
	MPI_Request r, copy, rs[2];
	MPI_Status st;
	MUST(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	SAME(provided, MPI_THREAD_MULTIPLE);
	ring_of_all();

	MUST(MPI_Grequest_start(query, release, cancel, &seven, &r));
	MUST(MPI_Test(&r, &flag, &st));
	SAME(flag, 0);
	copy = r;
	CHECK(!pthread_create(&thread, NULL, later, &copy), "no thread");
	MUST(MPI_Wait(&r, &st));
	CHECK(!pthread_join(thread, NULL), "join");
	SAME(r, MPI_REQUEST_NULL);
	SAME(st.MPI_SOURCE, 21);
	SAME(st.MPI_TAG, 22);
	MUST(MPI_Get_elements(&st, MPI_INT, &n));
	SAME(n, 7);
	SAME(freed, 1);

	/* Together with a message. */
	int in;
	MUST(MPI_Grequest_start(query, release, cancel, &seven, &rs[0]));
	MUST(MPI_Irecv(&in, 1, MPI_INT, prev, 1, MPI_COMM_WORLD, &rs[1]));
	MUST(MPI_Send(&rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD));
	MUST(MPI_Waitany(2, rs, &index, &st));
	SAME(index, 1);
	MUST(MPI_Cancel(&rs[0]));
	SAME(cancels, 1);
	SAME(complete_at_cancel, 0);
	MUST(MPI_Grequest_complete(rs[0]));
	MUST(MPI_Cancel(&rs[0]));
	SAME(complete_at_cancel, 1);
	MUST(MPI_Request_get_status(rs[0], &flag, &st));
	SAME(flag, 1);
	SAME(freed, 1);
	MUST(MPI_Waitall(2, rs, MPI_STATUSES_IGNORE));
	SAME(freed, 2);

	/* Freed first. */
	MUST(MPI_Grequest_start(query, release, cancel, &seven, &r));
	copy = r;
	MUST(MPI_Request_free(&r));
	SAME(freed, 2);
	MUST(MPI_Grequest_complete(copy));
	SAME(freed, 3);

	/* The error of the query function is that of the request. */
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Grequest_start(fails, release, cancel, &seven, &r));
	MUST(MPI_Grequest_complete(r));
	FAILS(MPI_ERR_OTHER, MPI_Wait(&r, &st));
	SAME(freed, 4);
	done();
	return MPI_Finalize();
}
