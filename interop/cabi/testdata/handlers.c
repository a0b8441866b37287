// Functions of the program that MPI calls may call MPI themselves, on the same objects: error handlers, copying and
// deleting of attributes, operators, queries and frees of generalized requests.
// cabi: ranks=1,2 transports=shm
#include "check.h"

static int calls;
static MPI_Comm world;

/* What each of them does: procedures of all kinds that take locks of their own. */
static void everything(void)
{
	MPI_Datatype t;
	MPI_Comm parent, self;
	MPI_Errhandler h;
	MPI_Request r[2];
	MPI_Info info;
	MPI_Group g;
	MPI_Op op;
	int key, flag, x = calls, y = -1;
	void *value;

	calls++;
	MUST(MPI_Comm_get_parent(&parent));
	MUST(MPI_Type_create_f90_integer(5, &t));
	MUST(MPI_Type_contiguous(2, t, &t));
	MUST(MPI_Type_free(&t));
	MUST(MPI_Comm_get_errhandler(world, &h));
	MUST(MPI_Errhandler_free(&h));
	MUST(MPI_Comm_group(world, &g));
	MUST(MPI_Group_free(&g));
	MUST(MPI_Info_create(&info));
	MUST(MPI_Info_set(info, "a", "b"));
	MUST(MPI_Info_free(&info));
	MUST(MPI_Comm_dup(MPI_COMM_SELF, &self));
	MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
	MUST(MPI_Comm_set_attr(self, key, &x));
	MUST(MPI_Comm_get_attr(self, key, &value, &flag));
	CHECK(flag && value == &x, "flag %d", flag);
	MUST(MPI_Comm_free_keyval(&key));
	MUST(MPI_Irecv(&y, 1, MPI_INT, 0, 1, self, &r[0]));
	MUST(MPI_Isend(&x, 1, MPI_INT, 0, 1, self, &r[1]));
	MUST(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	CHECK(x == y, "%d, want %d", y, x);
	MUST(MPI_Op_create((MPI_User_function *)everything, 1, &op));
	MUST(MPI_Op_free(&op));
	MUST(MPI_Comm_free(&self));
}

static void on_comm(MPI_Comm *c, int *code, ...) { everything(); }
static void on_win(MPI_Win *w, int *code, ...) { everything(); }
static void on_file(MPI_File *f, int *code, ...) { everything(); }

static int copy_comm(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
	everything();
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}
static int delete_comm(MPI_Comm c, int key, void *value, void *extra) { everything(); return MPI_SUCCESS; }
static int copy_type(MPI_Datatype t, int key, void *extra, void *in, void *out, int *flag)
{
	return copy_comm(MPI_COMM_NULL, key, extra, in, out, flag);
}
static int delete_type(MPI_Datatype t, int key, void *value, void *extra) { everything(); return MPI_SUCCESS; }
static int delete_win(MPI_Win w, int key, void *value, void *extra) { everything(); return MPI_SUCCESS; }

static void sum(void *in, void *inout, int *n, MPI_Datatype *t)
{
	everything();
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static int query(void *extra, MPI_Status *s)
{
	everything();
	MUST(MPI_Status_set_elements(s, MPI_INT, 0));
	MUST(MPI_Status_set_cancelled(s, 0));
	return MPI_SUCCESS;
}
static int release(void *extra) { everything(); return MPI_SUCCESS; }
static int cancel(void *extra, int complete) { everything(); return MPI_SUCCESS; }

/* called(n): so many calls have been made since the last time. */
static void called(const char *what, int least)
{
	CHECK(calls >= least, "%s: %d calls, want %d", what, calls, least);
	calls = 0;
}

int main(int argc, char **argv)
{
	int key, rank, size, x = 1, total, windowed = 7;
	MPI_Errhandler h;
	MPI_Comm dup;
	MPI_Datatype t, u;
	MPI_Win w;
	MPI_Op op;
	MPI_Request r;
	MPI_Status status;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &world));
	MUST(MPI_Comm_rank(world, &rank));
	MUST(MPI_Comm_size(world, &size));

	/* Errors of a communicator, and those that belong to none, which MPI_COMM_SELF's handler gets. */
	MUST(MPI_Comm_create_errhandler(on_comm, &h));
	MUST(MPI_Comm_set_errhandler(world, h));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, h));
	FAILS(MPI_ERR_RANK, MPI_Send(&x, 1, MPI_INT, size, 0, world));
	FAILS(MPI_ERR_COUNT, MPI_Bcast(&x, -1, MPI_INT, 0, world));
	FAILS(MPI_ERR_ARG, MPI_Comm_get_parent(NULL));
	FAILS(MPI_ERR_ARG, MPI_Type_create_f90_real(400, 400, &t));
	FAILS(MPI_ERR_ARG, MPI_Type_create_f90_integer(5, NULL));
	FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
	FAILS(MPI_ERR_REQUEST, MPI_Wait((MPI_Request[]){(MPI_Request)12345678}, &status));
	called("error handler of a communicator", 7);
	MUST(MPI_Errhandler_free(&h));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));

	MUST(MPI_Win_create(&windowed, sizeof windowed, 1, MPI_INFO_NULL, world, &w));
	MUST(MPI_Win_create_errhandler(on_win, &h));
	MUST(MPI_Win_set_errhandler(w, h));
	MUST(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w));
	FAILS(MPI_ERR_RANK, MPI_Put(&x, 1, MPI_INT, size, 0, 1, MPI_INT, w));
	MUST(MPI_Win_unlock(0, w));
	called("error handler of a window", 1);
	MUST(MPI_Errhandler_free(&h));
	MUST(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_win, &key, NULL));
	MUST(MPI_Win_set_attr(w, key, &x));
	MUST(MPI_Win_free(&w));
	called("attribute of a window", 1);
	MUST(MPI_Win_free_keyval(&key));

	MUST(MPI_File_create_errhandler(on_file, &h));
	MUST(MPI_File_set_errhandler(MPI_FILE_NULL, h));
	MPI_File f;
	int code = MPI_File_open(MPI_COMM_SELF, "/no/such/directory/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
	CHECK(code != MPI_SUCCESS, "a file that is not there was opened");
	called("error handler of files", 1);
	MUST(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
	MUST(MPI_Errhandler_free(&h));

	MUST(MPI_Comm_create_keyval(copy_comm, delete_comm, &key, NULL));
	MUST(MPI_Comm_set_attr(world, key, &x));
	MUST(MPI_Comm_dup(world, &dup));
	called("copy of an attribute", 1);
	MUST(MPI_Comm_set_attr(dup, key, &x));
	called("attribute that is set again", 1);
	MUST(MPI_Comm_free(&dup));
	MUST(MPI_Comm_delete_attr(world, key));
	called("attributes deleted", 2);
	MUST(MPI_Comm_free_keyval(&key));

	MUST(MPI_Type_create_keyval(copy_type, delete_type, &key, NULL));
	MUST(MPI_Type_contiguous(3, MPI_INT, &t));
	MUST(MPI_Type_set_attr(t, key, &x));
	MUST(MPI_Type_dup(t, &u));
	MUST(MPI_Type_free(&u));
	MUST(MPI_Type_free(&t));
	called("attributes of datatypes", 3);
	MUST(MPI_Type_free_keyval(&key));

	MUST(MPI_Op_create(sum, 1, &op));
	MUST(MPI_Allreduce(&x, &total, 1, MPI_INT, op, world));
	CHECK(total == size, "the sum is %d, want %d", total, size);
	MUST(MPI_Iallreduce(&x, &total, 1, MPI_INT, op, world, &r));
	MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK(total == size, "the sum is %d, want %d", total, size);
	if (size > 1)
		called("operator", 2);
	MUST(MPI_Op_free(&op));

	MUST(MPI_Grequest_start(query, release, cancel, NULL, &r));
	MUST(MPI_Cancel(&r));
	called("cancel of a generalized request", 1);
	MUST(MPI_Grequest_complete(r));
	MUST(MPI_Wait(&r, &status));
	called("query and free of a generalized request", 2);

	MUST(MPI_Comm_free(&world));
	done();
	MUST(MPI_Finalize());
	return 0;
}
