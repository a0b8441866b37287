// Messages between two halves of the ranks, which sit in two sites:
//
//	twosites ring ROUNDS SIZE        a message goes round all ranks, changed by each
//	twosites bandwidth COUNT SIZE    each rank of the first half sends to one of the second, windows of 16
//
// All bytes are checked. Rank 0 prints the seconds that it took.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16 };

static int rank, ranks, size;

static unsigned char expect(int message, int i, int hop) { return message * 31 + i * 7 + hop; }

static void check(const unsigned char *b, int message, int hop) {
	for (int i = 0; i < size; i++)
		if (b[i] != expect(message, i, hop)) {
			fprintf(stderr, "rank %d: message %d has %d at %d, want %d\n", rank, message, b[i], i, expect(message, i, hop));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static void fill(unsigned char *b, int message, int hop) {
	for (int i = 0; i < size; i++)
		b[i] = expect(message, i, hop);
}

static void ring(int rounds) {
	unsigned char *b = malloc(size);
	for (int r = 0; r < rounds; r++) {
		if (rank == 0) {
			fill(b, r, 0);
			MPI_Send(b, size, MPI_BYTE, 1, r, MPI_COMM_WORLD);
			MPI_Recv(b, size, MPI_BYTE, ranks - 1, r, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			check(b, r, ranks - 1);
			continue;
		}
		MPI_Recv(b, size, MPI_BYTE, rank - 1, r, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(b, r, rank - 1);
		fill(b, r, rank);
		MPI_Send(b, size, MPI_BYTE, (rank + 1) % ranks, r, MPI_COMM_WORLD);
	}
	free(b);
}

static void bandwidth(int count) {
	unsigned char *b = malloc((size_t)WINDOW * size);
	MPI_Request reqs[WINDOW];
	int sends = rank < ranks / 2, peer = (rank + ranks / 2) % ranks;
	for (int at = 0; at < count; at += WINDOW) {
		int n = count - at < WINDOW ? count - at : WINDOW;
		for (int i = 0; i < n; i++) {
			unsigned char *m = b + (size_t)i * size;
			if (sends) {
				fill(m, at + i, rank);
				MPI_Isend(m, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &reqs[i]);
			} else {
				MPI_Irecv(m, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &reqs[i]);
			}
		}
		MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
		for (int i = 0; i < n && !sends; i++)
			check(b + (size_t)i * size, at + i, peer);
	}
	free(b);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4 || ranks < 2 || ranks % 2) {
		fprintf(stderr, "usage: twosites ring|bandwidth COUNT SIZE, with an even number of ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	int count = atoi(argv[2]);
	size = atoi(argv[3]);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	if (strcmp(argv[1], "ring") == 0)
		ring(count);
	else
		bandwidth(count);
	double took = MPI_Wtime() - start;
	if (rank == 0)
		printf("%s of %d ranks: %.6f seconds\n", argv[1], ranks, took);
	MPI_Finalize();
	return 0;
}
