// A token goes around, of all lengths between nothing and what needs a rendezvous.
#include "check.h"

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;

	for (int n = 0; n <= 1 << 18; n = n ? 8 * n : 1) {
		int *token = malloc((n + 1) * sizeof *token), count = -1;
		MPI_Status status;
		if (rank == 0) {
			for (int i = 0; i < n; i++)
				token[i] = i;
			/* To itself, a rank sends without blocking. */
			MPI_Request request;
			int *back = malloc((n + 1) * sizeof *back);
			MUST(MPI_Irecv(back, n, MPI_INT, previous, n, MPI_COMM_WORLD, &request));
			MUST(MPI_Send(token, n, MPI_INT, next, n, MPI_COMM_WORLD));
			MUST(MPI_Wait(&request, &status));
			CHECK(request == MPI_REQUEST_NULL, "a request that is done is not null");
			for (int i = 0; i < n; i++)
				CHECK(back[i] == i + size - 1, "element %d of %d is %d", i, n, back[i]);
			free(back);
		} else {
			MUST(MPI_Recv(token, n, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
			for (int i = 0; i < n; i++)
				token[i]++;
			MUST(MPI_Send(token, n, MPI_INT, next, n, MPI_COMM_WORLD));
		}
		CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == n, "from %d with tag %d", status.MPI_SOURCE, status.MPI_TAG);
		MUST(MPI_Get_count(&status, MPI_INT, &count));
		CHECK(count == n, "%d elements, want %d", count, n);
		free(token);
	}
	done();
	MUST(MPI_Finalize());
	return 0;
}
