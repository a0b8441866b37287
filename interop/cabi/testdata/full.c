// More matched messages than there are handles: MPI_Mprobe says so before it takes a message, and none is lost.
// cabi: ranks=2 transports=shm,sctp
#include "check.h"

enum { messages = 66000 };

static MPI_Request requests[messages];
static MPI_Message matched[messages];
static int values[messages];

int main(int argc, char **argv)
{
	int rank, i, x, flag, held, code;
	MPI_Status status;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	if (rank == 0) {
		for (i = 0; i < messages; i++) {
			values[i] = i;
			MUST(MPI_Isend(&values[i], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[i]));
		}
		MUST(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
	} else {
		for (held = 0; held < messages; held++) {
			code = MPI_Mprobe(0, 3, MPI_COMM_WORLD, &matched[held], &status);
			if (code != MPI_SUCCESS)
				break;
		}
		CHECK(held > 60000 && held < messages, "%d messages were matched", held);
		FAILS(MPI_ERR_NO_MEM, MPI_Mprobe(0, 3, MPI_COMM_WORLD, &matched[held], &status));
		FAILS(MPI_ERR_NO_MEM, MPI_Improbe(0, 3, MPI_COMM_WORLD, &flag, &matched[held], &status));
		for (i = 0; i < held; i++) {
			MUST(MPI_Mrecv(&x, 1, MPI_INT, &matched[i], &status));
			CHECK(x == i, "message %d has %d", i, x);
		}
		for (; i < messages; i++) {
			MUST(MPI_Mprobe(0, 3, MPI_COMM_WORLD, &matched[i], &status));
			MUST(MPI_Mrecv(&x, 1, MPI_INT, &matched[i], &status));
			CHECK(x == i, "message %d has %d", i, x);
		}
	}
	done();
	MUST(MPI_Finalize());
	return 0;
}
