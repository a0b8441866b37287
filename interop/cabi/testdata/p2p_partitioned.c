/* Partitioned messages between datatypes of other layouts, made ready in any order. */
/* cabi: ranks=1,2,4 transports=shm,sctp,tcp */
#include "p2p.h"

static void round_of(int sends, int recvs, int items)
{
	/* Pairs of every second double on one side, a row of doubles on the other. */
	int n = sends * items * 2, flag;
	double *out = malloc(2 * n * sizeof(double)), *in = malloc(n * sizeof(double));
	MPI_Datatype gaps, pair;
	MPI_Request r[2];
	MPI_Status st;
	MUST(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &gaps));
	MUST(MPI_Type_create_resized(gaps, 0, 4 * sizeof(double), &pair));
	MUST(MPI_Type_commit(&pair));
	MUST(MPI_Psend_init(out, sends, items, pair, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
	MUST(MPI_Precv_init(in, recvs, n / recvs, MPI_DOUBLE, prev, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
	MUST(MPI_Type_free(&gaps));
	MUST(MPI_Type_free(&pair)); /* the operations keep it */
	for (int round = 0; round < 3; round++) {
		MUST(MPI_Parrived(r[1], 0, &flag)); /* inactive */
		SAME(flag, 1);
		MUST(MPI_Startall(2, r));
		for (int i = 0; i < n; i++)
			out[2 * i] = 1e6 * round + 1000 * rank + i;
		if (round == 0) {
			for (int i = sends - 1; i >= 0; i--)
				MUST(MPI_Pready(i, r[0]));
		} else if (round == 1) {
			MUST(MPI_Pready_range(0, sends - 1, r[0]));
		} else {
			int *list = malloc(sends * sizeof(int));
			for (int i = 0; i < sends; i++)
				list[i] = (i + sends / 2) % sends;
			MUST(MPI_Pready_list(sends, list, r[0]));
			free(list);
		}
		for (int p = recvs - 1; p >= 0; p--) {
			do
				MUST(MPI_Parrived(r[1], p, &flag));
			while (!flag);
			for (int i = p * (n / recvs); i < (p + 1) * (n / recvs); i++)
				CHECK(in[i] == 1e6 * round + 1000 * prev + i, "round %d, element %d: %g", round, i, in[i]);
		}
		MUST(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
		MUST(MPI_Test(&r[1], &flag, &st));
		SAME(flag, 1); /* all partitions have arrived */
		CHECK(r[0] != MPI_REQUEST_NULL && r[1] != MPI_REQUEST_NULL, "freed");
		MUST(MPI_Get_count(&st, MPI_DOUBLE, &flag));
		SAME(flag, n);
	}
	MUST(MPI_Request_free(&r[0]));
	MUST(MPI_Request_free(&r[1]));
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	int b[4], flag;
	MPI_Request r;
	MUST(MPI_Init(&argc, &argv));
	ring_of_all();
	round_of(1, 1, 4);
	round_of(8, 4, 3);
	round_of(4, 8, 50);
	round_of(6, 9, 4500);
	/* Nobody. */
	MUST(MPI_Psend_init(b, 2, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	MUST(MPI_Start(&r));
	MUST(MPI_Pready_range(0, 1, r));
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MUST(MPI_Request_free(&r));
	/* Wrong uses. */
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_ARG, MPI_Psend_init(b, -1, 1, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	FAILS(MPI_ERR_COUNT, MPI_Psend_init(b, 1, -1, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	FAILS(MPI_ERR_RANK, MPI_Precv_init(b, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	FAILS(MPI_ERR_TAG, MPI_Precv_init(b, 1, 1, MPI_INT, prev, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	MUST(MPI_Psend_init(b, 2, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
	FAILS(MPI_ERR_REQUEST, MPI_Pready(0, r));
	FAILS(MPI_ERR_REQUEST, MPI_Parrived(r, 0, &flag));
	MUST(MPI_Start(&r));
	FAILS(MPI_ERR_ARG, MPI_Pready(2, r));
	MUST(MPI_Pready_range(0, 1, r));
	FAILS(MPI_ERR_ARG, MPI_Pready(1, r));
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MUST(MPI_Request_free(&r));
	done();
	return MPI_Finalize();
}
