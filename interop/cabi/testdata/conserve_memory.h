/* Windows and files of conserve.c. */
#ifndef CONSERVE_MEMORY_H
#define CONSERVE_MEMORY_H

#include "conserve.h"
#include <unistd.h>

/* Adds to the first number of all ranks, by all operations that can, under locks. */
static void updates(struct thread *t)
{
	int target = alone(t, t->size), i, times = 1 + alone(t, 10), exclusive = alone(t, 2);
	int64_t x, old[10], was, zero = 0, all[10];
	MPI_Request r[10];

	MUST(MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, t->win));
	for (i = 0; i < times; i++) {
		x = 1 + alone(t, 1000);
		r[i] = MPI_REQUEST_NULL;
		all[i] = x;
		switch (alone(t, 6)) {
		case 0:
			MUST(MPI_Accumulate(&all[i], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, t->win));
			break;
		case 1:
			MUST(MPI_Fetch_and_op(&all[i], &old[i], MPI_INT64_T, target, 0, MPI_SUM, t->win));
			break;
		case 2:
			MUST(MPI_Get_accumulate(&all[i], 1, MPI_INT64_T, &old[i], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, t->win));
			break;
		case 3:
			MUST(MPI_Raccumulate(&all[i], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, t->win, &r[i]));
			break;
		case 4:
			MUST(MPI_Rget_accumulate(&all[i], 1, MPI_INT64_T, &old[i], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, t->win, &r[i]));
			break;
		default: /* until nobody was faster */
			MUST(MPI_Fetch_and_op(&zero, &was, MPI_INT64_T, target, 0, MPI_NO_OP, t->win));
			MUST(MPI_Win_flush(target, t->win));
			for (;;) {
				int64_t found, next = was + x;
				MUST(MPI_Compare_and_swap(&next, &was, &found, MPI_INT64_T, target, 0, t->win));
				MUST(MPI_Win_flush(target, t->win));
				if (found == was)
					break;
				was = found;
			}
		}
		t->added[target] += x;
	}
	books.started += times;
	wait_all(t, times, r);
	FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&x, 1, MPI_INT64_T, target, SLOTS, 1, MPI_INT64_T, t->win));
	MUST(MPI_Win_unlock(target, t->win));
}

/* Each rank stores into a place of its own in all ranks, and reads it back, in epochs of all kinds. */
static void epochs(struct thread *t)
{
	int how = together(t, 3), i, target;
	int64_t x = alone(t, 1 << 30), all[RANKS], back[RANKS];
	MPI_Group group;

	MUST(MPI_Allgather(&x, 1, MPI_INT64_T, all, 1, MPI_INT64_T, t->comm));
	if (how == 0)
		MUST(MPI_Win_fence(MPI_MODE_NOPRECEDE, t->win));
	if (how == 1) {
		MUST(MPI_Win_get_group(t->win, &group));
		MUST(MPI_Win_post(group, 0, t->win));
		MUST(MPI_Win_start(group, 0, t->win));
		MUST(MPI_Group_free(&group));
	}
	if (how == 2)
		MUST(MPI_Win_lock_all(0, t->win));
	for (i = 0; i < t->size; i++) {
		target = (t->rank + i) % t->size;
		MUST(MPI_Put(&x, 1, MPI_INT64_T, target, 2 + t->rank, 1, MPI_INT64_T, t->win));
	}
	if (how == 0)
		MUST(MPI_Win_fence(0, t->win));
	if (how == 1) {
		MUST(MPI_Win_complete(t->win));
		MUST(MPI_Win_wait(t->win));
	}
	if (how == 2) {
		MUST(MPI_Win_flush_all(t->win));
		MUST(MPI_Barrier(t->comm));
		MUST(MPI_Win_sync(t->win));
	}
	for (i = 0; i < t->size; i++)
		CHECK(t->mem[2 + i] == all[i], "rank %d has put %lld, not %lld", i, (long long)t->mem[2 + i], (long long)all[i]);
	if (how == 1)
		MUST(MPI_Win_lock_all(0, t->win));
	for (i = 0; i < t->size; i++)
		MUST(MPI_Get(&back[i], 1, MPI_INT64_T, i, 2 + (t->rank + i) % t->size, 1, MPI_INT64_T, t->win));
	if (how == 0)
		MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, t->win));
	else
		MUST(MPI_Win_unlock_all(t->win));
	for (i = 0; i < t->size; i++)
		CHECK(back[i] == all[(t->rank + i) % t->size], "got %lld of rank %d", (long long)back[i], i);
	MUST(MPI_Barrier(t->comm)); /* before the next puts */
}

/* A window of each flavor that comes and goes. */
static void windows(struct thread *t)
{
	enum { n = 300 };
	int how = together(t, 4), right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size, i, *mem = NULL, *own = calloc(n, sizeof *own), x[n];
	MPI_Aint at = 0, there;
	MPI_Comm host = MPI_COMM_NULL;
	MPI_Win win;

	for (i = 0; i < n; i++)
		x[i] = t->rank * 1000 + i;
	switch (how) {
	case 0:
		mem = own;
		MUST(MPI_Win_create(mem, n * sizeof *mem, sizeof *mem, MPI_INFO_NULL, t->comm, &win));
		break;
	case 1:
		MUST(MPI_Win_allocate(n * sizeof *mem, sizeof *mem, MPI_INFO_NULL, t->comm, &mem, &win));
		break;
	case 2:
		mem = own;
		MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, t->comm, &win));
		MUST(MPI_Win_attach(win, mem, n * sizeof *mem));
		MUST(MPI_Get_address(mem, &at));
		break;
	default:
		MUST(MPI_Comm_split_type(t->comm, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL, &host));
		MUST(MPI_Comm_size(host, &i));
		if (i < t->size) { /* ranks without shared memory */
			MUST(MPI_Comm_free(&host));
			MUST(MPI_Win_allocate(n * sizeof *mem, sizeof *mem, MPI_INFO_NULL, t->comm, &mem, &win));
		} else {
			MUST(MPI_Win_allocate_shared(n * sizeof *mem, sizeof *mem, MPI_INFO_NULL, host, &mem, &win));
		}
	}
	MUST(MPI_Sendrecv(&at, 1, MPI_AINT, left, TAGS + 20, &there, 1, MPI_AINT, right, TAGS + 20, t->comm, MPI_STATUS_IGNORE));
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Put(x, n / 2, MPI_INT, right, there, n / 2, MPI_INT, win));
	MUST(MPI_Accumulate(x + n / 2, n / 2, MPI_INT, right, how == 2 ? there + n / 2 * sizeof *mem : n / 2, n / 2, MPI_INT, MPI_REPLACE, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < n; i++)
		CHECK(mem[i] == left * 1000 + i, "window made in way %d: %d is %d", how, i, mem[i]);
	if (how == 2)
		MUST(MPI_Win_detach(win, mem));
	MUST(MPI_Win_free(&win));
	if (host != MPI_COMM_NULL)
		MUST(MPI_Comm_free(&host));
	free(own);
}

/* A file that all ranks write, through a view with holes, at once and by the shared pointer, and read. */
static void files(struct thread *t)
{
	enum { n = 50 };
	int i, x[n], y[n];
	char name[200];
	const char *dir = getenv("TMPDIR");
	MPI_File f;
	MPI_Datatype mine, each;
	MPI_Offset end;
	MPI_Request r[2];
	MPI_Status s;

	snprintf(name, sizeof name, "%s/conserve-%d-%llx", dir ? dir : "/tmp", t->id, (unsigned long long)seed);
	for (i = 0; i < n; i++)
		x[i] = t->rank * 1000 + i;
	MUST(MPI_File_open(t->comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
	MUST(MPI_Type_create_resized(MPI_INT, 0, t->size * sizeof(int), &each));
	MUST(MPI_Type_dup(each, &mine));
	MUST(MPI_Type_commit(&mine));
	MUST(MPI_File_set_view(f, t->rank * sizeof(int), MPI_INT, mine, "native", MPI_INFO_NULL));
	MUST(MPI_Type_free(&mine));
	MUST(MPI_Type_free(&each));
	MUST(MPI_File_write_all(f, x, n / 2, MPI_INT, &s));
	MUST(MPI_File_iwrite_at(f, n / 2, x + n / 2, n - n / 2, MPI_INT, &r[0]));
	books.started++;
	wait_all(t, 1, r);
	MUST(MPI_File_sync(f));
	MUST(MPI_Barrier(t->comm));
	MUST(MPI_File_iread_at_all(f, 0, y, n, MPI_INT, &r[0]));
	MUST(MPI_File_iread_at(f, 3, &i, 1, MPI_INT, &r[1]));
	books.started += 2;
	wait_all(t, 2, r);
	CHECK(!memcmp(x, y, sizeof x) && i == x[3], "what was written is not there");
	MUST(MPI_File_get_size(f, &end));
	CHECK(end == (MPI_Offset)(n * t->size * sizeof(int)), "%lld bytes", (long long)end);
	MUST(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	MUST(MPI_File_write_shared(f, x, n, MPI_INT, &s));
	MUST(MPI_File_write_ordered(f, x, 1, MPI_INT, &s));
	FAILS(MPI_ERR_COUNT, MPI_File_write_at(f, 0, x, -1, MPI_INT, &s));
	MUST(MPI_File_get_position_shared(f, &end));
	CHECK(end == (n + 1) * t->size, "the shared pointer is at %lld", (long long)end);
	MUST(MPI_File_close(&f));
}

#endif
