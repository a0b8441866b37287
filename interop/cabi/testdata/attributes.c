// Attributes of communicators and datatypes with functions of C; those of MPI_COMM_SELF are deleted at the
// beginning of MPI_Finalize, the last first.
// cabi: ranks=1,2
#include "check.h"

#define HOLDS(x) CHECK(x, "does not hold")

static int copies, deletes, fails, order[3], ended;

static int copy(MPI_Comm old, int key, void *extra, void *in, void *out, int *flag)
{
	copies++;
	if (fails)
		return MPI_ERR_OTHER;
	HOLDS(*(int *)extra == 7);
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
	int rank;
	HOLDS(MPI_Comm_rank(comm, &rank) == MPI_SUCCESS); // the communicator is still there
	deletes++;
	return MPI_SUCCESS;
}

static int type_copy(MPI_Datatype old, int key, void *extra, void *in, void *out, int *flag)
{
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static int type_delete(MPI_Datatype type, int key, void *value, void *extra)
{
	deletes++;
	return MPI_SUCCESS;
}

static int last_words(MPI_Comm comm, int key, void *value, void *extra)
{
	int flag = -1, size = 0;
	MPI_Finalized(&flag);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (flag || !size)
		_Exit(3);
	order[ended++] = (int)(size_t)value;
	return MPI_SUCCESS;
}

static void predefined(void)
{
	int flag, *value, size;
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
	CHECK(flag && *value >= 32767, "MPI_TAG_UB %d", flag ? *value : -1);
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
	HOLDS(flag && (*value == 0 || *value == 1));
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
	HOLDS(flag && *value == MPI_ANY_SOURCE);
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
	HOLDS(flag && *value == MPI_PROC_NULL);
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
	HOLDS(!flag || *value == 0);
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
	CHECK(!flag || *value >= size, "MPI_UNIVERSE_SIZE %d", *value);
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
	HOLDS(flag && *value >= MPI_ERR_LASTCODE);
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &size));
	FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &size));
}

int main(int argc, char **argv)
{
	int key, dup, none, typekey, flag, seven = 7;
	char data[8], *value;
	MPI_Comm c, d;
	MPI_Datatype t;

	MUST(MPI_Init(&argc, &argv));
	predefined();
	MUST(MPI_Comm_create_keyval(copy, delete, &key, &seven));
	MUST(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup, NULL));
	MUST(MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &none, NULL));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	MUST(MPI_Comm_set_attr(c, key, data));
	MUST(MPI_Comm_set_attr(c, dup, data + 2));
	MUST(MPI_Attr_put(c, none, data + 3));
	MUST(MPI_Comm_dup(c, &d));
	MUST(MPI_Comm_get_attr(d, key, &value, &flag));
	HOLDS(flag && value == data + 1 && copies == 1);
	MUST(MPI_Comm_get_attr(d, dup, &value, &flag));
	HOLDS(flag && value == data + 2);
	MUST(MPI_Attr_get(d, none, &value, &flag));
	HOLDS(!flag);
	MUST(MPI_Comm_set_attr(d, key, data));
	HOLDS(deletes == 1);
	MUST(MPI_Comm_delete_attr(d, key));
	HOLDS(deletes == 2);
	MUST(MPI_Comm_free(&d));
	HOLDS(deletes == 2);

	fails = 1;
	MUST(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_OTHER, MPI_Comm_dup(c, &d));
	MUST(MPI_Comm_free_keyval(&key));
	HOLDS(key == MPI_KEYVAL_INVALID);
	MUST(MPI_Comm_free(&c)); // the attribute is there until then
	HOLDS(deletes == 3);

	deletes = 0;
	MUST(MPI_Type_create_keyval(type_copy, type_delete, &typekey, NULL));
	MUST(MPI_Type_contiguous(3, MPI_INT, &t));
	MUST(MPI_Type_set_attr(t, typekey, data));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_KEYVAL, MPI_Type_set_attr(t, dup, data));
	MPI_Datatype u;
	MUST(MPI_Type_dup(t, &u));
	MUST(MPI_Type_get_attr(u, typekey, &value, &flag));
	HOLDS(flag && value == data);
	MUST(MPI_Type_free(&t));
	MUST(MPI_Type_free(&u));
	HOLDS(deletes == 2);
	MUST(MPI_Type_free_keyval(&typekey));

	for (int i = 0; i < 3; i++) {
		MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_words, &key, NULL));
		MUST(MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)(size_t)(i + 1)));
		MUST(MPI_Comm_free_keyval(&key));
	}
	done();
	MPI_Finalize();
	return ended == 3 && order[0] == 3 && order[1] == 2 && order[2] == 1 ? 0 : 4;
}
