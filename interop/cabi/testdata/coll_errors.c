// What collectives refuse, with its class: the call returns, and the next one works.
// cabi: ranks=1,2,4 transports=shm
#include "coll.h"

static void nothing(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in, (void)inout, (void)n, (void)type;
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	MPI_Comm c;
	int a[64] = {0}, b[64] = {0}, counts[8], displs[8];
	MPI_Request request;
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	MUST(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	for (int i = 0; i < 8; i++)
		counts[i] = 1, displs[i] = i;

	/* Communicators. */
	FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
	FAILS(MPI_ERR_COMM, MPI_Bcast(a, 1, MPI_INT, 0, (MPI_Comm)12345678));

	/* Roots. */
	FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, -1, c));
	FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, size, c));
	FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, MPI_ROOT, c));
	FAILS(MPI_ERR_ROOT, MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, MPI_PROC_NULL, c));
	FAILS(MPI_ERR_ROOT, MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, size, c));
	FAILS(MPI_ERR_ROOT, MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_INT, -7, c));

	/* Counts. */
	FAILS(MPI_ERR_COUNT, MPI_Bcast(a, -1, MPI_INT, 0, c));
	FAILS(MPI_ERR_COUNT, MPI_Allreduce(a, b, -1, MPI_INT, MPI_SUM, c));
	FAILS(MPI_ERR_COUNT, MPI_Alltoall(a, -1, MPI_INT, b, 1, MPI_INT, c));
	FAILS(MPI_ERR_COUNT, MPI_Allgather(a, 1, MPI_INT, b, -1, MPI_INT, c));
	FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter_block(a, b, -1, MPI_INT, MPI_SUM, c));
	counts[size - 1] = -2;
	FAILS(MPI_ERR_COUNT, MPI_Allgatherv(a, 1, MPI_INT, b, counts, displs, MPI_INT, c));
	FAILS(MPI_ERR_COUNT, MPI_Alltoallv(a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, c));
	FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, c));
	counts[size - 1] = 1;

	/* Datatypes. */
	MPI_Datatype two;
	MUST(MPI_Type_contiguous(2, MPI_INT, &two));
	FAILS(MPI_ERR_TYPE, MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, c));
	FAILS(MPI_ERR_TYPE, MPI_Bcast(a, 1, two, 0, c)); /* not committed */
	MUST(MPI_Type_commit(&two));
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, two, MPI_SUM, c));

	/* Operators. */
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, c));
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, c));
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_WCHAR, MPI_SUM, c));
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_MINLOC, c));
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, c));
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_REPLACE, c));
	FAILS(MPI_ERR_OP, MPI_Reduce_local(a, b, 1, MPI_DOUBLE, MPI_LXOR));
	MPI_Op op = MPI_SUM, old;
	FAILS(MPI_ERR_OP, MPI_Op_free(&op));
	CHECK(op == MPI_SUM, "MPI_SUM is gone");
	FAILS(MPI_ERR_ARG, MPI_Op_create(NULL, 1, &op));
	MUST(MPI_Op_create(nothing, 1, &op));
	old = op;
	MUST(MPI_Op_free(&op));
	FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, old, c));
	FAILS(MPI_ERR_OP, MPI_Op_free(&old));
	int commute = 0;
	MUST(MPI_Op_commutative(MPI_MAXLOC, &commute));
	CHECK(commute, "MPI_MAXLOC does not commute");

	/* Buffers. */
	FAILS(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, c));
	FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, c));
	FAILS(MPI_ERR_BUFFER, MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, c));
	FAILS(MPI_ERR_BUFFER, MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, c));
	FAILS(MPI_ERR_BUFFER, MPI_Scan(a, a, 1, MPI_INT, MPI_SUM, c));
	FAILS(MPI_ERR_BUFFER, MPI_Alltoall(a, 1, MPI_INT, a, 1, MPI_INT, c));
	FAILS(MPI_ERR_BUFFER, MPI_Allgather(a + rank, 1, MPI_INT, a, 1, MPI_INT, c));
	FAILS(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(a, a, 1, MPI_INT, MPI_SUM, c));
	if (rank == 0) {
		FAILS(MPI_ERR_BUFFER, MPI_Gather(a, 1, MPI_INT, a, 1, MPI_INT, 0, c));
		FAILS(MPI_ERR_BUFFER, MPI_Reduce(a, a, 1, MPI_INT, MPI_SUM, 0, c));
	} else {
		FAILS(MPI_ERR_BUFFER, MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, a, 1, MPI_INT, 0, c));
		FAILS(MPI_ERR_BUFFER, MPI_Reduce(MPI_IN_PLACE, a, 1, MPI_INT, MPI_SUM, 0, c));
	}

	/* Pointers to arrays, and to requests. */
	FAILS(MPI_ERR_ARG, MPI_Allgatherv(a, 1, MPI_INT, b, NULL, displs, MPI_INT, c));
	FAILS(MPI_ERR_ARG, MPI_Allgatherv(a, 1, MPI_INT, b, counts, NULL, MPI_INT, c));
	FAILS(MPI_ERR_ARG, MPI_Alltoallw(a, counts, displs, NULL, b, counts, displs, NULL, c));
	FAILS(MPI_ERR_ARG, MPI_Ibarrier(c, NULL));
	FAILS(MPI_ERR_ARG, MPI_Bcast_init(a, 1, MPI_INT, 0, c, MPI_INFO_NULL, NULL));
	FAILS(MPI_ERR_ROOT, MPI_Ibcast(a, 1, MPI_INT, size, c, &request));
	FAILS(MPI_ERR_INFO, MPI_Barrier_init(c, (MPI_Info)12345678, &request));

	/* All of it has left the communicator as it was, and nothing is asked of buffers without data. */
	MUST(MPI_Bcast(NULL, 0, MPI_INT, 0, c));
	MUST(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, c));
	a[0] = 1;
	MUST(MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, c));
	CHECK(b[0] == size, "then the sum is %d", b[0]);
	MUST(MPI_Type_free(&two));
	MUST(MPI_Comm_free(&c));
	end();
	return 0;
}
