// Collectives of all kinds at once: on each of several communicators a thread starts some, blocking, nonblocking and
// persistent, of random kinds, lengths, types with gaps and operators that do not commute, in place or not, and
// completes them in a random order, while messages go round as well. Each result is compared with the definition.
// Arguments: a seed, and how many rounds.
// cabi: ranks=1,4,7 transports=shm,sctp,tcp
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, MOST = 9, LONG = 700, LIVE = 6 };

/* A type of some ints that lie at offsets, in items that are extent ints apart. */
struct layout {
	MPI_Datatype type;
	int ints, at[2], extent;
};
static struct layout layouts[3]; /* one int; two with a gap; what chain works on */

static MPI_Op chain_op;

/* x -> a x + b, one after the other. */
static void chain(void *in, void *inout, int *n, MPI_Datatype *type)
{
	unsigned *x = in, *y = inout;
	(void)type;
	for (int i = 0; i < *n; i++, x += 4, y += 4) {
		y[3] = x[0] * y[3] + x[3];
		y[0] = x[0] * y[0];
	}
}

static unsigned mix(unsigned x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

static unsigned next(unsigned *state, unsigned below) { return mix((*state)++) % below; }

enum kind {
	BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_BLOCK,
	GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW, KINDS
};

/* One collective: its choices, which are the same on all ranks, and its buffers. */
struct call {
	enum kind kind;
	int form, n, root, inplace, rank, size;
	unsigned id;
	const struct layout *l;
	MPI_Comm comm;
	MPI_Op op;
	int counts[MOST], displs[MOST], bytes[MOST];
	MPI_Datatype types[MOST];
	unsigned *send, *recv;
	MPI_Request request;
	int starts; /* of a persistent one that are still to come */
};

/* int k of item i of what rank r has for rank to. */
static unsigned value(const struct call *c, int r, int to, int i, int k)
{
	return mix(c->id ^ mix((unsigned)(r * 1000003 + to * 10007 + i * 2 + k)));
}

static void put(const struct call *c, unsigned *p, int n, int r, int to)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < c->l->ints; k++)
			p[i * c->l->extent + c->l->at[k]] = value(c, r, to, i, k);
}

static void verify(const struct call *c, const unsigned *p, int n, int r, int to, const char *what)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < c->l->ints; k++) {
			unsigned got = p[i * c->l->extent + c->l->at[k]];
			CHECK(got == value(c, r, to, i, k), "%s of kind %d, form %d, id %x: rank %d of %d, item %d of %d from %d is %x",
				what, c->kind, c->form, c->id, c->rank, c->size, i, n, r, got);
		}
}

/* What the operands of ranks 0 to last combine to, items from on. */
static void verify_reduced(const struct call *c, const unsigned *p, int from, int n, int last)
{
	for (int i = 0; i < n; i++) {
		unsigned a = 0, b = 0;
		const unsigned *got = p + i * c->l->extent;
		for (int r = 0; r <= last; r++) {
			unsigned x = value(c, r, 0, from + i, 0);
			if (c->l->ints == 1) {
				a += x;
				continue;
			}
			unsigned y = value(c, r, 0, from + i, 1);
			b = r == 0 ? y : a * y + b;
			a = r == 0 ? x : a * x;
		}
		CHECK(got[0] == a && (c->l->ints == 1 || got[3] == b), "reduction %d, form %d, id %x: rank %d of %d, item %d is %x, want %x",
			c->kind, c->form, c->id, c->rank, c->size, from + i, got[0], a);
	}
}

/* No int but those of the blocks was touched: there are n items at each of the places. */
static void verify_gaps(const struct call *c, const unsigned *p, int items)
{
	for (int i = 0; i < items; i++)
		for (int k = 0; k < c->l->extent; k++) {
			int gap = k != c->l->at[0] && (c->l->ints == 1 || k != c->l->at[1]);
			CHECK(!gap || p[i * c->l->extent + k] == 0xeeeeeeee, "kind %d, form %d, id %x: a gap of item %d is %x", c->kind, c->form,
				c->id, i, p[i * c->l->extent + k]);
		}
}

static int whole(const struct call *c) { return MOST * (c->n + 1) * c->l->extent; }

static int reduces(enum kind k) { return k >= REDUCE && k <= REDUCE_BLOCK; }

/* Chooses a call, by s, which is the same on all ranks. */
static void choose(struct call *c, unsigned *s, MPI_Comm comm)
{
	memset(c, 0, sizeof *c);
	c->comm = comm;
	MUST(MPI_Comm_rank(comm, &c->rank));
	MUST(MPI_Comm_size(comm, &c->size));
	c->kind = next(s, KINDS);
	c->form = next(s, 4); /* blocking, nonblocking twice, persistent */
	c->n = next(s, 4) ? (int)next(s, 6) : (int)next(s, LONG);
	c->root = next(s, c->size);
	c->inplace = next(s, 3) == 0;
	c->id = next(s, -1u);
	c->l = &layouts[next(s, 2)];
	c->op = MPI_SUM;
	if (reduces(c->kind) && c->l != layouts)
		c->l = &layouts[2], c->op = chain_op;
	for (int i = 0; i < c->size; i++) {
		c->counts[i] = c->kind == REDUCE_SCATTER || c->kind >= GATHERV ? (c->n + i) % (c->n + 1) : c->n;
		c->displs[i] = (c->size - 1 - i) * (c->n + 1);
		c->bytes[i] = c->displs[i] * c->l->extent * 4;
		c->types[i] = c->l->type;
	}
	c->request = MPI_REQUEST_NULL;
	c->send = malloc(4 * whole(c) + 4);
	c->recv = malloc(4 * whole(c) + 4);
	CHECK(c->send && c->recv, "no memory");
}

static unsigned *at(const struct call *c, unsigned *p, int i) { return p + c->displs[i] * c->l->extent; }

/* Fills the buffers. */
static void fill(struct call *c)
{
	int me = c->rank, block = c->n * c->l->extent, n = c->n;
	unsigned *s = c->send, *r = c->recv;
	memset(s, 0xee, 4 * whole(c));
	memset(r, 0xee, 4 * whole(c));
	switch (c->kind) {
	case BCAST:
		if (me == c->root)
			put(c, r, n, me, 0);
		break;
	case GATHER:
		put(c, c->inplace && me == c->root ? r + me * block : s, n, me, 0);
		break;
	case ALLGATHER:
		put(c, c->inplace ? r + me * block : s, n, me, 0);
		break;
	case SCATTER:
	case ALLTOALL:
		for (int i = 0; i < c->size; i++)
			put(c, (c->kind == ALLTOALL && c->inplace ? r : s) + i * block, n, me, i);
		break;
	case GATHERV:
		put(c, c->inplace && me == c->root ? at(c, r, me) : s, c->counts[me], me, 0);
		break;
	case ALLGATHERV:
		put(c, c->inplace ? at(c, r, me) : s, c->counts[me], me, 0);
		break;
	case SCATTERV:
		for (int i = 0; i < c->size; i++)
			put(c, at(c, s, i), c->counts[i], me, i);
		break;
	case ALLTOALLV:
	case ALLTOALLW:
		for (int i = 0; i < c->size; i++) { /* as many to i as i sends here: the lesser rank says */
			c->counts[i] = (n + i + me) % (n + 1);
			put(c, at(c, c->inplace ? r : s, i), c->counts[i], me, i);
		}
		break;
	case REDUCE:
		put(c, c->inplace && me == c->root ? r : s, n, me, 0);
		break;
	case REDUCE_SCATTER:
	case REDUCE_BLOCK: {
		int all = 0;
		for (int i = 0; i < c->size; i++)
			all += c->counts[i];
		put(c, c->inplace ? r : s, all, me, 0);
		break;
	}
	case ALLREDUCE:
	case SCAN:
	case EXSCAN:
		put(c, c->inplace ? r : s, n, me, 0);
		break;
	default:
		break;
	}
}

#define DO(name, lower, ...) \
	(c->form == 0 ? MPI_##name(__VA_ARGS__) \
	 : c->form == 3 ? MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &c->request) \
			: MPI_I##lower(__VA_ARGS__, &c->request))

/* Performs, starts or prepares the call. */
static void begin(struct call *c)
{
	MPI_Datatype t = c->l->type;
	int root = c->root, n = c->n, here = c->inplace && c->rank == root, k = c->counts[c->rank];
	void *s = c->inplace ? MPI_IN_PLACE : c->send, *r = c->recv;
	switch (c->kind) {
	case BARRIER: MUST(DO(Barrier, barrier, c->comm)); break;
	case BCAST: MUST(DO(Bcast, bcast, r, n, t, root, c->comm)); break;
	case GATHER: MUST(DO(Gather, gather, here ? s : c->send, n, t, r, n, t, root, c->comm)); break;
	case SCATTER: MUST(DO(Scatter, scatter, c->send, n, t, here ? s : r, n, t, root, c->comm)); break;
	case ALLGATHER: MUST(DO(Allgather, allgather, s, n, t, r, n, t, c->comm)); break;
	case ALLTOALL: MUST(DO(Alltoall, alltoall, s, n, t, r, n, t, c->comm)); break;
	case REDUCE: MUST(DO(Reduce, reduce, here ? s : c->send, r, n, t, c->op, root, c->comm)); break;
	case ALLREDUCE: MUST(DO(Allreduce, allreduce, s, r, n, t, c->op, c->comm)); break;
	case SCAN: MUST(DO(Scan, scan, s, r, n, t, c->op, c->comm)); break;
	case EXSCAN: MUST(DO(Exscan, exscan, s, r, n, t, c->op, c->comm)); break;
	case REDUCE_SCATTER: MUST(DO(Reduce_scatter, reduce_scatter, s, r, c->counts, t, c->op, c->comm)); break;
	case REDUCE_BLOCK: MUST(DO(Reduce_scatter_block, reduce_scatter_block, s, r, n, t, c->op, c->comm)); break;
	case GATHERV: MUST(DO(Gatherv, gatherv, here ? s : c->send, k, t, r, c->counts, c->displs, t, root, c->comm)); break;
	case SCATTERV: MUST(DO(Scatterv, scatterv, c->send, c->counts, c->displs, t, here ? s : r, k, t, root, c->comm)); break;
	case ALLGATHERV: MUST(DO(Allgatherv, allgatherv, s, k, t, r, c->counts, c->displs, t, c->comm)); break;
	case ALLTOALLV:
		MUST(DO(Alltoallv, alltoallv, s, c->counts, c->displs, t, r, c->counts, c->displs, t, c->comm));
		break;
	default:
		MUST(DO(Alltoallw, alltoallw, s, c->counts, c->bytes, c->types, r, c->counts, c->bytes, c->types, c->comm));
	}
	if (c->form == 3)
		MUST(MPI_Start(&c->request));
}

/* Compares what was received with what the collective is to give. */
static void check(const struct call *c)
{
	int me = c->rank, block = c->n * c->l->extent, here = me == c->root, n = c->n, from = 0;
	unsigned *r = c->recv;
	switch (c->kind) {
	case BCAST: verify(c, r, n, c->root, 0, "block"); break;
	case GATHER:
	case ALLGATHER:
		for (int i = 0; i < c->size && (here || c->kind == ALLGATHER); i++)
			verify(c, r + i * block, n, i, 0, "block");
		break;
	case SCATTER: verify(c, c->inplace && here ? c->send + me * block : r, n, c->root, me, "block"); break;
	case ALLTOALL:
		for (int i = 0; i < c->size; i++)
			verify(c, r + i * block, n, i, me, "block");
		break;
	case REDUCE:
		if (here)
			verify_reduced(c, r, 0, n, c->size - 1);
		break;
	case ALLREDUCE: verify_reduced(c, r, 0, n, c->size - 1); break;
	case SCAN: verify_reduced(c, r, 0, n, me); break;
	case EXSCAN:
		if (me > 0)
			verify_reduced(c, r, 0, n, me - 1);
		break;
	case REDUCE_SCATTER:
	case REDUCE_BLOCK:
		for (int i = 0; i < me; i++)
			from += c->counts[i];
		verify_reduced(c, r, from, c->counts[me], c->size - 1);
		break;
	case GATHERV:
	case ALLGATHERV:
		for (int i = 0; i < c->size && (here || c->kind == ALLGATHERV); i++)
			verify(c, at(c, r, i), c->counts[i], i, 0, "block");
		break;
	case SCATTERV: verify(c, c->inplace && here ? at(c, c->send, me) : r, c->counts[me], c->root, me, "block"); break;
	case ALLTOALLV:
	case ALLTOALLW:
		for (int i = 0; i < c->size; i++)
			verify(c, at(c, r, i), c->counts[i], i, me, "block");
		break;
	default:
		break;
	}
	verify_gaps(c, r, whole(c) / c->l->extent);
}

/* A message goes round, so that ranks wait for others within. */
static void round_trip(MPI_Comm c, int v)
{
	int rank, size, got = -1;
	MUST(MPI_Comm_rank(c, &rank));
	MUST(MPI_Comm_size(c, &size));
	MUST(MPI_Sendrecv(&v, 1, MPI_INT, (rank + 1) % size, 3, &got, 1, MPI_INT, (rank + size - 1) % size, 3, c, MPI_STATUS_IGNORE));
	CHECK(got == v, "message %d, want %d", got, v);
}

/* Completes the requests: all at once, some as they come, or in turn by tests. */
static void complete(struct call *calls, int n, int how)
{
	MPI_Request r[LIVE];
	int left = n, done, which[LIVE];
	for (int i = 0; i < n; i++)
		r[i] = calls[i].request;
	switch (how) {
	case 0:
		MUST(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
		break;
	case 1:
		do
			MUST(MPI_Waitsome(n, r, &done, which, MPI_STATUSES_IGNORE));
		while (done != MPI_UNDEFINED);
		break;
	case 2:
		for (int i = n - 1; i >= 0; i--)
			for (done = 0; !done;)
				MUST(MPI_Test(&r[i], &done, MPI_STATUS_IGNORE));
		break;
	default:
		for (int i; left > 0; left--) {
			MUST(MPI_Waitany(n, r, &i, MPI_STATUS_IGNORE));
			if (i == MPI_UNDEFINED)
				break;
		}
	}
	for (int i = 0; i < n; i++)
		calls[i].request = r[i];
}

static unsigned seed;
static int rounds;
static MPI_Comm comms[THREADS];

static void *run(void *arg)
{
	int id = (int)(size_t)arg, rank;
	MPI_Comm comm = comms[id];
	MUST(MPI_Comm_rank(comm, &rank));
	unsigned s = mix(seed + (unsigned)id), own = mix(s + 7 + (unsigned)rank);
	for (int round = 0; round < rounds; round++) {
		struct call calls[LIVE];
		int n = 1 + (int)next(&s, LIVE), turns = next(&s, 4) == 0 ? 2 : 1;
		for (int i = 0; i < n; i++) {
			choose(&calls[i], &s, comm);
			fill(&calls[i]);
			begin(&calls[i]);
			if (next(&s, 6) == 0)
				round_trip(comm, round * LIVE + i);
		}
		complete(calls, n, (int)next(&own, 4));
		for (int i = 0; i < n; i++)
			check(&calls[i]);
		for (; turns > 1; turns--) { /* what is persistent once more */
			for (int i = 0; i < n; i++)
				if (calls[i].form == 3) {
					fill(&calls[i]);
					MUST(MPI_Start(&calls[i].request));
				}
			complete(calls, n, (int)next(&own, 4));
			for (int i = 0; i < n; i++)
				check(&calls[i]);
		}
		for (int i = 0; i < n; i++) {
			if (calls[i].request != MPI_REQUEST_NULL)
				MUST(MPI_Request_free(&calls[i].request));
			free(calls[i].send);
			free(calls[i].recv);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, rank, size, two[2] = {1, 1}, at[2] = {0, 2}, far[2] = {0, 3};
	pthread_t threads[THREADS];
	MPI_Datatype t;
	MUST(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	CHECK(provided == MPI_THREAD_MULTIPLE, "threads: %d", provided);
	seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	rounds = argc > 2 ? atoi(argv[2]) : 8;
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	layouts[0] = (struct layout){MPI_UNSIGNED, 1, {0, 0}, 1};
	MUST(MPI_Type_indexed(2, two, at, MPI_UNSIGNED, &t));
	MUST(MPI_Type_commit(&t));
	layouts[1] = (struct layout){t, 2, {0, 2}, 3};
	MUST(MPI_Type_indexed(2, two, far, MPI_UNSIGNED, &t));
	MUST(MPI_Type_commit(&t));
	layouts[2] = (struct layout){t, 2, {0, 3}, 4};
	MUST(MPI_Op_create(chain, 0, &chain_op));
	for (int i = 0; i < THREADS; i++) /* ranks in order, and reversed */
		MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? size - rank : rank, &comms[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, run, (void *)(size_t)i) == 0, "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		MUST(MPI_Comm_free(&comms[i]));
	MUST(MPI_Op_free(&chain_op));
	MUST(MPI_Type_free(&layouts[1].type));
	MUST(MPI_Type_free(&layouts[2].type));
	done();
	MUST(MPI_Finalize());
}
