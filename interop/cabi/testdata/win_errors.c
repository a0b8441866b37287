// Windows: bad arguments, calls out of order, error handlers, attributes with functions, names, info.
// cabi: ranks=1,2,4
#include "check.h"

static int rank, size, calls, last, copies, deletes;
static MPI_Win seen;

static void handler(MPI_Win *win, int *code, ...)
{
	calls++;
	seen = *win;
	MPI_Error_class(*code, &last);
}

static int on_delete(MPI_Win win, int key, void *value, void *extra)
{
	CHECK(win != MPI_WIN_NULL && key != MPI_KEYVAL_INVALID && value == &deletes && extra == &copies, "delete function");
	deletes++;
	return MPI_SUCCESS;
}

static int refuse(MPI_Win win, int key, void *value, void *extra)
{
	(void)win, (void)key, (void)value, (void)extra;
	return MPI_ERR_OTHER;
}

static void arguments(MPI_Win win)
{
	int x = 0, flag, *mem;
	MPI_Win w;
	MPI_Request r;
	MPI_Datatype open;
	MPI_Group none = MPI_GROUP_NULL;

	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_COMM, MPI_Win_create(&x, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &w));
	FAILS(MPI_ERR_SIZE, MPI_Win_create(&x, -4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
	FAILS(MPI_ERR_DISP, MPI_Win_create(&x, 4, -1, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
	FAILS(MPI_ERR_DISP, MPI_Win_allocate(4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &w));
	FAILS(MPI_ERR_SIZE, MPI_Win_allocate_shared(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &w));
	FAILS(MPI_ERR_INFO, MPI_Win_create_dynamic((MPI_Info)999, MPI_COMM_WORLD, &w));
	FAILS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
	FAILS(MPI_ERR_WIN, MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL));
	w = MPI_WIN_NULL;
	FAILS(MPI_ERR_WIN, MPI_Win_free(&w));
	FAILS(MPI_ERR_ASSERT, MPI_Win_fence(MPI_MODE_NOCHECK, win));
	FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win));
	FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(-7, 0, 0, win));
	FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
	FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, MPI_ANY_SOURCE, 0, win));
	FAILS(MPI_ERR_GROUP, MPI_Win_post(none, 0, win));
	FAILS(MPI_ERR_GROUP, MPI_Win_start(none, 0, win));
	FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, &x, 4));
	MUST(MPI_Win_fence(0, win));
	FAILS(MPI_ERR_RANK, MPI_Put(&x, 1, MPI_INT, size, 0, 1, MPI_INT, win));
	FAILS(MPI_ERR_COUNT, MPI_Put(&x, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
	FAILS(MPI_ERR_COUNT, MPI_Get(&x, 1, MPI_INT, 0, 0, -1, MPI_INT, win));
	FAILS(MPI_ERR_TYPE, MPI_Put(&x, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win));
	FAILS(MPI_ERR_DISP, MPI_Get(&x, 1, MPI_INT, 0, -1, 1, MPI_INT, win));
	FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&x, 1, MPI_INT, 0, 4, 1, MPI_INT, win));
	FAILS(MPI_ERR_RMA_RANGE, MPI_Get(&x, 1, MPI_INT, size - 1, 1000000, 1, MPI_INT, win));
	FAILS(MPI_ERR_OP, MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win));
	FAILS(MPI_ERR_OP, MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win));
	FAILS(MPI_ERR_OP, MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_MINLOC, win));
	FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&x, &x, &x, MPI_FLOAT, 0, 0, win));
	MUST(MPI_Type_contiguous(1, MPI_INT, &open));
	FAILS(MPI_ERR_TYPE, MPI_Put(&x, 1, open, 0, 0, 1, MPI_INT, win));
	MUST(MPI_Type_commit(&open));
	FAILS(MPI_ERR_TYPE, MPI_Fetch_and_op(&x, &x, open, 0, 0, MPI_SUM, win));
	MUST(MPI_Type_free(&open));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Rput(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &r));
	MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &flag));
	MUST(MPI_Win_lock_all(0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
	w = win;
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&w));
	CHECK(w == win, "the handle has changed");
	MUST(MPI_Win_unlock_all(win));
	MUST(MPI_Win_get_group(win, &none));
	MUST(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_start(none, 0, win));
	FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
	MUST(MPI_Win_unlock(0, win));
	MUST(MPI_Group_free(&none));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

static void handlers(MPI_Win win)
{
	MPI_Errhandler h, was;
	int x = 0;

	MUST(MPI_Win_get_errhandler(win, &was));
	CHECK(was == MPI_ERRORS_RETURN, "handler");
	MUST(MPI_Win_create_errhandler(handler, &h));
	MUST(MPI_Win_set_errhandler(win, h));
	MUST(MPI_Errhandler_free(&h));
	MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
	CHECK(calls == 1 && last == MPI_ERR_RMA_SYNC && seen == win, "%d calls, class %d", calls, last);
	MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
	MPI_Get(&x, 1, MPI_INT, rank, 4, 1, MPI_INT, win);
	CHECK(calls == 2 && last == MPI_ERR_RMA_RANGE, "%d calls, class %d", calls, last);
	MUST(MPI_Win_unlock(rank, win));
	MPI_Win_call_errhandler(win, MPI_ERR_ARG);
	CHECK(calls == 3 && last == MPI_ERR_ARG, "%d calls, class %d", calls, last);
	MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
}

static void attributes(MPI_Win win)
{
	int key, stays, n, flag;
	char name[MPI_MAX_OBJECT_NAME], text[MPI_MAX_INFO_VAL];
	void *value;
	MPI_Info info;

	MUST(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &copies));
	MUST(MPI_Win_get_attr(win, key, &value, &flag));
	CHECK(!flag, "an attribute that was not set");
	MUST(MPI_Win_set_attr(win, key, &deletes));
	MUST(MPI_Win_get_attr(win, key, &value, &flag));
	CHECK(flag && value == &deletes, "value %p", value);
	MUST(MPI_Win_set_attr(win, key, &deletes));
	CHECK(deletes == 1, "%d deletes", deletes);
	MUST(MPI_Win_delete_attr(win, key));
	CHECK(deletes == 2, "%d deletes", deletes);
	MUST(MPI_Win_set_attr(win, key, &deletes));
	MUST(MPI_Win_free_keyval(&key));
	CHECK(key == MPI_KEYVAL_INVALID, "key %d", key);
	FAILS(MPI_ERR_KEYVAL, MPI_Win_set_attr(win, MPI_WIN_SIZE, NULL));
	MUST(MPI_Win_create_keyval(MPI_WIN_DUP_FN, refuse, &stays, NULL));
	MUST(MPI_Win_set_attr(win, stays, NULL));
	FAILS(MPI_ERR_OTHER, MPI_Win_delete_attr(win, stays));
	MUST(MPI_Win_get_attr(win, stays, &value, &flag));
	CHECK(flag && value == NULL, "the attribute that was refused to go is gone");
	MUST(MPI_Win_free_keyval(&stays));
	MPI_Win again = win;
	FAILS(MPI_ERR_OTHER, MPI_Win_free(&again));
	CHECK(again == win, "freed all the same");

	MUST(MPI_Win_get_name(win, name, &n));
	CHECK(n == 0 && !*name, "name %s", name);
	MUST(MPI_Win_set_name(win, "halo"));
	MUST(MPI_Win_get_name(win, name, &n));
	CHECK(n == 4 && !strcmp(name, "halo"), "name %s", name);
	MUST(MPI_Win_get_info(win, &info));
	MUST(MPI_Info_get(info, "no_locks", sizeof text - 1, text, &flag));
	CHECK(flag && !strcmp(text, "false"), "no_locks %s", text);
	MUST(MPI_Info_set(info, "accumulate_ordering", "none"));
	MUST(MPI_Win_set_info(win, info));
	MUST(MPI_Info_free(&info));
	MUST(MPI_Win_get_info(win, &info));
	MUST(MPI_Info_get(info, "accumulate_ordering", sizeof text - 1, text, &flag));
	CHECK(flag && !strcmp(text, "none"), "accumulate_ordering %s", text);
	MUST(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
	int *mem;
	MPI_Win win, other;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Win_allocate(4 * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
	MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	arguments(win);
	handlers(win);
	MUST(MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &other));
	MUST(MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN));
	attributes(other); /* cannot be freed */
	MUST(MPI_Win_free(&win));
	done();
	MUST(MPI_Finalize());
	return 0;
}
