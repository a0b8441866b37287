// Collectives on intercommunicators: of the even and the odd ranks, in all forms.
// cabi: ranks=2,3,4,8 transports=shm,sctp
#include "coll.h"

enum { N = 5 };

static MPI_Comm inter;
static int mine, locals, remotes; /* rank and size of the group, size of the other */

static int sum(int from, int n) /* of the world's ranks of a group */
{
	int total = 0;
	for (int i = 0; i < n; i++)
		total += 2 * i + from;
	return total;
}

/* The root is rank r of the group of the even ranks, or of the odd ones. */
static int root_of(int odd, int r)
{
	if (rank % 2 != odd)
		return r;
	return mine == r ? MPI_ROOT : MPI_PROC_NULL;
}

static void rooted(int form, int odd, int r)
{
	int root = root_of(odd, r), world = 2 * r + odd, a[8 * N], b[8 * N];
	int here = rank % 2 == odd; /* in the group of the root */
	int counts[8], displs[8];

	fill(a, 8 * N, root == MPI_ROOT ? 500 + world : -1);
	if (root == MPI_PROC_NULL) /* nothing is significant */
		DO(form, Bcast, bcast, NULL, -1, MPI_DATATYPE_NULL, root, inter);
	else
		DO(form, Bcast, bcast, a, N, MPI_INT, root, inter);
	if (!here)
		CHECK(a[0] == 500 + world && a[N - 1] == 500 + world, "Bcast: %d", a[0]);

	fill(a, N, rank);
	fill(b, 8 * N, -1);
	if (here)
		DO(form, Gather, gather, NULL, 0, MPI_DATATYPE_NULL, b, N, MPI_INT, root, inter);
	else
		DO(form, Gather, gather, a, N, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, inter);
	for (int i = 0; i < remotes && root == MPI_ROOT; i++)
		CHECK(b[i * N] == 2 * i + !odd && b[i * N + N - 1] == b[i * N], "Gather: %d from %d", b[i * N], i);

	for (int i = 0; i < 8; i++)
		counts[i] = i % 3, displs[i] = (7 - i) * N;
	fill(b, 8 * N, -1);
	if (here)
		DO(form, Gatherv, gatherv, NULL, 0, MPI_DATATYPE_NULL, b, counts, displs, MPI_INT, root, inter);
	else
		DO(form, Gatherv, gatherv, a, mine % 3, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, inter);
	for (int i = 0; i < remotes && root == MPI_ROOT; i++)
		for (int k = 0; k < N; k++)
			CHECK(b[displs[i] + k] == (k < i % 3 ? 2 * i + !odd : -1), "Gatherv: %d from %d", b[displs[i] + k], i);

	for (int i = 0; i < 8 * N; i++)
		a[i] = 100 * world + i;
	fill(b, 8 * N, -1);
	if (here)
		DO(form, Scatter, scatter, a, N, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, inter);
	else {
		DO(form, Scatter, scatter, NULL, 0, MPI_DATATYPE_NULL, b, N, MPI_INT, root, inter);
		CHECK(b[0] == 100 * world + mine * N && b[N - 1] == b[0] + N - 1, "Scatter: %d", b[0]);
	}
	fill(b, 8 * N, -1);
	if (here)
		DO(form, Scatterv, scatterv, a, counts, displs, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, inter);
	else {
		DO(form, Scatterv, scatterv, NULL, NULL, NULL, MPI_DATATYPE_NULL, b, mine % 3, MPI_INT, root, inter);
		CHECK(mine % 3 == 0 || b[0] == 100 * world + displs[mine], "Scatterv: %d", b[0]);
	}

	fill(a, N, rank);
	fill(b, N, -1);
	if (here)
		DO(form, Reduce, reduce, NULL, b, N, MPI_INT, MPI_SUM, root, inter);
	else
		DO(form, Reduce, reduce, a, NULL, N, MPI_INT, MPI_SUM, root, inter);
	if (root == MPI_ROOT)
		CHECK(b[0] == sum(!odd, remotes) && b[N - 1] == b[0], "Reduce: %d", b[0]);
}

static void unrooted(int form)
{
	int a[8 * N], b[8 * N], other = !(rank % 2);
	int counts[8], displs[8], bytes[8];
	MPI_Datatype types[8];

	DO(form, Barrier, barrier, inter);

	fill(a, 8 * N, rank);
	fill(b, 8 * N, -1);
	DO(form, Allgather, allgather, a, N, MPI_INT, b, N, MPI_INT, inter);
	for (int i = 0; i < remotes; i++)
		CHECK(b[i * N] == 2 * i + other && b[i * N + N - 1] == b[i * N], "Allgather: %d from %d", b[i * N], i);

	for (int i = 0; i < 8; i++)
		counts[i] = 1 + i % 2, displs[i] = (7 - i) * N, bytes[i] = 4 * displs[i], types[i] = MPI_INT;
	fill(b, 8 * N, -1);
	DO(form, Allgatherv, allgatherv, a, 1 + mine % 2, MPI_INT, b, counts, displs, MPI_INT, inter);
	for (int i = 0; i < remotes; i++)
		for (int k = 0; k < N; k++)
			CHECK(b[displs[i] + k] == (k <= i % 2 ? 2 * i + other : -1), "Allgatherv: %d from %d", b[displs[i] + k], i);

	for (int i = 0; i < 8 * N; i++)
		a[i] = 100 * rank + i;
	DO(form, Alltoall, alltoall, a, N, MPI_INT, b, N, MPI_INT, inter);
	for (int i = 0; i < remotes; i++)
		CHECK(b[i * N] == 100 * (2 * i + other) + mine * N, "Alltoall: %d from %d", b[i * N], i);

	for (int i = 0; i < 8; i++)
		counts[i] = (mine + i) % 3;
	fill(b, 8 * N, -1);
	DO(form, Alltoallv, alltoallv, a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, inter);
	for (int i = 0; i < remotes; i++)
		CHECK(b[displs[i]] == (counts[i] ? 100 * (2 * i + other) + displs[mine] : -1), "Alltoallv: %d from %d", b[displs[i]], i);
	fill(b, 8 * N, -1);
	DO(form, Alltoallw, alltoallw, a, counts, bytes, types, b, counts, bytes, types, inter);
	for (int i = 0; i < remotes; i++)
		CHECK(b[displs[i]] == (counts[i] ? 100 * (2 * i + other) + displs[mine] : -1), "Alltoallw: %d from %d", b[displs[i]], i);

	fill(a, 8 * N, rank);
	DO(form, Allreduce, allreduce, a, b, N, MPI_INT, MPI_SUM, inter);
	CHECK(b[0] == sum(other, remotes) && b[N - 1] == b[0], "Allreduce: %d", b[0]);

	/* Both groups reduce as many elements. */
	int big[64 * 8], part[64 * 8], all = 8 * locals * remotes;
	for (int i = 0; i < all; i++)
		big[i] = rank + i;
	for (int i = 0; i < locals; i++)
		counts[i] = 8 * remotes;
	DO(form, Reduce_scatter, reduce_scatter, big, part, counts, MPI_INT, MPI_SUM, inter);
	CHECK(part[0] == sum(other, remotes) + remotes * mine * 8 * remotes, "Reduce_scatter: %d", part[0]);
	DO(form, Reduce_scatter_block, reduce_scatter_block, big, part, 8 * remotes, MPI_INT, MPI_SUM, inter);
	CHECK(part[1] == sum(other, remotes) + remotes * (mine * 8 * remotes + 1), "Reduce_scatter_block: %d", part[1]);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	MPI_Comm half;
	MUST(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
	MUST(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 7, &inter));
	MUST(MPI_Comm_rank(inter, &mine));
	MUST(MPI_Comm_size(inter, &locals));
	MUST(MPI_Comm_remote_size(inter, &remotes));
	for (int form = 0; form < FORMS; form++) {
		for (int odd = 0; odd < 2; odd++) {
			rooted(form, odd, 0);
			rooted(form, odd, (odd ? size / 2 : (size + 1) / 2) - 1);
		}
		unrooted(form);
	}

	/* What intercommunicators have not. */
	int x = 0, y;
	MUST(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_COMM, MPI_Scan(&x, &y, 1, MPI_INT, MPI_SUM, inter));
	FAILS(MPI_ERR_COMM, MPI_Exscan(&x, &y, 1, MPI_INT, MPI_SUM, inter));
	FAILS(MPI_ERR_BUFFER, MPI_Allreduce(MPI_IN_PLACE, &y, 1, MPI_INT, MPI_SUM, inter));
	FAILS(MPI_ERR_BUFFER, MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, &y, 1, MPI_INT, inter));
	FAILS(MPI_ERR_ROOT, MPI_Bcast(&x, 1, MPI_INT, 99, inter));
	MUST(MPI_Comm_free(&inter));
	MUST(MPI_Comm_free(&half));
	end();
	return 0;
}
