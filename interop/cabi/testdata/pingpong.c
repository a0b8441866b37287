// Messages there and back, with their times if an argument asks for them.
// cabi: ranks=2
#include "check.h"

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	CHECK(size == 2, "%d ranks, want 2", size);
	int report = argc > 1;
	for (long n = 1; n <= 1 << 20; n *= 4) {
		int rounds = report ? (n <= 1 << 12 ? 20000 : 500) : 20, warm = rounds / 10;
		unsigned char *buffer = malloc(n);
		memset(buffer, rank == 0 ? 1 : 0, n);
		double start = 0;
		for (int i = -warm; i < rounds; i++) {
			if (i == 0)
				start = MPI_Wtime();
			if (rank == 0) {
				buffer[0] = buffer[n - 1] = (unsigned char)i;
				MUST(MPI_Send(buffer, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
				MUST(MPI_Recv(buffer, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
				unsigned char want = (unsigned char)(n == 1 ? i + 2 : i + 1); /* of one byte the first is the last */
				CHECK(buffer[n - 1] == want && buffer[0] == want, "%d and %d came back of round %d", buffer[0], buffer[n - 1], i);
			} else {
				MUST(MPI_Recv(buffer, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
				buffer[0]++;
				buffer[n - 1]++;
				MUST(MPI_Send(buffer, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
			}
		}
		if (rank == 0 && report)
			printf("%8ld bytes %10.2f us one way\n", n, (MPI_Wtime() - start) * 1e6 / rounds / 2);
		free(buffer);
	}
	done();
	MUST(MPI_Finalize());
	return 0;
}
