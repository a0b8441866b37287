/* Views of files: subarrays, vectors, distributed arrays, with data of other layouts in memory, by all
 * kinds of reads and writes.
 * cabi: ranks=1,2,4 transports=shm,sctp */
#include "check.h"
#include <unistd.h>

enum { ROWS = 12, COLS = 10 };

static int rank, size;
static char name[4096];

/* Names a file that all ranks reach. */
static void choose(const char *what)
{
	const char *dir = getenv("TMPDIR");
	if (rank == 0)
		snprintf(name, sizeof name, "%s/%s-%ld", dir ? dir : "/tmp", what, (long)getpid());
	MUST(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
}

static MPI_File open_new(const char *what)
{
	MPI_File f = MPI_FILE_NULL;
	choose(what);
	MUST(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE,
		MPI_INFO_NULL, &f));
	CHECK(f != MPI_FILE_NULL, "null");
	return f;
}

static void count_is(const MPI_Status *s, MPI_Datatype type, int want, const char *what)
{
	int n = -1;
	MUST(MPI_Get_count(s, type, &n));
	CHECK(n == want, "%s: count %d, want %d", what, n, want);
}

/* Compares the ints of the whole file, behind a header of disp bytes. */
static void file_is(MPI_File f, int disp, int n, int (*want)(int), const char *what)
{
	int *all = malloc(sizeof(int) * (n + 3));
	MPI_Status s;
	MPI_Offset bytes;
	MUST(MPI_File_sync(f));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	MUST(MPI_File_sync(f));
	MUST(MPI_File_get_size(f, &bytes));
	CHECK(bytes == disp + 4LL * n, "%s: %lld bytes, want %lld", what, (long long)bytes, disp + 4LL * n);
	MUST(MPI_File_set_view(f, disp, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	MUST(MPI_File_read_at(f, 0, all, n + 3, MPI_INT, &s));
	count_is(&s, MPI_INT, n, what);
	for (int i = 0; i < n; i++)
		CHECK(all[i] == want(i), "%s: int %d is %d, want %d", what, i, all[i], want(i));
	free(all);
	MUST(MPI_Barrier(MPI_COMM_WORLD));
}

static int by_place(int i) { return 7 * i + 1; }

/* Each rank writes its columns of a matrix from an array with a border. */
static void subarrays(void)
{
	MPI_File f = open_new("subarray");
	int all[2] = {ROWS, size * COLS}, mine[2] = {ROWS, COLS}, at[2] = {0, rank * COLS};
	int room[2] = {ROWS + 2, COLS + 2}, inner[2] = {1, 1};
	int mem[ROWS + 2][COLS + 2], back[ROWS + 2][COLS + 2];
	MPI_Datatype in_file, in_memory;
	MPI_Status s;
	MUST(MPI_Type_create_subarray(2, all, mine, at, MPI_ORDER_C, MPI_INT, &in_file));
	MUST(MPI_Type_create_subarray(2, room, mine, inner, MPI_ORDER_C, MPI_INT, &in_memory));
	FAILS(MPI_ERR_TYPE, MPI_File_set_view(f, 0, MPI_INT, in_file, "native", MPI_INFO_NULL)); /* not committed */
	MUST(MPI_Type_commit(&in_file));
	MUST(MPI_Type_commit(&in_memory));
	memset(mem, 0xee, sizeof mem);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLS; j++)
			mem[i + 1][j + 1] = by_place(i * size * COLS + rank * COLS + j);
	MUST(MPI_File_set_view(f, 16, MPI_INT, in_file, "native", MPI_INFO_NULL));
	MUST(MPI_File_write_all(f, mem, 1, in_memory, &s));
	count_is(&s, in_memory, 1, "write_all");
	count_is(&s, MPI_INT, ROWS * COLS, "write_all");
	MPI_Offset pos, byte;
	MUST(MPI_File_get_position(f, &pos));
	CHECK(pos == ROWS * COLS, "at %lld", (long long)pos);
	MUST(MPI_File_get_byte_offset(f, COLS, &byte));
	CHECK(byte == 16 + 4 * (size * COLS + rank * COLS), "row 1 at byte %lld", (long long)byte);
	memset(back, 0xee, sizeof back);
	MUST(MPI_File_seek(f, -ROWS * COLS, MPI_SEEK_CUR));
	MUST(MPI_File_read(f, back, 1, in_memory, &s));
	count_is(&s, in_memory, 1, "read");
	CHECK(memcmp(mem, back, sizeof mem) == 0, "read something else");
	MPI_Offset disp;
	MPI_Datatype etype, filetype;
	char rep[MPI_MAX_DATAREP_STRING];
	int ni, na, nd, combiner;
	MUST(MPI_File_get_view(f, &disp, &etype, &filetype, rep));
	CHECK(disp == 16 && etype == MPI_INT && strcmp(rep, "native") == 0, "view at %lld, %s", (long long)disp, rep);
	MUST(MPI_Type_get_envelope(filetype, &ni, &na, &nd, &combiner));
	CHECK(combiner == MPI_COMBINER_SUBARRAY || combiner == MPI_COMBINER_DUP, "combiner %d", combiner);
	MUST(MPI_Type_free(&filetype));
	MUST(MPI_Type_free(&in_file));
	MUST(MPI_Type_free(&in_memory));
	file_is(f, 16, ROWS * COLS * size, by_place, "subarrays");
	MUST(MPI_File_close(&f));
	CHECK(f == MPI_FILE_NULL, "not null");
}

/* Each rank has every size-th group of 3 ints; all kinds of operations at once. */
static void vectors(void)
{
	enum { N = 60 };
	MPI_File f = open_new("vector");
	MPI_Datatype group, filetype, some, gaps;
	int mem[2 * N], back[2 * N], i;
	MPI_Status s;
	MPI_Request r[2];
	MUST(MPI_Type_vector(N / 3, 3, 3 * size, MPI_INT, &group));
	MUST(MPI_Type_create_resized(group, 0, (MPI_Aint)4 * N * size, &filetype));
	MUST(MPI_Type_commit(&filetype));
	MUST(MPI_Type_vector(6, 1, 2, MPI_INT, &some));
	MUST(MPI_Type_create_resized(some, 0, 48, &gaps));
	MUST(MPI_Type_commit(&gaps));
	for (i = 0; i < N; i++) {
		mem[2 * i] = by_place((i / 3 * size + rank) * 3 + i % 3);
		mem[2 * i + 1] = -1;
	}
	MUST(MPI_File_set_view(f, 12 * rank, MPI_INT, filetype, "native", MPI_INFO_NULL));
	MUST(MPI_File_write_at(f, 0, mem, 1, gaps, &s));
	count_is(&s, gaps, 1, "write_at");
	MUST(MPI_File_write_at_all(f, 6, mem + 12, 1, gaps, &s));
	MUST(MPI_File_iwrite_at(f, 12, mem + 24, 1, gaps, &r[0]));
	MUST(MPI_File_iwrite_at_all(f, 18, mem + 36, 1, gaps, &r[1]));
	MPI_Status two[2];
	MUST(MPI_Waitall(2, r, two));
	count_is(&two[0], gaps, 1, "iwrite_at");
	count_is(&two[1], gaps, 1, "iwrite_at_all");
	MUST(MPI_File_seek(f, 24, MPI_SEEK_SET));
	MUST(MPI_File_write(f, mem + 48, 1, gaps, &s));
	MUST(MPI_File_iwrite(f, mem + 60, 1, gaps, &r[0]));
	MUST(MPI_File_iwrite_all(f, mem + 72, 1, gaps, &r[1]));
	MUST(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	MUST(MPI_File_write_all_begin(f, mem + 84, 1, gaps));
	FAILS(MPI_ERR_FILE, MPI_File_read_all_begin(f, back, 1, gaps));
	MUST(MPI_File_write_all_end(f, mem + 84, &s));
	count_is(&s, gaps, 1, "write_all_end");
	MUST(MPI_File_write_at_all_begin(f, 48, mem + 96, 2, gaps));
	MUST(MPI_File_write_at_all_end(f, mem + 96, &s));
	count_is(&s, gaps, 2, "write_at_all_end");
	MUST(MPI_File_sync(f));
	memset(back, 0xff, sizeof back);
	MUST(MPI_File_iread_at(f, 0, back, 2, gaps, &r[0]));
	MUST(MPI_Wait(&r[0], &s));
	count_is(&s, MPI_INT, 12, "iread_at");
	for (i = 0; i < N; i++)
		back[2 * i] = back[2 * i + 1] = -1;
	for (i = 0; i < 10; i++) {
		int *to = back + 12 * i;
		switch (i % 5) {
		case 0:
			MUST(MPI_File_read_at(f, 6 * i, to, 1, gaps, &s));
			break;
		case 1:
			MUST(MPI_File_read_at_all(f, 6 * i, to, 1, gaps, &s));
			break;
		case 2:
			MUST(MPI_File_seek(f, 6 * i, MPI_SEEK_SET));
			MUST(MPI_File_read_all(f, to, 1, gaps, &s));
			break;
		case 3:
			MUST(MPI_File_iread_all(f, to, 1, gaps, &r[0]));
			MUST(MPI_Wait(&r[0], &s));
			break;
		case 4:
			MUST(MPI_File_read_at_all_begin(f, 6 * i, to, 1, gaps));
			MUST(MPI_File_read_at_all_end(f, to, &s));
			break;
		}
		count_is(&s, gaps, 1, "read");
	}
	CHECK(memcmp(mem, back, sizeof mem) == 0, "read something else");
	file_is(f, 0, N * size, by_place, "vectors");
	MUST(MPI_Type_free(&group));
	MUST(MPI_Type_free(&filetype));
	MUST(MPI_Type_free(&some));
	MUST(MPI_Type_free(&gaps));
	MUST(MPI_File_close(&f));
}

/* A distributed array, block by cyclic, with two-phase operations or without. */
static void darrays(void)
{
	enum { N = 24, M = 18 };
	const char *hint[] = {"enable", "disable", "automatic", "nonsense"};
	int dims[2] = {0, 0}, n[2] = {N, M}, dist[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
	int arg[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
	MUST(MPI_Dims_create(size, 2, dims));
	for (int k = 0; k < 4; k++) {
		MPI_File f = open_new("darray");
		MPI_Datatype filetype;
		MPI_Info info, used;
		MPI_Status s;
		int bytes, i, flag;
		char value[64];
		MUST(MPI_Info_create(&info));
		MUST(MPI_Info_set(info, "collective_buffering", hint[k]));
		MUST(MPI_Info_set(info, "cb_buffer_size", "500"));
		MUST(MPI_Type_create_darray(size, rank, 2, n, dist, arg, dims, MPI_ORDER_FORTRAN, MPI_INT, &filetype));
		MUST(MPI_Type_commit(&filetype));
		MUST(MPI_Type_size(filetype, &bytes));
		MUST(MPI_File_set_view(f, 0, MPI_INT, filetype, "internal", info));
		MUST(MPI_File_get_info(f, &used));
		MUST(MPI_Info_get(used, "cb_buffer_size", 63, value, &flag));
		CHECK(flag && strcmp(value, "500") == 0, "cb_buffer_size %s", flag ? value : "not set");
		MUST(MPI_Info_free(&used));
		MUST(MPI_Info_free(&info));
		int *mine = calloc(bytes, 1), *back = calloc(bytes, 1);
		for (i = 0; i < bytes / 4; i++) {
			MPI_Offset at;
			MUST(MPI_File_get_byte_offset(f, i, &at));
			mine[i] = by_place((int)(at / 4));
		}
		MUST(MPI_File_write_all(f, mine, bytes / 4, MPI_INT, &s));
		count_is(&s, MPI_INT, bytes / 4, "darray");
		MUST(MPI_File_sync(f));
		MUST(MPI_Barrier(MPI_COMM_WORLD));
		MUST(MPI_File_read_at_all(f, 0, back, bytes / 4, MPI_INT, &s));
		CHECK(bytes == 0 || memcmp(mine, back, bytes) == 0, "%s: read something else", hint[k]);
		free(mine);
		free(back);
		MUST(MPI_Type_free(&filetype));
		file_is(f, 0, N * M, by_place, hint[k]);
		MUST(MPI_File_close(&f));
	}
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	subarrays();
	vectors();
	darrays();
	done();
	MPI_Finalize();
	return 0;
}
