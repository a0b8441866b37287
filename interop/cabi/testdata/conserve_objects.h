/* Communicators that come and go, collectives on several of them at once, attributes, requests of the program. */
#ifndef CONSERVE_OBJECTS_H
#define CONSERVE_OBJECTS_H

#include "conserve.h"

/* The functions of the program call MPI themselves. */

static int on_copy(MPI_Comm old, int key, void *extra, void *in, void *out, int *flag)
{
	int size;
	(void)key, (void)extra;
	MUST(MPI_Comm_size(old, &size));
	*(void **)out = in;
	*flag = 1;
	books.copies++;
	return MPI_SUCCESS;
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
	int result;
	(void)key, (void)value, (void)extra;
	MUST(MPI_Comm_compare(comm, comm, &result));
	books.deletes++;
	return MPI_SUCCESS;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
	int flag, class;
	MUST(MPI_Error_class(*code, &class));
	MUST(MPI_Iprobe(MPI_PROC_NULL, 0, *comm, &flag, MPI_STATUS_IGNORE));
	books.errors_handled++;
}

/* Products of 2x2 matrices with elements below 2^16: the order matters. */
static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int size;
	MUST(MPI_Type_size(*type, &size));
	CHECK(size == 16, "an operator for items of %d bytes", size);
	for (uint32_t *a = in, *b = inout; *n > 0; a += 4, b += 4, --*n) {
		uint32_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
		for (int i = 0; i < 4; i++)
			b[i] = c[i] & 0xffff;
	}
}

/* Several collectives at once on a communicator with no other use, in its ranks. */
static void collectives(struct thread *t, MPI_Comm comm)
{
	int rank, size, n = 1 + together(t, together(t, 3) ? 50 : 4000), i, j, root, k = 0;
	MUST(MPI_Comm_rank(comm, &rank));
	MUST(MPI_Comm_size(comm, &size));
	int *mine = malloc(n * sizeof *mine), *sum = malloc(n * sizeof *sum), *b = malloc(n * sizeof *b), *all = malloc(n * size * sizeof *all);
	int *out = malloc(n * size * sizeof *out), *in = malloc(n * size * sizeof *in), scan = rank + 1, before = 0, one = 1, count = 0;
	uint32_t m[4] = {1, rank + 1, rank, 2 * rank + 1}, product[4], want[4] = {1, 0, 0, 1};
	MPI_Datatype matrix;
	MPI_Op op;
	MPI_Request r[7];

	root = together(t, size);
	MUST(MPI_Type_contiguous(4, MPI_UINT32_T, &matrix));
	MUST(MPI_Type_commit(&matrix));
	MUST(MPI_Op_create(multiply, 0, &op));
	for (i = 0; i < n; i++) {
		mine[i] = rank * 7 + i;
		b[i] = rank == root ? i * 3 + root : -1;
	}
	for (i = 0; i < n * size; i++)
		out[i] = rank * 1000000 + i;
	MUST(MPI_Iallreduce(mine, sum, n, MPI_INT, MPI_SUM, comm, &r[k++]));
	MUST(MPI_Ibcast(b, n, MPI_INT, root, comm, &r[k++]));
	MUST(MPI_Ialltoall(out, n, MPI_INT, in, n, MPI_INT, comm, &r[k++]));
	MUST(MPI_Iallgather(mine, n, MPI_INT, all, n, MPI_INT, comm, &r[k++]));
	MUST(MPI_Iexscan(&scan, &before, 1, MPI_INT, MPI_SUM, comm, &r[k++]));
	MUST(MPI_Iallreduce(m, product, 1, matrix, op, comm, &r[k++]));
	MUST(MPI_Type_free(&matrix)); /* what is under way keeps them */
	MUST(MPI_Op_free(&op));
	MUST(MPI_Ibarrier(comm, &r[k++]));
	books.started += k;
	MUST(MPI_Allreduce(&one, &count, 1, MPI_INT, MPI_SUM, comm)); /* between them */
	CHECK(count == size, "%d ranks, not %d", count, size);
	wait_all(t, k, r);
	for (i = 0; i < n; i++) {
		CHECK(sum[i] == 7 * size * (size - 1) / 2 + size * i, "sum %d is %d", i, sum[i]);
		CHECK(b[i] == i * 3 + root, "broadcast %d of %d is %d", i, root, b[i]);
		for (j = 0; j < size; j++) {
			CHECK(in[j * n + i] == j * 1000000 + rank * n + i, "%d of rank %d is %d", i, j, in[j * n + i]);
			CHECK(all[j * n + i] == j * 7 + i, "gathered %d of rank %d is %d", i, j, all[j * n + i]);
		}
	}
	CHECK(rank == 0 || before == rank * (rank + 1) / 2, "the sum of the ranks before %d is %d", rank, before);
	for (i = 0; i < size; i++) {
		uint32_t f[4] = {1, i + 1, i, 2 * i + 1}, p[4] = {want[0] * f[0] + want[1] * f[2], want[0] * f[1] + want[1] * f[3],
		                                                want[2] * f[0] + want[3] * f[2], want[2] * f[1] + want[3] * f[3]};
		for (j = 0; j < 4; j++)
			want[j] = p[j] & 0xffff;
	}
	CHECK(!memcmp(product, want, sizeof want), "the product is %u %u %u %u, not %u %u %u %u", product[0], product[1], product[2],
	      product[3], want[0], want[1], want[2], want[3]);
	free(mine), free(sum), free(b), free(all), free(out), free(in);
}

/* A persistent collective that is started three times. */
static void repeat(struct thread *t)
{
	int x[100] = {0}, sum[100], i, turn;
	MPI_Request r;

	MUST(MPI_Allreduce_init(x, sum, 100, MPI_INT, MPI_SUM, t->comm, MPI_INFO_NULL, &r));
	for (turn = 0; turn < 3; turn++) {
		for (i = 0; i < 100; i++)
			x[i] = t->rank + turn * i;
		start_request(&r);
		wait_request(&r, MPI_STATUS_IGNORE);
		for (i = 0; i < 100; i++)
			CHECK(sum[i] == t->size * (t->size - 1) / 2 + t->size * turn * i, "turn %d: sum %d is %d", turn, i, sum[i]);
	}
	MUST(MPI_Request_free(&r));
}

/* A communicator made in one of all ways, used, and freed while a message is under way. */
static void communicators(struct thread *t)
{
	MPI_Comm c = MPI_COMM_NULL, half, inter;
	MPI_Group all, some;
	MPI_Request r[2];
	int how = together(t, 8), early = together(t, 2), rank, size, a[64], b[64], i, x;
	uint64_t common = t->common; /* the ranks of different communicators draw different numbers */

	switch (how) {
	case 0:
		MUST(MPI_Comm_dup(t->comm, &c));
		break;
	case 1:
		MUST(MPI_Comm_split(t->comm, t->rank % 2, -t->rank, &c));
		break;
	case 2: /* without the last rank */
		MUST(MPI_Comm_group(t->comm, &all));
		MUST(MPI_Group_range_incl(all, 1, (int[][3]){{0, t->size > 1 ? t->size - 2 : 0, 1}}, &some));
		MUST(MPI_Comm_create(t->comm, some, &c));
		MUST(MPI_Group_free(&all));
		MUST(MPI_Group_free(&some));
		break;
	case 3: /* only the ranks in the group call */
		MUST(MPI_Comm_group(t->comm, &all));
		MUST(MPI_Group_incl(all, 1, (int[]){t->rank}, &some));
		MUST(MPI_Comm_create_group(t->comm, some, t->id, &c));
		MUST(MPI_Group_free(&all));
		MUST(MPI_Group_free(&some));
		break;
	case 4:
		MUST(MPI_Cart_create(t->comm, 1, &t->size, (int[]){1}, 0, &c));
		break;
	case 5:
		MUST(MPI_Dist_graph_create_adjacent(t->comm, 1, (int[]){(t->rank + 1) % t->size}, MPI_UNWEIGHTED, 1,
			(int[]){(t->rank + t->size - 1) % t->size}, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c));
		MUST(MPI_Neighbor_allgather(&t->rank, 1, MPI_INT, &x, 1, MPI_INT, c));
		CHECK(x == (t->rank + 1) % t->size, "the neighbour is %d", x);
		break;
	case 6:
		MUST(MPI_Comm_idup(t->comm, &c, &r[0]));
		books.started++;
		wait_request(&r[0], MPI_STATUS_IGNORE);
		break;
	default: /* two halves, an intercommunicator, and all ranks again */
		if (t->size == 1) {
			MUST(MPI_Comm_dup(t->comm, &c));
			break;
		}
		MUST(MPI_Comm_split(t->comm, t->rank % 2, t->rank, &half));
		MUST(MPI_Intercomm_create(half, 0, t->comm, t->rank % 2 ? 0 : 1, t->id, &inter));
		MUST(MPI_Intercomm_merge(inter, t->rank % 2, &c));
		MUST(MPI_Comm_free(&inter));
		MUST(MPI_Comm_free(&half));
	}
	if (c == MPI_COMM_NULL) {
		CHECK(how == 2 && t->size > 1 && t->rank == t->size - 1, "no communicator made in way %d", how);
		t->common = mix(common);
		return;
	}
	MUST(MPI_Comm_rank(c, &rank));
	MUST(MPI_Comm_size(c, &size));
	collectives(t, c);
	t->common = mix(common);
	for (i = 0; i < 64; i++)
		a[i] = rank * 100 + i;
	MUST(MPI_Irecv(b, 64, MPI_INT, (rank + 1) % size, 7, c, &r[0]));
	MUST(MPI_Isend(a, 64, MPI_INT, (rank + size - 1) % size, 7, c, &r[1]));
	books.started += 2;
	if (early) {
		MUST(MPI_Comm_free(&c));
		wait_all(t, 2, r);
	} else {
		wait_all(t, 2, r);
		MUST(MPI_Comm_disconnect(&c));
	}
	for (i = 0; i < 64; i++)
		CHECK(b[i] == (rank + 1) % size * 100 + i, "%d on a communicator that is freed", b[i]);
}

/* Attributes are copied and deleted as often as communicators come and go. */
static void attributes(struct thread *t)
{
	MPI_Comm c;
	void *value;
	int flag;

	MUST(MPI_Comm_set_attr(t->comm, t->key, &t->key_value));
	books.values_set++;
	MUST(MPI_Comm_dup(t->comm, &c));
	MUST(MPI_Comm_get_attr(c, t->key, &value, &flag));
	CHECK(flag && value == &t->key_value, "the attribute was not copied");
	MUST(MPI_Comm_delete_attr(t->comm, t->key));
	MUST(MPI_Comm_free(&c));
}

static int query(void *extra, MPI_Status *s)
{
	(void)extra;
	MUST(MPI_Status_set_elements(s, MPI_INT, 3));
	MUST(MPI_Status_set_cancelled(s, 0));
	return MPI_SUCCESS;
}

static int released(void *extra)
{
	++*(int *)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

/* Objects without communication: a request of the program, an info, an error handler, groups. */
static void locals(struct thread *t)
{
	MPI_Request r;
	MPI_Status s;
	MPI_Info info, other;
	MPI_Errhandler h;
	MPI_Group all, none;
	int frees = 0, n;

	MUST(MPI_Grequest_start(query, released, cancel, &frees, &r));
	books.started++;
	MUST(MPI_Grequest_complete(r));
	wait_request(&r, &s);
	MUST(MPI_Get_count(&s, MPI_INT, &n));
	CHECK(frees == 1 && n == 3, "freed %d times, %d ints", frees, n);
	MUST(MPI_Info_create(&info));
	MUST(MPI_Info_set(info, "key", "value"));
	MUST(MPI_Info_dup(info, &other));
	MUST(MPI_Info_free(&info));
	MUST(MPI_Info_get_nkeys(other, &n));
	CHECK(n == 1, "%d keys", n);
	MUST(MPI_Info_free(&other));
	MUST(MPI_Comm_get_errhandler(t->comm, &h));
	MUST(MPI_Errhandler_free(&h));
	MUST(MPI_Comm_group(t->comm, &all));
	MUST(MPI_Group_difference(all, all, &none));
	CHECK(none == MPI_GROUP_EMPTY, "a group that is not empty");
	MUST(MPI_Group_free(&all));
}

#endif
