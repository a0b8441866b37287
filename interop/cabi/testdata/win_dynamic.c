// Dynamic windows: addresses as displacements, absolute addresses in datatypes, a linked list over all ranks.
// cabi: ranks=1,2,4
#include "check.h"

static int rank, size, right;

static void places(void)
{
	enum { n = 1000 };
	int *low = malloc(n * sizeof *low), *high = malloc(n * sizeof *high), i, one = 1, old, src[3] = {7, 8, 9}, flag, *flavor;
	MPI_Aint mine[2], *at = malloc(2 * size * sizeof *at), *bytes;
	MPI_Datatype two;
	MPI_Win win;
	void *base;

	MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
	CHECK(flag && base == MPI_BOTTOM, "base %p", base);
	MUST(MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag));
	CHECK(flag && *bytes == 0, "%ld bytes", (long)*bytes);
	MUST(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
	CHECK(flag && *flavor == MPI_WIN_FLAVOR_DYNAMIC, "flavor %d", *flavor);
	MUST(MPI_Win_attach(win, low, n * sizeof *low));
	MUST(MPI_Win_attach(win, high, n * sizeof *high));
	memset(low, 0, n * sizeof *low);
	memset(high, 0, n * sizeof *high);
	MUST(MPI_Get_address(low, &mine[0]));
	MUST(MPI_Get_address(high, &mine[1]));
	MUST(MPI_Allgather(mine, 2, MPI_AINT, at, 2, MPI_AINT, MPI_COMM_WORLD));
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Put(src, 3, MPI_INT, right, MPI_Aint_add(at[2 * right], 400), 3, MPI_INT, win));
	MUST(MPI_Accumulate(src, 3, MPI_INT, right, at[2 * right + 1], 3, MPI_INT, MPI_SUM, win));
	MUST(MPI_Win_fence(0, win));
	for (i = 0; i < 3; i++)
		CHECK(low[100 + i] == 7 + i && high[i] == 7 + i, "%d and %d", low[100 + i], high[i]);
	/* A datatype with the addresses of both places, from address 0. */
	MUST(MPI_Win_fence(0, win));
	MUST(MPI_Type_create_hindexed(2, (int[]){2, 1}, (MPI_Aint[]){at[2 * right] + 8, at[2 * right + 1] + 80}, MPI_INT, &two));
	MUST(MPI_Type_commit(&two));
	MUST(MPI_Put(src, 3, MPI_INT, right, 0, 1, two, win));
	MUST(MPI_Win_fence(0, win));
	CHECK(low[2] == 7 && low[3] == 8 && high[20] == 9, "%d %d %d", low[2], low[3], high[20]);
	MUST(MPI_Type_free(&two));
	MUST(MPI_Win_lock_all(0, win));
	for (i = 0; i < 30; i++) {
		MUST(MPI_Fetch_and_op(&one, &old, MPI_INT, 0, at[0] + 40, MPI_SUM, win));
		MUST(MPI_Win_flush(0, win));
	}
	MUST(MPI_Win_unlock_all(win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	CHECK(rank || low[10] == 30 * size, "%d updates", low[10]);
	MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, low + 10, 4));
	MUST(MPI_Win_detach(win, low));
	FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, low));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
	MPI_Put(src, 1, MPI_INT, right, at[2 * right], 1, MPI_INT, win);
	if (right != rank) /* the target says so */
		FAILS(MPI_ERR_RMA_RANGE, MPI_Win_flush(right, win));
	/* Here the answer says so, also if one byte is all that was asked for. */
	int back[3] = {0};
	char byte;
	for (i = 0; i < 6; i++) {
		int code = MPI_SUCCESS;
		switch (i) {
		case 0:
			code = MPI_Get(back, 3, MPI_INT, right, at[2 * right], 3, MPI_INT, win);
			break;
		case 1:
			code = MPI_Get(&byte, 1, MPI_BYTE, right, at[2 * right], 1, MPI_BYTE, win);
			break;
		case 2:
			code = MPI_Fetch_and_op(&one, &old, MPI_INT, right, at[2 * right], MPI_SUM, win);
			break;
		case 3:
			code = MPI_Compare_and_swap(&one, &one, &old, MPI_INT, right, at[2 * right], win);
			break;
		case 4:
			code = MPI_Get_accumulate(src, 3, MPI_INT, back, 3, MPI_INT, right, at[2 * right], 3, MPI_INT, MPI_SUM, win);
			break;
		default:
			code = MPI_Accumulate(src, 3, MPI_INT, right, at[2 * right], 3, MPI_INT, MPI_SUM, win);
		}
		if (right == rank)
			FAILS(MPI_ERR_RMA_RANGE, code);
		else
			FAILS(MPI_ERR_RMA_RANGE, code == MPI_SUCCESS ? MPI_Win_flush(right, win) : code);
	}
	MUST(MPI_Win_unlock(right, win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	CHECK(low[0] == 0, "put to memory that is detached");
	MUST(MPI_Win_detach(win, high));
	MUST(MPI_Win_free(&win));
	free(low);
	free(high);
	free(at);
}

/* Ranks append elements to one list: each element says where the next is. */
struct place {
	MPI_Aint at;
	long rank;
};

struct element {
	struct place next;
	int value;
};

static void list(void)
{
	enum { n = 5 };
	struct element head = {{0, -1}, -1}, *all[n];
	struct place tail = {0, 0}, none = {0, -1}, next;
	MPI_Aint first;
	MPI_Datatype place;
	MPI_Win win;
	int i, count = 0, turn;

	MUST(MPI_Type_contiguous(2, MPI_AINT, &place));
	MUST(MPI_Type_commit(&place));
	MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MUST(MPI_Win_attach(win, &head, sizeof head));
	MUST(MPI_Get_address(&head, &first));
	MUST(MPI_Bcast(&first, 1, MPI_AINT, 0, MPI_COMM_WORLD));
	tail.at = first;
	for (turn = 0; turn < n * size; turn++) {
		if (turn % size == rank) {
			struct element *e = malloc(sizeof *e);
			struct place here;
			e->next = none;
			e->value = turn;
			MUST(MPI_Win_attach(win, e, sizeof *e));
			MUST(MPI_Get_address(e, &here.at));
			here.rank = rank;
			/* Walk to the end, and append. */
			MUST(MPI_Win_lock_all(0, win));
			for (;;) {
				MUST(MPI_Get(&next, 1, place, tail.rank, tail.at, 1, place, win));
				MUST(MPI_Win_flush(tail.rank, win));
				if (next.rank < 0)
					break;
				tail = next;
			}
			MUST(MPI_Put(&here, 1, place, tail.rank, tail.at, 1, place, win));
			MUST(MPI_Win_unlock_all(win));
			all[count++] = e;
		}
		MUST(MPI_Barrier(MPI_COMM_WORLD));
	}
	MUST(MPI_Win_lock_all(0, win));
	tail.at = first;
	tail.rank = 0;
	for (i = -1; tail.rank >= 0; i++) {
		struct element e;
		MUST(MPI_Get(&e, sizeof e, MPI_BYTE, tail.rank, tail.at, sizeof e, MPI_BYTE, win));
		MUST(MPI_Win_flush_all(win));
		CHECK(e.value == i, "element %d has %d", i, e.value);
		tail = e.next;
	}
	CHECK(i == n * size, "%d elements", i);
	MUST(MPI_Win_unlock_all(win));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	for (i = 0; i < count; i++) {
		MUST(MPI_Win_detach(win, all[i]));
		free(all[i]);
	}
	MUST(MPI_Win_free(&win));
	MUST(MPI_Type_free(&place));
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	right = (rank + 1) % size;
	places();
	list();
	done();
	MUST(MPI_Finalize());
	return 0;
}
