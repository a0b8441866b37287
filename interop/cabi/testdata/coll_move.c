// Collectives that move data: in all forms, of items with and without gaps, in place, with counts of
// nothing, and with blocks in any order.
// cabi: ranks=1,2,4,8 transports=shm,sctp
#include <sys/mman.h>

#include "coll.h"

enum { MOST = 8, LONG = 3000 };

static MPI_Datatype pair; /* two ints with a third between */

/* The ints of item i of what rank r sends to rank to. */
static int value(int r, int to, int i) { return 100000 * r + 10000 * to + i; }

/* Layouts: 0 ints, 1 pairs with a gap. A block of n items has n or 2 n ints of data. */
static MPI_Datatype layout(int l) { return l ? pair : MPI_INT; }
static int stride(int l) { return l ? 3 : 1; }

static void put(int *p, int l, int n, int r, int to)
{
	for (int i = 0; i < n; i++) {
		p[i * stride(l)] = value(r, to, i);
		if (l)
			p[3 * i + 2] = value(r, to, i) + 7;
	}
}

static void verify(const char *what, const int *p, int l, int n, int r, int to)
{
	for (int i = 0; i < n; i++) {
		int v = value(r, to, i);
		CHECK(p[i * stride(l)] == v, "%s: item %d from %d to %d is %d, want %d", what, i, r, to, p[i * stride(l)], v);
		if (l)
			CHECK(p[3 * i + 1] == -1 && p[3 * i + 2] == v + 7, "%s: item %d has %d and %d", what, i, p[3 * i + 1], p[3 * i + 2]);
	}
}

static int a[MOST * LONG * 3], b[MOST * LONG * 3];

static void clean(void)
{
	fill(a, MOST * LONG * 3, -1);
	fill(b, MOST * LONG * 3, -1);
}

static void equal_blocks(int form, int l, int n, int root, MPI_Comm c)
{
	MPI_Datatype t = layout(l);
	int block = n * stride(l);

	clean();
	if (rank == root)
		put(a, l, n, root, 0);
	DO(form, Bcast, bcast, a, n, t, root, c);
	verify("Bcast", a, l, n, root, 0);

	clean();
	put(a, l, n, rank, root);
	if (rank == root) { /* what is not significant elsewhere is wrong there */
		DO(form, Gather, gather, a, n, t, b, n, t, root, c);
		for (int i = 0; i < size; i++)
			verify("Gather", b + i * block, l, n, i, root);
	} else
		DO(form, Gather, gather, a, n, t, NULL, -5, MPI_DATATYPE_NULL, root, c);

	clean();
	put(rank == root ? b + rank * block : a, l, n, rank, root);
	if (rank == root) {
		DO(form, Gather, gather, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, b, n, t, root, c);
		for (int i = 0; i < size; i++)
			verify("Gather in place", b + i * block, l, n, i, root);
	} else
		DO(form, Gather, gather, a, n, t, NULL, 0, MPI_DATATYPE_NULL, root, c);

	clean();
	if (rank == root) {
		for (int i = 0; i < size; i++)
			put(a + i * block, l, n, root, i);
		DO(form, Scatter, scatter, a, n, t, b, n, t, root, c);
	} else
		DO(form, Scatter, scatter, NULL, -5, MPI_DATATYPE_NULL, b, n, t, root, c);
	verify("Scatter", b, l, n, root, rank);
	if (rank == root) {
		DO(form, Scatter, scatter, a, n, t, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, root, c);
		verify("Scatter in place", a + rank * block, l, n, root, rank);
	} else
		DO(form, Scatter, scatter, NULL, 0, MPI_DATATYPE_NULL, b, n, t, root, c);
	verify("Scatter again", b, l, n, root, rank);

	clean();
	put(a, l, n, rank, 0);
	DO(form, Allgather, allgather, a, n, t, b, n, t, c);
	for (int i = 0; i < size; i++)
		verify("Allgather", b + i * block, l, n, i, 0);
	clean();
	put(b + rank * block, l, n, rank, 0);
	DO(form, Allgather, allgather, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, b, n, t, c);
	for (int i = 0; i < size; i++)
		verify("Allgather in place", b + i * block, l, n, i, 0);

	clean();
	for (int i = 0; i < size; i++)
		put(a + i * block, l, n, rank, i);
	DO(form, Alltoall, alltoall, a, n, t, b, n, t, c);
	for (int i = 0; i < size; i++)
		verify("Alltoall", b + i * block, l, n, i, rank);
	DO(form, Alltoall, alltoall, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, a, n, t, c);
	for (int i = 0; i < size; i++)
		verify("Alltoall in place", a + i * block, l, n, i, rank);
}

/* Blocks of other lengths, in reverse order, with an item between two. */
static void unequal_blocks(int form, int l, int n, int root, MPI_Comm c)
{
	MPI_Datatype t = layout(l), types[MOST];
	int counts[MOST], displs[MOST], all[MOST], alldispls[MOST], bytes[MOST];

	for (int i = 0; i < size; i++) {
		counts[i] = i % 3 == 1 ? 0 : n - i % 2;
		displs[i] = (size - 1 - i) * (n + 1);
		all[i] = (rank + i) % 3 == 0 ? 0 : n / 2 + (rank + i) % 2; /* the same for both of a pair */
		alldispls[i] = i * (n + 1);
		bytes[i] = alldispls[i] * stride(l) * (int)sizeof(int);
		types[i] = t;
	}
	int mine = counts[rank];

	clean();
	put(a, l, mine, rank, root);
	if (rank == root)
		DO(form, Gatherv, gatherv, a, mine, t, b, counts, displs, t, root, c);
	else
		DO(form, Gatherv, gatherv, a, mine, t, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, c);
	for (int i = 0; i < size && rank == root; i++)
		verify("Gatherv", b + displs[i] * stride(l), l, counts[i], i, root);
	if (rank == root) { /* the items between are as they were */
		for (int i = 0; i < size; i++)
			CHECK(b[(displs[i] + n) * stride(l)] == -1, "Gatherv wrote behind block %d", i);
		put(b + displs[rank] * stride(l), l, mine, rank, root);
		DO(form, Gatherv, gatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, displs, t, root, c);
		for (int i = 0; i < size; i++)
			verify("Gatherv in place", b + displs[i] * stride(l), l, counts[i], i, root);
	} else
		DO(form, Gatherv, gatherv, a, mine, t, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, c);

	clean();
	if (rank == root) {
		for (int i = 0; i < size; i++)
			put(a + displs[i] * stride(l), l, counts[i], root, i);
		DO(form, Scatterv, scatterv, a, counts, displs, t, b, mine, t, root, c);
	} else
		DO(form, Scatterv, scatterv, NULL, NULL, NULL, MPI_DATATYPE_NULL, b, mine, t, root, c);
	verify("Scatterv", b, l, mine, root, rank);
	if (rank == root)
		DO(form, Scatterv, scatterv, a, counts, displs, t, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, c);
	else
		DO(form, Scatterv, scatterv, NULL, NULL, NULL, MPI_DATATYPE_NULL, b, mine, t, root, c);
	verify("Scatterv again", b, l, mine, root, rank);

	clean();
	put(a, l, mine, rank, 0);
	DO(form, Allgatherv, allgatherv, a, mine, t, b, counts, displs, t, c);
	for (int i = 0; i < size; i++)
		verify("Allgatherv", b + displs[i] * stride(l), l, counts[i], i, 0);
	clean();
	put(b + displs[rank] * stride(l), l, mine, rank, 0);
	DO(form, Allgatherv, allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, displs, t, c);
	for (int i = 0; i < size; i++)
		verify("Allgatherv in place", b + displs[i] * stride(l), l, counts[i], i, 0);

	clean();
	for (int i = 0; i < size; i++)
		put(a + alldispls[i] * stride(l), l, all[i], rank, i);
	DO(form, Alltoallv, alltoallv, a, all, alldispls, t, b, all, alldispls, t, c);
	for (int i = 0; i < size; i++)
		verify("Alltoallv", b + alldispls[i] * stride(l), l, all[i], i, rank);
	fill(b, MOST * LONG * 3, -1);
	DO(form, Alltoallw, alltoallw, a, all, bytes, types, b, all, bytes, types, c);
	for (int i = 0; i < size; i++)
		verify("Alltoallw", b + alldispls[i] * stride(l), l, all[i], i, rank);
	memcpy(b, a, sizeof a);
	DO(form, Alltoallv, alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, a, all, alldispls, t, c);
	DO(form, Alltoallw, alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, b, all, bytes, types, c);
	for (int i = 0; i < size; i++) {
		verify("Alltoallv in place", a + alldispls[i] * stride(l), l, all[i], i, rank);
		verify("Alltoallw in place", b + alldispls[i] * stride(l), l, all[i], i, rank);
	}
}

/* Counts and displacements of type MPI_Count and MPI_Aint. */
static void large_counts(void)
{
	MPI_Count counts[MOST];
	MPI_Aint displs[MOST], bytes[MOST];
	MPI_Datatype types[MOST];
	for (int i = 0; i < size; i++) {
		counts[i] = 2;
		displs[i] = 2 * i;
		bytes[i] = 8 * i;
		types[i] = MPI_INT;
	}
	clean();
	for (int i = 0; i < size; i++)
		put(a + 2 * i, 0, 2, rank, i);
	MUST(MPI_Alltoallv_c(a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		verify("Alltoallv_c", b + 2 * i, 0, 2, i, rank);
	fill(b, 2 * size, -1);
	MUST(MPI_Alltoallw_c(a, counts, bytes, types, b, counts, bytes, types, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		verify("Alltoallw_c", b + 2 * i, 0, 2, i, rank);
	MUST(MPI_Allgatherv_c(a + 2 * rank, 2, MPI_INT, b, counts, displs, MPI_INT, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		verify("Allgatherv_c", b + 2 * i, 0, 2, i, i);
	MUST(MPI_Bcast_c(b, 4, MPI_INT, 0, MPI_COMM_WORLD));
}

/* Memory that is described by addresses, and displacements before the beginning. */
static void anywhere(void)
{
	int one = rank == 0 ? 17 : -1, two = rank == 0 ? 18 : -1, lens[2] = {1, 1};
	MPI_Aint at[2];
	MPI_Datatype both;
	MUST(MPI_Get_address(&one, &at[0]));
	MUST(MPI_Get_address(&two, &at[1]));
	MUST(MPI_Type_create_hindexed(2, lens, at, MPI_INT, &both));
	MUST(MPI_Type_commit(&both));
	MUST(MPI_Bcast(MPI_BOTTOM, 1, both, 0, MPI_COMM_WORLD));
	CHECK(one == 17 && two == 18, "at MPI_BOTTOM: %d, %d", one, two);
	MUST(MPI_Type_free(&both));

	clean();
	int counts[MOST], displs[MOST];
	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		displs[i] = -1 - i;
	}
	int mine = rank + 40;
	MUST(MPI_Allgatherv(&mine, 1, MPI_INT, b + MOST + 1, counts, displs, MPI_INT, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		CHECK(b[MOST - i] == i + 40, "before the beginning: %d from %d", b[MOST - i], i);

	/* Blocks that are sent and received interleave in one array. */
	clean();
	for (int i = 0; i < size; i++)
		a[2 * i] = value(rank, i, 0), displs[i] = 2 * i;
	int odd[MOST];
	for (int i = 0; i < size; i++)
		odd[i] = 2 * i + 1;
	MUST(MPI_Alltoallv(a, counts, displs, MPI_INT, a, counts, odd, MPI_INT, MPI_COMM_WORLD));
	for (int i = 0; i < size; i++)
		CHECK(a[2 * i] == value(rank, i, 0) && a[2 * i + 1] == value(i, rank, 0), "interleaved: %d, %d", a[2 * i], a[2 * i + 1]);
}

/* Items without data need no memory, wherever they are said to be. */
static void no_data(void)
{
	int counts[MOST], displs[MOST];
	MPI_Datatype nothing, types[MOST];
	MUST(MPI_Type_contiguous(0, MPI_INT, &nothing));
	MUST(MPI_Type_commit(&nothing));
	for (int i = 0; i < MOST; i++)
		counts[i] = 1 + i, displs[i] = 1000 * i, types[i] = nothing;
	MUST(MPI_Alltoallv(NULL, counts, displs, nothing, NULL, counts, displs, nothing, MPI_COMM_WORLD));
	MUST(MPI_Alltoallw(NULL, counts, displs, types, NULL, counts, displs, types, MPI_COMM_WORLD));
	MUST(MPI_Allgatherv(NULL, counts[rank], nothing, NULL, counts, displs, nothing, MPI_COMM_WORLD));
	MUST(MPI_Gatherv(NULL, counts[rank], nothing, NULL, counts, displs, nothing, 0, MPI_COMM_WORLD));
	MUST(MPI_Scatterv(NULL, counts, displs, nothing, NULL, counts[rank], nothing, 0, MPI_COMM_WORLD));
	MUST(MPI_Bcast(NULL, 5, nothing, 0, MPI_COMM_WORLD));
	MUST(MPI_Type_free(&nothing));
}

/* Between the blocks there may be no memory at all. */
static void hole(void)
{
	enum { PAGES = 1 << 16 };
	int counts[MOST] = {2, 2}, displs[MOST] = {0, 2 * PAGES / 16};
	char *m = mmap(NULL, 3 * PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED, "no memory");
	CHECK(!mprotect(m, PAGES, PROT_READ | PROT_WRITE) && !mprotect(m + 2 * PAGES, PAGES, PROT_READ | PROT_WRITE), "no memory");
	MPI_Datatype every, wide;
	MUST(MPI_Type_vector(2, 1, 2, MPI_INT, &every));
	MUST(MPI_Type_create_resized(every, 0, 16, &wide));
	MUST(MPI_Type_commit(&wide));
	int *low = (int *)m, *high = (int *)(m + 2 * PAGES), mine[8], n = rank < 2 ? 2 : 0;
	for (int i = 0; i < 8; i++)
		mine[i] = 10 * rank + i;
	MUST(MPI_Allgatherv(mine, n, wide, m, counts, displs, wide, MPI_COMM_WORLD));
	CHECK(low[0] == 0 && low[1] == 0 && low[2] == 2 && low[4] == 4 && low[6] == 6, "from 0: %d %d", low[0], low[2]);
	if (size > 1)
		CHECK(high[0] == 10 && high[1] == 0 && high[6] == 16, "from 1: %d %d", high[0], high[6]);
	memset(mine, 0, sizeof mine);
	MUST(MPI_Scatterv(m, counts, displs, wide, mine, n, wide, 0, MPI_COMM_WORLD));
	CHECK(n == 0 || (mine[0] == 10 * rank && mine[6] == 10 * rank + 6), "back: %d, %d", mine[0], mine[6]);
	MUST(MPI_Type_free(&every));
	MUST(MPI_Type_free(&wide));
	munmap(m, 3 * PAGES);
}

/* Nonblocking ones in progress at the same time, started in the same order, done in any. */
static void many(void)
{
	enum { N = 20 };
	MPI_Request requests[2 * N + 1];
	int in[N], out[N];
	for (int i = 0; i < N; i++) {
		in[i] = rank == i % size ? 1000 + i : -1;
		MUST(MPI_Ibcast(&in[i], 1, MPI_INT, i % size, MPI_COMM_WORLD, &requests[2 * i]));
		MUST(MPI_Iallreduce(&rank, &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2 * i + 1]));
	}
	MUST(MPI_Ibarrier(MPI_COMM_WORLD, &requests[2 * N]));
	MUST(MPI_Waitall(2 * N + 1, requests, MPI_STATUSES_IGNORE));
	for (int i = 0; i < N; i++)
		CHECK(in[i] == 1000 + i && out[i] == size * (size - 1) / 2, "%d: %d, %d", i, in[i], out[i]);
}

/* A persistent one is started again and again, with other data. */
static void again(void)
{
	MPI_Request requests[2];
	int v, w;
	MUST(MPI_Bcast_init(&v, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
	MUST(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
	for (w = 0; w < 5; w++) {
		v = rank == size - 1 ? 70 + w : -1;
		MUST(MPI_Startall(2, requests));
		MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
		CHECK(v == 70 + w, "started %d times: %d", w + 1, v);
	}
	MUST(MPI_Request_free(&requests[0]));
	MUST(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	MPI_Datatype gaps;
	MUST(MPI_Type_vector(2, 1, 2, MPI_INT, &gaps));
	MUST(MPI_Type_commit(&gaps));
	MUST(MPI_Type_create_resized(gaps, 0, 3 * sizeof(int), &pair));
	MUST(MPI_Type_commit(&pair));
	MUST(MPI_Type_free(&gaps));

	for (int form = 0; form < FORMS; form++)
		for (int l = 0; l < 2; l++) {
			static const int lengths[] = {0, 1, 5, LONG - 1};
			for (int i = 0; i < 4; i++) {
				equal_blocks(form, l, lengths[i], i % size, MPI_COMM_WORLD);
				if (lengths[i] > 0 && lengths[i] < LONG)
					unequal_blocks(form, l, lengths[i] < LONG - 1 ? lengths[i] : LONG / 2, (i + 1) % size, MPI_COMM_WORLD);
			}
		}
	large_counts();
	anywhere();
	hole();
	no_data();
	many();
	again();
	MUST(MPI_Type_free(&pair));
	end();
	return 0;
}
