/* Bad arguments: each is an error of the class that the standard names, and what came before goes on. */
/* cabi: ranks=1,2 transports=shm,tcp */
#include "p2p.h"

int main(int argc, char **argv)
{
	int b[4] = {1, 2, 3, 4}, flag, n, indices[2], size_;
	MPI_Request r = MPI_REQUEST_NULL, rs[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Status st, sts[2];
	MPI_Message msg = MPI_MESSAGE_NULL;
	MPI_Datatype loose;
	MPI_Comm w = MPI_COMM_WORLD, gone;
	char text[MPI_MAX_ERROR_STRING];
	MUST(MPI_Init(&argc, &argv));
	ring_of_all();
	MUST(MPI_Comm_dup(w, &gone));
	MPI_Comm stale = gone;
	MUST(MPI_Comm_free(&gone));
	MUST(MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

	FAILS(MPI_ERR_COMM, MPI_Send(b, 1, MPI_INT, 0, 1, MPI_COMM_NULL));
	FAILS(MPI_ERR_COMM, MPI_Send(b, 1, MPI_INT, 0, 1, stale));
	FAILS(MPI_ERR_COMM, MPI_Recv(b, 1, MPI_INT, 0, 1, (MPI_Comm)MPI_INT, &st));
	FAILS(MPI_ERR_COUNT, MPI_Send(b, -1, MPI_INT, 0, 1, w));
	FAILS(MPI_ERR_COUNT, MPI_Irecv(b, -5, MPI_INT, 0, 1, w, &r));
	FAILS(MPI_ERR_TYPE, MPI_Send(b, 1, MPI_DATATYPE_NULL, 0, 1, w));
	FAILS(MPI_ERR_TYPE, MPI_Send(b, 1, (MPI_Datatype)MPI_COMM_WORLD, 0, 1, w));
	MUST(MPI_Type_contiguous(2, MPI_INT, &loose));
	FAILS(MPI_ERR_TYPE, MPI_Isend(b, 1, loose, 0, 1, w, &r)); /* not committed */
	MUST(MPI_Type_free(&loose));
	FAILS(MPI_ERR_RANK, MPI_Send(b, 1, MPI_INT, size, 1, w));
	FAILS(MPI_ERR_RANK, MPI_Send(b, 1, MPI_INT, MPI_ANY_SOURCE, 1, w));
	FAILS(MPI_ERR_RANK, MPI_Recv(b, 1, MPI_INT, -77, 1, w, &st));
	FAILS(MPI_ERR_RANK, MPI_Probe(size, 1, w, &st));
	FAILS(MPI_ERR_TAG, MPI_Send(b, 1, MPI_INT, 0, -1, w));
	FAILS(MPI_ERR_TAG, MPI_Ssend(b, 1, MPI_INT, 0, MPI_ANY_TAG, w));
	FAILS(MPI_ERR_TAG, MPI_Recv(b, 1, MPI_INT, 0, -9, w, &st));
	FAILS(MPI_ERR_TAG, MPI_Iprobe(0, -9, w, &flag, &st));
	FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_INT, 0, 1, w));
	FAILS(MPI_ERR_BUFFER, MPI_Recv(NULL, 1, MPI_INT, 0, 1, w, &st));
	FAILS(MPI_ERR_BUFFER, MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 1, w));
	FAILS(MPI_ERR_ARG, MPI_Isend(b, 1, MPI_INT, 0, 1, w, NULL));
	FAILS(MPI_ERR_ARG, MPI_Iprobe(0, 1, w, NULL, &st));
	MUST(MPI_Send(NULL, 0, MPI_INT, next, 1, w));
	MUST(MPI_Recv(NULL, 0, MPI_INT, prev, 1, w, &st));
	SAME(r, MPI_REQUEST_NULL);

	FAILS(MPI_ERR_REQUEST, MPI_Cancel(&r));
	FAILS(MPI_ERR_REQUEST, MPI_Request_free(&r));
	FAILS(MPI_ERR_REQUEST, MPI_Start(&r));
	FAILS(MPI_ERR_REQUEST, MPI_Pready(0, r));
	r = (MPI_Request)MPI_COMM_WORLD;
	FAILS(MPI_ERR_REQUEST, MPI_Wait(&r, &st));
	FAILS(MPI_ERR_REQUEST, MPI_Test(&r, &flag, &st));
	rs[1] = r;
	FAILS(MPI_ERR_REQUEST, MPI_Waitall(2, rs, sts));
	FAILS(MPI_ERR_REQUEST, MPI_Testsome(2, rs, &n, indices, sts));
	MUST(MPI_Irecv(b, 1, MPI_INT, rank, 3, w, &rs[0]));
	FAILS(MPI_ERR_REQUEST, MPI_Waitall(2, rs, sts)); /* nothing is waited for */
	FAILS(MPI_ERR_REQUEST, MPI_Start(&rs[0]));
	MUST(MPI_Send(b, 1, MPI_INT, rank, 3, w));
	r = rs[0];
	MUST(MPI_Wait(&rs[0], &st));
	FAILS(MPI_ERR_REQUEST, MPI_Wait(&r, &st)); /* a copy of a handle that was freed */
	FAILS(MPI_ERR_COUNT, MPI_Waitall(-1, rs, sts));
	FAILS(MPI_ERR_ARG, MPI_Waitall(1, NULL, sts));
	FAILS(MPI_ERR_ARG, MPI_Waitany(1, rs, NULL, &st));
	FAILS(MPI_ERR_ARG, MPI_Wait(NULL, &st));
	FAILS(MPI_ERR_REQUEST, MPI_Mrecv(b, 1, MPI_INT, &msg, &st));
	FAILS(MPI_ERR_ARG, MPI_Get_count(MPI_STATUS_IGNORE, MPI_INT, &n));
	FAILS(MPI_ERR_TYPE, MPI_Get_count(&st, MPI_DATATYPE_NULL, &n));

	/* The message names the function, the parameter and the value. */
	int code = MPI_Send(b, 1, MPI_INT, 4711, 1, w);
	MUST(MPI_Error_string(code, text, &size_));
	CHECK(strstr(text, "MPI_Send") && strstr(text, "dest 4711"), "%s", text);

	/* Too much for the buffer: the data that fits is there. */
	b[0] = b[1] = 0;
	int out[3] = {5, 6, 7};
	MUST(MPI_Irecv(b, 1, MPI_INT, prev, 4, w, &r));
	MUST(MPI_Send(out, 3, MPI_INT, next, 4, w));
	FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&r, &st));
	SAME(b[0], 5);
	SAME(b[1], 0);
	SAME(st.MPI_TAG, 4);
	done();
	return MPI_Finalize();
}
