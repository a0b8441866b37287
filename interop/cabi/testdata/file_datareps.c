/* Data representations: external32, and functions of the program; error handlers of files.
 * cabi: ranks=1,2,4 transports=shm */
#include "check.h"
#include <unistd.h>

static int rank, size;
static char name[4096];

static void count_is(const MPI_Status *s, MPI_Datatype type, int want, const char *what)
{
	int n = -1;
	MUST(MPI_Get_count(s, type, &n));
	CHECK(n == want, "%s: count %d, want %d", what, n, want);
}

/* Reads what is in the file. */
static void bytes_are(MPI_File f, const unsigned char *want, int n, const char *what)
{
	unsigned char got[1000];
	MPI_Status s;
	MUST(MPI_File_sync(f));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	MUST(MPI_File_read_at_all(f, 0, got, sizeof got, MPI_BYTE, &s));
	count_is(&s, MPI_BYTE, n, what);
	for (int i = 0; i < n; i++)
		CHECK(got[i] == want[i], "%s: byte %d is %02x, want %02x", what, i, got[i], want[i]);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
}

/* Structs with padding, of which a long has four bytes in the file. */
static void external32(void)
{
	struct record { char c; double d; long l; short s; } mem[3], back[3];
	MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_LONG, MPI_SHORT}, record, raw, in_file;
	int lens[4] = {1, 1, 1, 1};
	MPI_Aint at[4], packed[4] = {0, 1, 9, 13}, extent;
	MPI_File f;
	MPI_Status s;
	MUST(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
	MUST(MPI_Get_address(&mem[0].c, &at[0]));
	MUST(MPI_Get_address(&mem[0].d, &at[1]));
	MUST(MPI_Get_address(&mem[0].l, &at[2]));
	MUST(MPI_Get_address(&mem[0].s, &at[3]));
	for (int i = 3; i >= 0; i--)
		at[i] -= at[0];
	MUST(MPI_Type_create_struct(4, lens, at, types, &raw));
	MUST(MPI_Type_create_resized(raw, 0, sizeof(struct record), &record));
	MUST(MPI_Type_commit(&record));
	MUST(MPI_Type_create_struct(4, lens, packed, types, &in_file)); /* displacements of the file */
	MUST(MPI_Type_commit(&in_file));
	MUST(MPI_File_set_view(f, 45 * rank, in_file, in_file, "external32", MPI_INFO_NULL));
	MUST(MPI_File_get_type_extent(f, in_file, &extent));
	CHECK(extent == 15, "extent %ld", (long)extent);
	MUST(MPI_File_get_type_extent(f, MPI_LONG, &extent));
	CHECK(extent == 4, "extent of a long %ld", (long)extent);
	memset(mem, 0, sizeof mem);
	for (int i = 0; i < 3; i++) {
		mem[i].c = 'a' + i;
		mem[i].d = 1.5;
		mem[i].l = -2 - i;
		mem[i].s = 258;
	}
	MUST(MPI_File_write_at_all(f, 0, mem, 3, record, &s));
	count_is(&s, record, 3, "external32");
	memset(back, 0, sizeof back);
	MUST(MPI_File_read_at(f, 0, back, 3, record, &s));
	count_is(&s, record, 3, "external32");
	for (int i = 0; i < 3; i++)
		CHECK(back[i].c == mem[i].c && back[i].d == mem[i].d && back[i].l == mem[i].l && back[i].s == mem[i].s, "record %d", i);
	mem[0].l = 1L << 40;
	FAILS(MPI_ERR_CONVERSION, MPI_File_write_at(f, 0, mem, 1, record, &s));
	unsigned char want[600];
	for (int r = 0; r < size; r++)
		for (int i = 0; i < 3; i++) {
			unsigned char one[15] = {'a' + i, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe - i, 1, 2};
			memcpy(want + 45 * r + 15 * i, one, 15);
		}
	bytes_are(f, want, 45 * size, "external32");
	MUST(MPI_Type_free(&raw));
	MUST(MPI_Type_free(&record));
	MUST(MPI_Type_free(&in_file));
	MUST(MPI_File_close(&f));
}

static int calls, extra = 5, fails;

static int extent_fn(MPI_Datatype type, MPI_Aint *extent, void *state)
{
	int n;
	CHECK(state == &extra, "extra state");
	MPI_Type_size(type, &n);
	*extent = 2 * n;
	return MPI_SUCCESS;
}

/* Each int as 0xaaaaaaaa, and then the int. */
static int write_fn(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
	MPI_Aint lb, extent;
	int n;
	CHECK(state == &extra, "extra state");
	MPI_Type_get_extent(type, &lb, &extent);
	MPI_Type_size(type, &n);
	CHECK(n == 4, "items of %d bytes", n);
	calls++;
	for (int i = 0; i < count; i++) {
		memset((char *)file + 8 * i, 0xaa, 4);
		memcpy((char *)file + 8 * i + 4, (char *)user + (position + i) * extent, 4);
	}
	return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int read_fn(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *state)
{
	MPI_Aint lb, extent;
	CHECK(state == &extra, "extra state");
	MPI_Type_get_extent(type, &lb, &extent);
	calls++;
	for (MPI_Count i = 0; i < count; i++)
		memcpy((char *)user + (position + i) * extent, (char *)file + 8 * i + 4, 4);
	return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int write_large(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *state)
{
	return write_fn(user, type, (int)count, file, position, state);
}

static int read_small(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
	return read_fn(user, type, count, file, position, state);
}

static void registered(void)
{
	MPI_File f;
	MPI_Status s;
	MPI_Datatype wide;
	int mem[8], back[12];
	const char *names[2] = {"double width", "double width, large"};
	MUST(MPI_Register_datarep(names[0], read_small, write_fn, extent_fn, &extra));
	MUST(MPI_Register_datarep_c(names[1], read_fn, write_large, extent_fn, &extra));
	MUST(MPI_Register_datarep("as in memory", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_fn, &extra));
	FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep(names[0], read_small, write_fn, extent_fn, &extra));
	FAILS(MPI_ERR_ARG, MPI_Register_datarep("other", read_small, write_fn, NULL, &extra));
	MUST(MPI_Type_create_resized(MPI_INT, 0, 8, &wide));
	MUST(MPI_Type_commit(&wide));
	for (int k = 0; k < 2; k++) {
		MUST(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
		FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "no such", MPI_INFO_NULL));
		MUST(MPI_File_set_view(f, 32 * rank, MPI_INT, MPI_INT, names[k], MPI_INFO_NULL));
		for (int i = 0; i < 8; i++)
			mem[i] = i % 2 ? -1 : 0x01010101 * (1 + rank + i / 2);
		calls = 0;
		MUST(MPI_File_write_all(f, mem, 4, wide, &s));
		count_is(&s, wide, 4, names[k]);
		CHECK(calls > 0, "no function was called");
		MUST(MPI_File_sync(f));
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		memset(back, 0xff, sizeof back);
		MUST(MPI_File_read_at(f, 0, back, 4, wide, &s));
		CHECK(memcmp(mem, back, sizeof mem) == 0, "read something else");
		fails = 1;
		FAILS(MPI_ERR_CONVERSION, MPI_File_read_at(f, 0, back, 4, wide, &s));
		FAILS(MPI_ERR_CONVERSION, MPI_File_write_at_all(f, 0, back, 4, wide, &s));
		fails = 0;
		unsigned char want[600];
		for (int i = 0; i < 4 * size; i++) {
			memset(want + 8 * i, 0xaa, 4);
			memset(want + 8 * i + 4, 1 + i / 4 + i % 4, 4);
		}
		bytes_are(f, want, 32 * size, names[k]);
		MUST(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "as in memory", MPI_INFO_NULL));
		MUST(MPI_File_close(&f));
	}
	MUST(MPI_Type_free(&wide));
}

static int handled, forgive;

static void handler(MPI_File *f, int *code, ...)
{
	int class = -1;
	MPI_Error_class(*code, &class);
	handled = class;
	if (forgive)
		*code = MPI_SUCCESS;
	(void)f;
}

static void handlers(void)
{
	MPI_Errhandler e, was;
	MPI_File f;
	int x, class;
	char text[MPI_MAX_ERROR_STRING];
	MUST(MPI_File_get_errhandler(MPI_FILE_NULL, &was));
	CHECK(was == MPI_ERRORS_RETURN, "default handler");
	FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
	MUST(MPI_File_create_errhandler(handler, &e));
	MUST(MPI_File_set_errhandler(MPI_FILE_NULL, e));
	MUST(MPI_Errhandler_free(&e));
	FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
	CHECK(handled == MPI_ERR_NO_SUCH_FILE, "handler got class %d", handled);
	forgive = 1; /* the call returns what the handler leaves */
	MUST(MPI_File_open(MPI_COMM_WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
	CHECK(f == MPI_FILE_NULL, "a file");
	forgive = 0;
	MUST(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
	FAILS(MPI_ERR_FILE_EXISTS, MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL,
		&(MPI_File){MPI_FILE_NULL}));
	handled = -1;
	int code = MPI_File_read_at(f, -5, &x, 1, MPI_INT, MPI_STATUS_IGNORE); /* the file has the handler too */
	MPI_Error_class(code, &class);
	CHECK(class == MPI_ERR_ARG && handled == class, "class %d, handler got %d", class, handled);
	MUST(MPI_Error_string(code, text, &x));
	CHECK(strstr(text, "MPI_File_read_at") && strstr(text, "-5"), "%s", text);
	MUST(MPI_File_set_errhandler(f, MPI_ERRORS_RETURN));
	handled = -1;
	FAILS(MPI_ERR_COUNT, MPI_File_write(f, &x, -1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(handled == -1, "handler was called");
	/* One rank's argument is bad: all ranks get an error, and go on. */
	code = MPI_File_write_at_all(f, 4 * rank, &x, rank == size - 1 ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(code != MPI_SUCCESS, "no error");
	code = MPI_File_write_ordered_begin(f, &x, rank == size - 1 ? -1 : 1, MPI_INT);
	if (rank < size - 1) {
		MUST(code);
		code = MPI_File_write_ordered_end(f, &x, MPI_STATUS_IGNORE);
	}
	CHECK(code != MPI_SUCCESS, "no error");
	code = MPI_File_set_view(f, 0, rank == size - 1 ? MPI_DATATYPE_NULL : MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	CHECK(code != MPI_SUCCESS, "no error");
	MUST(MPI_File_write_at_all(f, 4 * rank, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
	MPI_File g = f;
	code = MPI_File_open(MPI_COMM_WORLD, rank == size - 1 ? NULL : name, MPI_MODE_RDONLY, MPI_INFO_NULL, &g);
	CHECK(code != MPI_SUCCESS && g == MPI_FILE_NULL, "opened");
	MUST(MPI_File_close(&f));
	FAILS(MPI_ERR_FILE, MPI_File_close(&f));
	MUST(MPI_File_set_errhandler(MPI_FILE_NULL, was));
}

int main(int argc, char **argv)
{
	const char *dir = getenv("TMPDIR");
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	if (rank == 0)
		snprintf(name, sizeof name, "%s/datareps-%ld", dir ? dir : "/tmp", (long)getpid());
	MUST(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	external32();
	registered();
	handlers();
	done();
	MPI_Finalize();
	return 0;
}
