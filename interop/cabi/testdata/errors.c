// Error handlers, classes and codes; errors of arguments.
// cabi: ranks=1,2
#include "check.h"

#define HOLDS(x) CHECK(x, "does not hold")

static int calls, seen;
static MPI_Comm on;

static void handler(MPI_Comm *comm, int *code, ...)
{
	calls++;
	seen = *code;
	on = *comm;
}

static void handlers(void)
{
	MPI_Errhandler e, f;
	MPI_Comm c, d, none;
	int n;

	MUST(MPI_Comm_create_errhandler(handler, &e));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	MUST(MPI_Comm_set_errhandler(c, e));
	MUST(MPI_Errhandler_free(&e));
	HOLDS(e == MPI_ERRHANDLER_NULL);
	n = MPI_Comm_split(c, -7, 0, &d);
	HOLDS(n != MPI_SUCCESS && calls == 1 && seen == n && on == c);
	MUST(MPI_Comm_call_errhandler(c, MPI_ERR_OTHER));
	HOLDS(calls == 2 && seen == MPI_ERR_OTHER);
	MUST(MPI_Comm_dup(c, &d)); // which has the handler, too
	n = MPI_Comm_split_type(d, 12345, 0, MPI_INFO_NULL, &none);
	HOLDS(n != MPI_SUCCESS && calls == 3 && on == d && none == MPI_COMM_NULL);
	MUST(MPI_Comm_get_errhandler(d, &f));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, f)); // that of calls without a communicator
	MUST(MPI_Errhandler_free(&f));
	n = MPI_Comm_size(MPI_COMM_NULL, &n);
	HOLDS(calls == 4 && on == MPI_COMM_SELF);
	n = MPI_Info_set(MPI_INFO_NULL, "a", "b");
	HOLDS(calls == 5 && on == MPI_COMM_SELF);
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_get_errhandler(MPI_COMM_SELF, &f));
	HOLDS(f == MPI_ERRORS_RETURN);
	MUST(MPI_Errhandler_free(&f));
	MUST(MPI_Comm_free(&c));
	MUST(MPI_Comm_free(&d));
}

static void codes(void)
{
	int class, code, got, len, flag, *last;
	char text[MPI_MAX_ERROR_STRING];

	for (int i = MPI_SUCCESS; i <= MPI_ERR_ABI; i++) {
		MUST(MPI_Error_class(i, &got));
		HOLDS(got == i);
		MUST(MPI_Error_string(i, text, &len));
		HOLDS(len > 0 && len == (int)strlen(text));
	}
	MUST(MPI_Add_error_class(&class));
	MUST(MPI_Add_error_code(class, &code));
	MUST(MPI_Add_error_string(code, "the disk is full"));
	MUST(MPI_Error_class(code, &got));
	MUST(MPI_Error_string(code, text, &len));
	HOLDS(got == class && strcmp(text, "the disk is full") == 0);
	MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
	HOLDS(flag && *last == code && code > MPI_ERR_LASTCODE);
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_ARG, MPI_Remove_error_class(class));
	FAILS(MPI_ERR_ARG, MPI_Remove_error_code(code));
	MUST(MPI_Remove_error_string(code));
	MUST(MPI_Remove_error_code(code));
	MUST(MPI_Remove_error_class(class));
	FAILS(MPI_ERR_ARG, MPI_Error_class(code, &got));
}

/* Handles that are wrong in every way: an error, and never a crash. */
static void handles(void)
{
	MPI_Comm c = MPI_COMM_NULL, old;
	MPI_Group g;
	MPI_Info info;
	int n, flag;
	char text[MPI_MAX_ERROR_STRING];

	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_group(MPI_COMM_WORLD, &g));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank(c, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank((MPI_Comm)g, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank((MPI_Comm)0, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank((MPI_Comm)&n, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank((MPI_Comm)-1, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_dup((MPI_Comm)0x1234567, &c));
	FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &n));
	FAILS(MPI_ERR_ARG, MPI_Comm_rank(MPI_COMM_WORLD, NULL));
	FAILS(MPI_ERR_ARG, MPI_Comm_size(MPI_COMM_WORLD, NULL));
	FAILS(MPI_ERR_ARG, MPI_Comm_dup(MPI_COMM_WORLD, NULL));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	old = c;
	MUST(MPI_Comm_free(&c));
	FAILS(MPI_ERR_COMM, MPI_Comm_rank(old, &n));
	FAILS(MPI_ERR_COMM, MPI_Comm_free(&old));
	c = MPI_COMM_WORLD;
	FAILS(MPI_ERR_COMM, MPI_Comm_free(&c));
	FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &n));
	FAILS(MPI_ERR_INFO, MPI_Info_get(MPI_INFO_NULL, "x", 1, text, &flag));
	MUST(MPI_Info_create(&info));
	FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "x"));
	FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "x"));
	MUST(MPI_Info_free(&info));
	FAILS(MPI_ERR_BASE, MPI_Free_mem(text));
	n = MPI_Comm_split(MPI_COMM_SELF, -7, 0, &c);
	MUST(MPI_Error_string(n, text, &flag));
	CHECK(strstr(text, "MPI_Comm_split") && strstr(text, "color -7"), "%s", text);
	MUST(MPI_Group_free(&g));
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	handlers();
	codes();
	handles();
	done();
	MUST(MPI_Finalize());
	return 0;
}
