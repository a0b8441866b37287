/* Messages of conserve.c: of all modes, with and without gaps, found by receives, wildcards and probes. */
#ifndef CONSERVE_MESSAGES_H
#define CONSERVE_MESSAGES_H

#include "conserve.h"

enum { HEAD = 6, MAGIC = 0x5eed, TAGS = 100, GAP = -77, BSEND_BYTES = 100000 };

/* A layout is how the ints of a message lie in memory. A message has an even number of them. */
struct layout {
	MPI_Datatype type;
	int ints, extent; /* of one item, the extent in ints */
};

static struct layout layout_of(int kind)
{
	struct layout l = {MPI_INT, 1, 1};
	MPI_Datatype swapped;

	if (kind == 1) { /* every other int */
		MUST(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &l.type));
		l.extent = 2;
	} else if (kind == 2) { /* two ints, the second before the first, and one that is left out */
		MUST(MPI_Type_indexed(2, (int[]){1, 1}, (int[]){1, 0}, MPI_INT, &swapped));
		MUST(MPI_Type_create_resized(swapped, 0, 3 * sizeof(int), &l.type));
		MUST(MPI_Type_free(&swapped));
		l.ints = 2;
		l.extent = 3;
	}
	if (kind > 0)
		MUST(MPI_Type_commit(&l.type));
	return l;
}

static void layout_free(struct layout *l)
{
	if (l->type != MPI_INT)
		MUST(MPI_Type_free(&l->type));
}

static int place(const struct layout *l, int i)
{
	return i / l->ints * l->extent + (l->ints == 2 ? 1 - i % 2 : 0);
}

static int *room_for(const struct layout *l, int n)
{
	int cells = n / l->ints * l->extent, *p = malloc((cells + 1) * sizeof *p);

	for (int i = 0; i <= cells; i++)
		p[i] = GAP;
	return p;
}

static int content(int src, int dst, int id, int seq, int i)
{
	return (int)mix(seed ^ (uint64_t)src << 50 ^ (uint64_t)dst << 44 ^ (uint64_t)id << 40 ^ (uint64_t)seq << 20 ^ i) | 1;
}

/* Makes the next message to a rank, of n ints, and books it as sent. */
static int *compose(struct thread *t, const struct layout *l, int dst, int n)
{
	int *p = room_for(l, n), head[HEAD] = {MAGIC, t->rank, dst, t->id, t->out[dst]++, n};
	int64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += p[place(l, i)] = i < HEAD ? head[i] : content(t->rank, dst, t->id, head[4], i);
	books.sent++;
	books.sent_ints += n;
	books.sent_sum += sum;
	return p;
}

/* Checks a message that was received with room for most ints, and that it is the next one of its source. */
static void inspect(struct thread *t, const struct layout *l, int *p, int most, MPI_Status *s)
{
	int n, items, i, src = s->MPI_SOURCE, *h = malloc(HEAD * sizeof *h);
	int64_t sum = 0;

	MUST(MPI_Get_elements(s, l->type, &n));
	MUST(MPI_Get_count(s, l->type, &items));
	CHECK(n >= HEAD && n <= most && items * l->ints == n, "%d ints, %d items", n, items);
	CHECK(src >= 0 && src < t->size, "source %d", src);
	for (i = 0; i < HEAD; i++)
		h[i] = p[place(l, i)];
	CHECK(h[0] == MAGIC && h[1] == src && h[2] == t->rank && h[3] == t->id && h[5] == n,
	      "rank %d, thread %d: message %x of rank %d thread %d to rank %d with %d ints; the status says rank %d, %d ints",
	      t->rank, t->id, h[0], h[1], h[3], h[2], h[5], src, n);
	CHECK(h[4] == t->in[src], "rank %d, thread %d: message %d of rank %d instead of %d", t->rank, t->id, h[4], src, t->in[src]);
	CHECK(s->MPI_TAG == h[4] % TAGS, "tag %d of message %d", s->MPI_TAG, h[4]);
	t->in[src]++;
	for (i = 0; i < n; i++) {
		sum += p[place(l, i)];
		CHECK(i < HEAD || p[place(l, i)] == content(src, t->rank, t->id, h[4], i),
		      "rank %d, thread %d: int %d of %d of message %d of rank %d is %d", t->rank, t->id, i, n, h[4], src, p[place(l, i)]);
	}
	for (i = 0; i <= most / l->ints * l->extent; i++) {
		int gap = l->ints == 2 ? i % 3 == 2 : i % l->extent != 0;
		CHECK((!gap && i < n / l->ints * l->extent) || p[i] == GAP, "cell %d of %d was written", i, n);
	}
	books.received++;
	books.received_ints += n;
	books.received_sum += sum;
	free(p);
	free(h);
}

/* Starts to send one message. It returns the memory to free when all have received it. */
static int *send_one(struct thread *t, struct layout *l, int dst, int n, MPI_Request *r)
{
	int tag = t->out[dst] % TAGS, items = n / l->ints, code, *p = compose(t, l, dst, n);

	books.started++;
	switch (alone(t, 7)) {
	case 0:
		MUST(MPI_Issend(p, items, l->type, dst, tag, t->comm, r));
		break;
	case 1: /* which may find no room */
		code = MPI_Ibsend(p, items, l->type, dst, tag, t->comm, r);
		if (code != MPI_SUCCESS) {
			FAILS(MPI_ERR_BUFFER, code);
			books.errors_made++;
			MUST(MPI_Isend(p, items, l->type, dst, tag, t->comm, r));
		}
		break;
	case 2:
	case 3: /* a persistent request is freed while it is active: it completes */
		MUST(MPI_Send_init(p, items, l->type, dst, tag, t->comm, r));
		MUST(MPI_Start(r));
		MUST(MPI_Request_free(r));
		break;
	case 4:
		MUST(MPI_Isend(p, items, l->type, dst, tag, t->comm, r));
		MUST(MPI_Request_free(r));
		break;
	default:
		MUST(MPI_Isend(p, items, l->type, dst, tag, t->comm, r));
	}
	return p;
}

/* Receives the messages that the ranks have sent, counts[rank] of each, with room for most ints. */
static void receive_posted(struct thread *t, const struct layout *l, const int *counts, int total, int most, int kind)
{
	int i, k = 0, items = most / l->ints, src = 0, left = counts[0], **p = malloc((total + 1) * sizeof *p);
	MPI_Request *r = malloc((total + 1) * sizeof *r);
	MPI_Status *s = malloc((total + 1) * sizeof *s);

	for (i = 0; i < total; i++) {
		p[i] = room_for(l, most);
		while (left == 0)
			left = counts[++src];
		left--;
		if (kind == 0) {
			MUST(MPI_Irecv(p[i], items, l->type, MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &r[i]));
			books.started++;
		} else if (kind == 1) {
			MUST(MPI_Irecv(p[i], items, l->type, src, MPI_ANY_TAG, t->comm, &r[i]));
			books.started++;
		} else {
			MUST(MPI_Recv_init(p[i], items, l->type, src, MPI_ANY_TAG, t->comm, &r[i]));
			start_request(&r[i]);
		}
	}
	if (alone(t, 2)) {
		MUST(MPI_Waitall(total, r, s));
	} else {
		while (!k)
			MUST(MPI_Testall(total, r, &k, s));
	}
	books.completed += total;
	for (i = 0; i < total; i++) {
		inspect(t, l, p[i], most, &s[i]);
		if (kind == 2)
			MUST(MPI_Request_free(&r[i]));
	}
	free(p);
	free(r);
	free(s);
}

/* Receives one message, of any rank, that a probe has found. */
static void receive_probed(struct thread *t, const struct layout *l, int most, int kind)
{
	int found = 0, n, *p;
	MPI_Status s, before;
	MPI_Message m = MPI_MESSAGE_NULL;
	MPI_Request r;

	switch (kind) {
	case 0:
		MUST(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &before));
		break;
	case 1:
		while (!found)
			MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &found, &before));
		break;
	case 2:
		MUST(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &m, &before));
		break;
	default:
		while (!found)
			MUST(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &found, &m, &before));
	}
	MUST(MPI_Get_elements(&before, MPI_INT, &n));
	CHECK(n >= HEAD && n <= most, "probed %d ints", n);
	p = room_for(l, n);
	if (kind < 2) {
		MUST(MPI_Recv(p, n / l->ints, l->type, before.MPI_SOURCE, before.MPI_TAG, t->comm, &s));
	} else if (alone(t, 2)) {
		MUST(MPI_Mrecv(p, n / l->ints, l->type, &m, &s));
	} else {
		MUST(MPI_Imrecv(p, n / l->ints, l->type, &m, &r));
		books.started++;
		wait_request(&r, &s);
	}
	CHECK(m == MPI_MESSAGE_NULL && s.MPI_SOURCE == before.MPI_SOURCE && s.MPI_TAG == before.MPI_TAG, "a message of %d with tag %d, not of %d with %d",
	      s.MPI_SOURCE, s.MPI_TAG, before.MPI_SOURCE, before.MPI_TAG);
	inspect(t, l, p, n, &s);
}

/* All ranks send messages to all. */
static void exchange(struct thread *t)
{
	static const int sizes[] = {40, 40, 2000, 40000};
	int most = sizes[together(t, 4)], counts[RANKS], src, dst, n = 0, total = 0, i, *kept[4 * RANKS];
	struct layout out = layout_of(alone(t, 3)), in = layout_of(alone(t, 3));
	MPI_Request r[4 * RANKS];

	for (src = 0; src < t->size; src++)
		for (dst = 0; dst < t->size; dst++) {
			int count = together(t, 4);
			if (dst == t->rank)
				total += counts[src] = count;
			for (i = 0; src == t->rank && i < count; i++, n++)
				kept[n] = send_one(t, &out, dst, HEAD + 2 * alone(t, (most - HEAD) / 2), &r[n]);
		}
	i = alone(t, 7);
	if (i < 3)
		receive_posted(t, &in, counts, total, most, i);
	else
		while (total-- > 0)
			receive_probed(t, &in, most, i - 3);
	wait_all(t, n, r);
	MUST(MPI_Barrier(t->comm)); /* now all messages have been received */
	while (n > 0)
		free(kept[--n]);
	layout_free(&out);
	layout_free(&in);
}

/* Blocking calls around the ring of ranks. */
static void around(struct thread *t)
{
	int next = (t->rank + 1) % t->size, prev = (t->rank + t->size - 1) % t->size, most = 3000, how = together(t, 6);
	int n = HEAD + 2 * alone(t, most / 2 - HEAD), items, *q, *p;
	int tag = t->out[next] % TAGS;
	struct layout out = layout_of(alone(t, 3)), in = layout_of(alone(t, 3));
	MPI_Request r;
	MPI_Status s;

	p = compose(t, &out, next, n);
	q = room_for(&in, most);
	items = n / out.ints;
	if (how == 0 || t->size == 1) {
		MUST(MPI_Sendrecv(p, items, out.type, next, tag, q, most / in.ints, in.type, prev, MPI_ANY_TAG, t->comm, &s));
	} else if (how == 1) {
		MUST(MPI_Isendrecv(p, items, out.type, next, tag, q, most / in.ints, in.type, prev, MPI_ANY_TAG, t->comm, &r));
		books.started++;
		wait_request(&r, &s);
	} else if (how == 2) { /* the receive is there before the send */
		MUST(MPI_Irecv(q, most / in.ints, in.type, prev, MPI_ANY_TAG, t->comm, &r));
		books.started++;
		MUST(MPI_Barrier(t->comm));
		MUST(MPI_Rsend(p, items, out.type, next, tag, t->comm));
		wait_request(&r, &s);
	} else {
		if (t->rank % 2)
			MUST(MPI_Recv(q, most / in.ints, in.type, prev, MPI_ANY_TAG, t->comm, &s));
		if (how == 3) {
			MUST(MPI_Ssend(p, items, out.type, next, tag, t->comm));
		} else if (how == 4) {
			MUST(MPI_Comm_flush_buffer(t->comm));
			MUST(MPI_Bsend(p, items, out.type, next, tag, t->comm));
		} else {
			MUST(MPI_Send(p, items, out.type, next, tag, t->comm));
		}
		if (t->rank % 2 == 0)
			MUST(MPI_Recv(q, most / in.ints, in.type, prev, MPI_ANY_TAG, t->comm, &s));
	}
	inspect(t, &in, q, most, &s);
	free(p);
	layout_free(&out);
	layout_free(&in);
}

/* A partitioned message around the ring, started twice. */
static void partitions(struct thread *t)
{
	enum { each = 50 };
	int next = (t->rank + 1) % t->size, prev = (t->rank + t->size - 1) % t->size, i, j, k, flag;
	int parts = 1 + together(t, 8), turn, *out = calloc(parts * each, sizeof *out), *in = malloc(parts * each * sizeof *in);
	MPI_Request r[2];

	MUST(MPI_Psend_init(out, parts, each, MPI_INT, next, t->id, t->comm, MPI_INFO_NULL, &r[0]));
	MUST(MPI_Precv_init(in, parts, each, MPI_INT, prev, t->id, t->comm, MPI_INFO_NULL, &r[1]));
	for (turn = 0; turn < 2; turn++) {
		memset(in, 0, parts * each * sizeof *in);
		MUST(MPI_Startall(2, r));
		books.started += 2;
		for (k = 0; k < parts; k++) {
			i = (k * 5 + t->rank) % 8 < parts && parts == 8 ? (k * 5 + t->rank) % 8 : k;
			for (j = 0; j < each; j++)
				out[i * each + j] = t->rank * 1000000 + turn * 10000 + i * each + j;
			MUST(MPI_Pready(i, r[0]));
		}
		for (i = 0; i < parts; i++) {
			for (flag = 0; !flag;)
				MUST(MPI_Parrived(r[1], i, &flag));
			for (j = 0; j < each; j++)
				CHECK(in[i * each + j] == prev * 1000000 + turn * 10000 + i * each + j, "partition %d of %d has %d", i, parts, in[i * each + j]);
		}
		MUST(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		books.completed += 2;
	}
	for (i = 0; i < 2; i++)
		MUST(MPI_Request_free(&r[i]));
	free(out);
	free(in);
}

/* Receives that are cancelled, receives that are too short, and arguments that are wrong. */
static void mistakes(struct thread *t)
{
	int next = (t->rank + 1) % t->size, prev = (t->rank + t->size - 1) % t->size, x[40] = {0}, y[20], flag, n, i;
	MPI_Request r[3];
	MPI_Status s;

	for (i = 0; i < 3; i++) {
		MUST(MPI_Irecv(y, 20, MPI_INT, i ? prev : MPI_ANY_SOURCE, TAGS + 1 + i, t->comm, &r[i]));
		books.started++;
	}
	for (i = 0; i < 3; i++) {
		MUST(MPI_Cancel(&r[i]));
		wait_request(&r[i], &s);
		MUST(MPI_Test_cancelled(&s, &flag));
		CHECK(flag, "a receive that nobody sends to was not cancelled");
		books.cancelled++;
	}
	MUST(MPI_Isend(x, 40, MPI_INT, next, TAGS + 9, t->comm, &r[0]));
	books.started++;
	FAILS(MPI_ERR_TRUNCATE, MPI_Recv(y, 20, MPI_INT, prev, TAGS + 9, t->comm, &s));
	wait_request(&r[0], &s);
	FAILS(MPI_ERR_RANK, MPI_Send(x, 1, MPI_INT, t->size, 0, t->comm));
	FAILS(MPI_ERR_TAG, MPI_Isend(x, 1, MPI_INT, next, -5, t->comm, &r[0]));
	FAILS(MPI_ERR_COUNT, MPI_Irecv(x, -1, MPI_INT, prev, 0, t->comm, &r[0]));
	FAILS(MPI_ERR_ROOT, MPI_Bcast(x, 1, MPI_INT, t->size, t->comm));
	FAILS(MPI_ERR_OP, MPI_Allreduce(x, y, 1, MPI_DOUBLE, MPI_BAND, t->comm));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank(MPI_COMM_NULL, &n)); /* goes to the handler of MPI_COMM_SELF */
	books.errors_made += 7;
}

#endif
