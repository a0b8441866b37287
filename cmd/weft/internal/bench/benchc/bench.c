/* The tests of `weft bench` for another MPI. It is compiled by `weft bench
 * compare` with the mpicc found there.
 *
 *   bench TEST MIN MAX ITERS WARMUP WINDOW
 *
 * Rank 0 prints a line for each size: the size and the first value that `weft
 * bench` prints. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, window;
static char *sbuf, *rbuf;
static int *counts, *displs;
static MPI_Win win;
static char *winmem;
static MPI_Request *reqs;

static double sum_of_ranks(double mine)
{
    double sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static int partner(int *first)
{
    int half = ranks / 2;
    *first = rank < half;
    return *first ? rank + half : rank - half;
}

static double latency(int size, int warmup, int iters)
{
    int first, other = partner(&first);
    double start = 0;
    for (int i = 0; i < warmup + iters; i++) {
        if (i == warmup)
            start = MPI_Wtime();
        if (first) {
            MPI_Send(sbuf, size, MPI_BYTE, other, 1, MPI_COMM_WORLD);
            MPI_Recv(rbuf, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(rbuf, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(sbuf, size, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        }
    }
    return sum_of_ranks((MPI_Wtime() - start) * 1e6 / (2.0 * iters)) / ranks;
}

static double bandwidth(int size, int warmup, int iters, int both)
{
    int first, other = partner(&first);
    double start = 0;
    char ack[4] = {0};
    for (int i = 0; i < warmup + iters; i++) {
        int n = 0;
        if (i == warmup)
            start = MPI_Wtime();
        if (!first || both)
            for (int j = 0; j < window; j++)
                MPI_Irecv(rbuf, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, &reqs[n++]);
        if (first || both)
            for (int j = 0; j < window; j++)
                MPI_Isend(sbuf, size, MPI_BYTE, other, 1, MPI_COMM_WORLD, &reqs[n++]);
        MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
        if (first)
            MPI_Recv(ack, 4, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(ack, 4, MPI_BYTE, other, 2, MPI_COMM_WORLD);
    }
    double took = MPI_Wtime() - start;
    double bytes = (double)iters * window * size * (both ? 2 : 1);
    return sum_of_ranks(first ? bytes / 1e6 / took : 0);
}

enum op { PUT, GET, ACC, GET_ACC, FOP, CAS };

static void start_op(enum op op, int size, int target)
{
    static long one = 1, zero = 0, old;
    switch (op) {
    case PUT:
        MPI_Put(sbuf, size, MPI_BYTE, target, 0, size, MPI_BYTE, win);
        break;
    case GET:
        MPI_Get(rbuf, size, MPI_BYTE, target, 0, size, MPI_BYTE, win);
        break;
    case ACC:
        MPI_Accumulate(sbuf, size, MPI_BYTE, target, 0, size, MPI_BYTE, MPI_REPLACE, win);
        break;
    case GET_ACC:
        MPI_Get_accumulate(sbuf, size, MPI_BYTE, rbuf, size, MPI_BYTE, target, 0, size, MPI_BYTE, MPI_NO_OP, win);
        break;
    case FOP:
        MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, win);
        break;
    case CAS:
        MPI_Compare_and_swap(&one, &zero, &old, MPI_LONG, target, 0, win);
        break;
    }
}

static double one_sided(enum op op, int size, int warmup, int iters, int count, int both)
{
    double start = 0, took, value = 0;
    int target = 1 - rank;
    MPI_Win_allocate(size < 8 ? 8 : size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &winmem, &win);
    memset(winmem, 0, size < 8 ? 8 : size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 || both) {
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        for (int i = 0; i < warmup + iters; i++) {
            if (i == warmup)
                start = MPI_Wtime();
            for (int j = 0; j < count; j++)
                start_op(op, size, target);
            MPI_Win_flush(target, win);
        }
        took = MPI_Wtime() - start;
        MPI_Win_unlock(target, win);
        if (count == 1)
            value = took * 1e6 / iters;
        else
            value = (double)iters * count * size / 1e6 / took;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    return sum_of_ranks(value);
}

static void call(const char *name, int size)
{
    MPI_Comm c = MPI_COMM_WORLD;
    int n = size / 4;
    for (int i = 0; i < ranks; i++) {
        counts[i] = size;
        displs[i] = i * size;
    }
    if (!strcmp(name, "barrier"))
        MPI_Barrier(c);
    else if (!strcmp(name, "bcast"))
        MPI_Bcast(sbuf, size, MPI_BYTE, 0, c);
    else if (!strcmp(name, "allgather"))
        MPI_Allgather(sbuf, size, MPI_BYTE, rbuf, size, MPI_BYTE, c);
    else if (!strcmp(name, "allgatherv"))
        MPI_Allgatherv(sbuf, size, MPI_BYTE, rbuf, counts, displs, MPI_BYTE, c);
    else if (!strcmp(name, "alltoall"))
        MPI_Alltoall(sbuf, size, MPI_BYTE, rbuf, size, MPI_BYTE, c);
    else if (!strcmp(name, "alltoallv"))
        MPI_Alltoallv(sbuf, counts, displs, MPI_BYTE, rbuf, counts, displs, MPI_BYTE, c);
    else if (!strcmp(name, "gather"))
        MPI_Gather(sbuf, size, MPI_BYTE, rbuf, size, MPI_BYTE, 0, c);
    else if (!strcmp(name, "gatherv"))
        MPI_Gatherv(sbuf, size, MPI_BYTE, rbuf, counts, displs, MPI_BYTE, 0, c);
    else if (!strcmp(name, "scatter"))
        MPI_Scatter(sbuf, size, MPI_BYTE, rbuf, size, MPI_BYTE, 0, c);
    else if (!strcmp(name, "scatterv"))
        MPI_Scatterv(sbuf, counts, displs, MPI_BYTE, rbuf, size, MPI_BYTE, 0, c);
    else if (!strcmp(name, "allreduce"))
        MPI_Allreduce(sbuf, rbuf, n, MPI_FLOAT, MPI_SUM, c);
    else if (!strcmp(name, "reduce"))
        MPI_Reduce(sbuf, rbuf, n, MPI_FLOAT, MPI_SUM, 0, c);
    else if (!strcmp(name, "scan"))
        MPI_Scan(sbuf, rbuf, n, MPI_FLOAT, MPI_SUM, c);
    else if (!strcmp(name, "exscan"))
        MPI_Exscan(sbuf, rbuf, n, MPI_FLOAT, MPI_SUM, c);
    else if (!strcmp(name, "reduce_scatter_block"))
        MPI_Reduce_scatter_block(sbuf, rbuf, n, MPI_FLOAT, MPI_SUM, c);
    else if (!strcmp(name, "reduce_scatter")) {
        for (int i = 0; i < ranks; i++)
            counts[i] = n / ranks + (i < n % ranks);
        MPI_Reduce_scatter(sbuf, rbuf, counts, MPI_FLOAT, MPI_SUM, c);
    } else {
        fprintf(stderr, "no test %s\n", name);
        MPI_Abort(c, 2);
    }
}

static double collective(const char *name, int size, int warmup, int iters)
{
    double took = 0;
    for (int i = 0; i < warmup + iters; i++) {
        double start = MPI_Wtime();
        call(name, size);
        if (i >= warmup)
            took += MPI_Wtime() - start;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return sum_of_ranks(took * 1e6 / iters) / ranks;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 7)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const char *test = argv[1];
    int min = atoi(argv[2]), max = atoi(argv[3]), iters = atoi(argv[4]), warmup = atoi(argv[5]);
    window = atoi(argv[6]);
    size_t room = (size_t)(max < 8 ? 8 : max) * ranks;
    sbuf = malloc(room);
    rbuf = malloc(room);
    memset(sbuf, 1, room); /* pages of its own, not one page of zeros */
    memset(rbuf, 1, room);
    counts = calloc(ranks, sizeof *counts);
    displs = calloc(ranks, sizeof *displs);
    reqs = calloc(2 * (size_t)window, sizeof *reqs);
    for (long size = min; size <= max; size = size ? 2 * size : 1) {
        double v;
        MPI_Barrier(MPI_COMM_WORLD);
        if (!strcmp(test, "latency") || !strcmp(test, "multi_lat"))
            v = latency(size, warmup, iters);
        else if (!strcmp(test, "bw") || !strcmp(test, "mbw_mr"))
            v = bandwidth(size, warmup, iters, 0);
        else if (!strcmp(test, "bibw"))
            v = bandwidth(size, warmup, iters, 1);
        else if (!strcmp(test, "put_latency"))
            v = one_sided(PUT, size, warmup, iters, 1, 0);
        else if (!strcmp(test, "get_latency"))
            v = one_sided(GET, size, warmup, iters, 1, 0);
        else if (!strcmp(test, "acc_latency"))
            v = one_sided(ACC, size, warmup, iters, 1, 0);
        else if (!strcmp(test, "get_acc_latency"))
            v = one_sided(GET_ACC, size, warmup, iters, 1, 0);
        else if (!strcmp(test, "fop_latency"))
            v = one_sided(FOP, size, warmup, iters, 1, 0);
        else if (!strcmp(test, "cas_latency"))
            v = one_sided(CAS, size, warmup, iters, 1, 0);
        else if (!strcmp(test, "put_bw"))
            v = one_sided(PUT, size, warmup, iters, window, 0);
        else if (!strcmp(test, "get_bw"))
            v = one_sided(GET, size, warmup, iters, window, 0);
        else if (!strcmp(test, "put_bibw"))
            v = one_sided(PUT, size, warmup, iters, window, 1);
        else
            v = collective(test, size, warmup, iters);
        if (rank == 0) {
            printf("%ld %.4f\n", size, v);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
