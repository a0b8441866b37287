// Communication patterns of parallel programs whose ranks are in several sites, half of them in each of
// two: what patterns_test.go has in Go.
//
//	patterns pingpong TRIPS SIZE          between the first ranks of the sites
//	patterns bulk MESSAGES SIZE           one way between them
//	patterns halo STEPS SIZE PAUSE        with both neighbours in the site and the counterpart in the other
//	                                      site; then nothing for PAUSE microseconds
//	patterns sweep SWEEPS PLANES SIZE     there and back over a grid whose rows are the sites
//	patterns alltoall STEPS SIZE
//	patterns allreduce STEPS SIZE
//
// Rank 0 prints the seconds of the slowest rank as JSON, with half the median round trip of pingpong.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

enum { WARMUP = 2, WINDOW = 16 };

static double *trips;

static int less(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void pingpong(int n, int size, int warm) {
	char *buf = calloc(1, size);
	int far = ranks / 2;
	for (int i = 0; i < n; i++) {
		double t = MPI_Wtime();
		if (rank == 0) {
			MPI_Send(buf, size, MPI_CHAR, far, 0, MPI_COMM_WORLD);
			MPI_Recv(buf, size, MPI_CHAR, far, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == far) {
			MPI_Recv(buf, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buf, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
		}
		if (!warm)
			trips[i] = MPI_Wtime() - t;
	}
	free(buf);
}

static void bulk(int n, int size) {
	char *buf = calloc(WINDOW, size);
	MPI_Request reqs[WINDOW];
	int far = ranks / 2;
	if (rank == 0 || rank == far)
		for (int i = 0; i < n; i += WINDOW) {
			int k = n - i < WINDOW ? n - i : WINDOW;
			for (int j = 0; j < k; j++)
				if (rank == 0)
					MPI_Isend(buf + (size_t)j * size, size, MPI_CHAR, far, 0, MPI_COMM_WORLD, &reqs[j]);
				else
					MPI_Irecv(buf + (size_t)j * size, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &reqs[j]);
			MPI_Waitall(k, reqs, MPI_STATUSES_IGNORE);
		}
	char end = 0; // the last message has arrived when it has
	if (rank == far)
		MPI_Send(&end, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	else if (rank == 0)
		MPI_Recv(&end, 1, MPI_CHAR, far, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	free(buf);
}

static void halo(int n, int size, int pause) {
	char *buf = calloc(6, size);
	MPI_Request reqs[6];
	int half = ranks / 2, site = rank / half, i = rank % half;
	int peers[3] = {site * half + (i + 1) % half, site * half + (i + half - 1) % half, (1 - site) * half + i};
	for (int step = 0; step < n; step++) {
		for (int k = 0; k < 3; k++) {
			// What the right neighbour gets from its left one has the tag of that.
			int tag = k == 2 ? 2 : 1 - k;
			MPI_Irecv(buf + (size_t)k * size, size, MPI_CHAR, peers[k], tag, MPI_COMM_WORLD, &reqs[k]);
			MPI_Isend(buf + (size_t)(3 + k) * size, size, MPI_CHAR, peers[k], k, MPI_COMM_WORLD, &reqs[3 + k]);
		}
		MPI_Waitall(6, reqs, MPI_STATUSES_IGNORE);
		if (pause)
			usleep(pause);
	}
	free(buf);
}

static void sweep(int n, int planes, int size) {
	char *buf = calloc(1, size);
	int half = ranks / 2, row = rank / half, col = rank % half;
	for (int s = 0; s < n; s++)
		for (int back = 0; back < 2; back++) {
			int d = back ? -1 : 1;
			int up = row - d < 0 || row - d > 1 ? MPI_PROC_NULL : (row - d) * half + col;
			int down = row + d < 0 || row + d > 1 ? MPI_PROC_NULL : (row + d) * half + col;
			int left = col - d < 0 || col - d >= half ? MPI_PROC_NULL : row * half + col - d;
			int right = col + d < 0 || col + d >= half ? MPI_PROC_NULL : row * half + col + d;
			for (int k = 0; k < planes; k++) {
				MPI_Recv(buf, size, MPI_CHAR, up, back, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				MPI_Recv(buf, size, MPI_CHAR, left, back, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				MPI_Send(buf, size, MPI_CHAR, down, back, MPI_COMM_WORLD);
				MPI_Send(buf, size, MPI_CHAR, right, back, MPI_COMM_WORLD);
			}
		}
	free(buf);
}

static void collective(const char *name, int n, int size) {
	char *send = calloc(ranks, size), *recv = calloc(ranks, size);
	for (int i = 0; i < n; i++)
		if (!strcmp(name, "alltoall"))
			MPI_Alltoall(send, size, MPI_CHAR, recv, size, MPI_CHAR, MPI_COMM_WORLD);
		else
			MPI_Allreduce(send, recv, size / sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	free(send);
	free(recv);
}

static void run(char **argv, int n, int warm) {
	const char *name = argv[1];
	if (!strcmp(name, "pingpong"))
		pingpong(n, atoi(argv[3]), warm);
	else if (!strcmp(name, "bulk"))
		bulk(warm ? WINDOW : n, atoi(argv[3]));
	else if (!strcmp(name, "halo"))
		halo(n, atoi(argv[3]), atoi(argv[4]));
	else if (!strcmp(name, "sweep"))
		sweep(n, atoi(argv[3]), atoi(argv[4]));
	else
		collective(name, n, atoi(argv[3]));
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 4 || ranks % 2) {
		if (rank == 0)
			fprintf(stderr, "patterns: want a pattern, its numbers, and an even number of ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	int n = atoi(argv[2]);
	trips = calloc(n, sizeof *trips);
	run(argv, WARMUP, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	double mine = MPI_Wtime(), most;
	run(argv, n, 0);
	mine = MPI_Wtime() - mine;
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		qsort(trips, n, sizeof *trips, less);
		printf("{\"seconds\":%.6f,\"oneway\":%.3f}\n", most, trips[n / 2] * 1e6 / 2);
	}
	MPI_Finalize();
}
