/* The shared file pointer, operations in the order of the ranks, sequential files, atomic mode, and the
 * other calls about whole files.
 * cabi: ranks=1,2,4 transports=shm,tcp */
#include "check.h"
#include <unistd.h>

static int rank, size;
static char name[4096];

static void count_is(const MPI_Status *s, int want, const char *what)
{
	int n = -1;
	MUST(MPI_Get_count(s, MPI_INT, &n));
	CHECK(n == want, "%s: count %d, want %d", what, n, want);
}

static void open_with(int amode, MPI_File *f)
{
	MUST(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, f));
}

/* Records of all ranks, each once. */
static void shared(void)
{
	enum { N = 20 };
	MPI_File f;
	MPI_Request r;
	MPI_Status s;
	MPI_Offset pos;
	open_with(MPI_MODE_RDWR | MPI_MODE_CREATE, &f);
	MUST(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	for (int i = 0; i < N; i++) {
		int record[2] = {rank, i};
		if (i % 2) {
			MUST(MPI_File_write_shared(f, record, 2, MPI_INT, &s));
		} else {
			MUST(MPI_File_iwrite_shared(f, record, 2, MPI_INT, &r));
			MUST(MPI_Wait(&r, &s));
		}
		count_is(&s, 2, "write_shared");
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	{ /* The call that starts an operation moves the pointer. */
		enum { M = 100 };
		MPI_File own;
		MPI_Request many[M];
		int v[M], back[M];
		char file[4200];
		snprintf(file, sizeof file, "%s.%d", name, rank);
		MUST(MPI_File_open(MPI_COMM_SELF, file, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &own));
		MUST(MPI_File_set_view(own, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
		for (int i = 0; i < M; i++) {
			v[i] = 1000 * rank + i;
			MUST(MPI_File_iwrite_shared(own, v + i, 1, MPI_INT, many + i));
		}
		MUST(MPI_File_get_position_shared(own, &pos));
		CHECK(pos == M, "shared pointer at %lld after %d calls", (long long)pos, M);
		MUST(MPI_Waitall(M, many, MPI_STATUSES_IGNORE));
		MUST(MPI_File_read_at(own, 0, back, M, MPI_INT, &s));
		for (int i = 0; i < M; i++)
			CHECK(back[i] == v[i], "number %d is %d", i, back[i]);
		MUST(MPI_File_close(&own));
	}
	MUST(MPI_File_get_position_shared(f, &pos));
	CHECK(pos == 2 * N * size, "shared pointer at %lld", (long long)pos);
	int *all = calloc(2 * N * size, sizeof(int)), *seen = calloc(N * size, sizeof(int));
	MUST(MPI_File_read_at_all(f, 0, all, 2 * N * size, MPI_INT, &s));
	for (int i = 0; i < N * size; i++) {
		int who = all[2 * i], what = all[2 * i + 1];
		CHECK(who >= 0 && who < size && what >= 0 && what < N && !seen[who * N + what]++, "record %d %d", who, what);
	}
	MUST(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
	int got = 0, mine[2];
	for (;;) {
		int n;
		MUST(MPI_File_read_shared(f, mine, 2, MPI_INT, &s));
		MUST(MPI_Get_count(&s, MPI_INT, &n));
		if (n == 0)
			break;
		got++;
	}
	MUST(MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(got == N * size, "%d records read, want %d", got, N * size);
	/* In the order of the ranks, rank i writes i+1 numbers. */
	MUST(MPI_File_set_size(f, 0));
	MUST(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
	for (int i = 0; i <= rank; i++)
		all[i] = 100 * rank + i;
	MUST(MPI_File_write_ordered(f, all, rank + 1, MPI_INT, &s));
	count_is(&s, rank + 1, "write_ordered");
	MUST(MPI_File_write_ordered_begin(f, all, rank + 1, MPI_INT));
	MUST(MPI_File_write_ordered_end(f, all, &s));
	int sum = size * (size + 1) / 2, first = rank * (rank + 1) / 2;
	MUST(MPI_File_get_position_shared(f, &pos));
	CHECK(pos == 2 * sum, "at %lld, want %d", (long long)pos, 2 * sum);
	MUST(MPI_File_sync(f));
	MUST(MPI_File_seek_shared(f, -sum, MPI_SEEK_END));
	memset(all, 0, 4 * (rank + 1));
	MUST(MPI_File_read_ordered(f, all, rank + 1, MPI_INT, &s));
	count_is(&s, rank + 1, "read_ordered");
	for (int i = 0; i <= rank; i++)
		CHECK(all[i] == 100 * rank + i, "number %d is %d", i, all[i]);
	MUST(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
	MUST(MPI_File_read_ordered_begin(f, all, rank + 1, MPI_INT));
	MUST(MPI_File_read_ordered_end(f, all, &s));
	MUST(MPI_File_iread_at(f, first, seen, 1, MPI_INT, &r));
	MUST(MPI_Wait(&r, &s));
	CHECK(all[0] == 100 * rank && seen[0] == all[0], "read %d and %d", all[0], seen[0]);
	free(all);
	free(seen);
	MUST(MPI_File_close(&f));
}

/* A file without offsets: views begin where the shared pointer is. */
static void sequential(void)
{
	MPI_File f;
	MPI_Status s;
	int x[2] = {10 + rank, 20 + rank};
	open_with(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL, &f);
	MUST(MPI_File_write_ordered(f, x, 4, MPI_BYTE, &s));
	FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	MUST(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	MUST(MPI_File_write_ordered(f, x + 1, 1, MPI_INT, &s));
	MPI_Offset byte = -1; /* the view begins behind what the ranks have written before */
	MUST(MPI_File_get_byte_offset(f, 0, &byte));
	CHECK(byte == 4 * size, "the view begins at %lld", (long long)byte);
	FAILS(MPI_ERR_ACCESS, MPI_File_read_shared(f, x, 1, MPI_INT, &s));
	FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(f, 0, MPI_SEEK_SET));
	FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_write_at_all(f, 0, x, 1, MPI_INT, &s));
	MUST(MPI_File_close(&f));
	open_with(MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE, &f);
	int amode;
	MUST(MPI_File_get_amode(f, &amode));
	CHECK(amode == (MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE), "amode %#x", amode);
	for (int round = 1; round <= 2; round++) {
		int y = -1;
		MUST(MPI_File_read_ordered(f, &y, 4, MPI_BYTE, &s));
		CHECK(y == 10 * round + rank, "round %d: %d", round, y);
	}
	FAILS(MPI_ERR_READ_ONLY, MPI_File_write_shared(f, x, 1, MPI_INT, &s));
	MUST(MPI_File_close(&f));
	FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
	CHECK(f == MPI_FILE_NULL, "not null");
}

/* Sizes, appending, the group, atomic mode. */
static void whole(void)
{
	MPI_File f;
	MPI_Status s;
	MPI_Offset n;
	MPI_Group g, world;
	int flag, same, x = 7;
	open_with(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_UNIQUE_OPEN, &f);
	FAILS(MPI_ERR_ARG, MPI_File_set_size(f, -1));
	MUST(MPI_File_set_size(f, 100));
	MUST(MPI_File_preallocate(f, 5000));
	MUST(MPI_File_get_size(f, &n));
	CHECK(n == 5000, "%lld bytes", (long long)n);
	MUST(MPI_File_get_group(f, &g));
	MUST(MPI_Comm_group(MPI_COMM_WORLD, &world));
	MUST(MPI_Group_compare(g, world, &same));
	CHECK(same == MPI_IDENT, "groups: %d", same);
	MUST(MPI_Group_free(&g));
	MUST(MPI_Group_free(&world));
	MUST(MPI_File_get_atomicity(f, &flag));
	CHECK(!flag, "atomic");
	MUST(MPI_File_set_atomicity(f, 1));
	MUST(MPI_File_get_atomicity(f, &flag));
	CHECK(flag, "not atomic");
	/* All ranks write the same ten numbers with gaps: what is read is from one of them. */
	MPI_Datatype spread;
	int ten[10], back[10];
	MUST(MPI_Type_create_resized(MPI_INT, 0, 64, &spread));
	MUST(MPI_Type_commit(&spread));
	MUST(MPI_File_set_view(f, 0, MPI_INT, spread, "native", MPI_INFO_NULL));
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 10; i++)
			ten[i] = 1000 * round + rank;
		MUST(MPI_File_write_at(f, 0, ten, 10, MPI_INT, &s));
		MUST(MPI_File_read_at(f, 0, back, 10, MPI_INT, &s));
		for (int i = 1; i < 10; i++)
			CHECK(back[i] == back[0], "numbers %d and %d of two writes", back[0], back[i]);
	}
	MUST(MPI_Type_free(&spread));
	MUST(MPI_File_close(&f));
	open_with(MPI_MODE_WRONLY | MPI_MODE_APPEND, &f);
	MUST(MPI_File_get_position(f, &n));
	CHECK(n == 5000, "at %lld", (long long)n);
	MUST(MPI_File_write_ordered(f, &x, 1, MPI_INT, &s));
	MUST(MPI_File_get_size(f, &n));
	MUST(MPI_File_close(&f));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == 0)
		MUST(MPI_File_delete(name, MPI_INFO_NULL));
	if (rank == 0)
		FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(name, MPI_INFO_NULL));
}

int main(int argc, char **argv)
{
	const char *dir = getenv("TMPDIR");
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	if (rank == 0)
		snprintf(name, sizeof name, "%s/shared-%ld", dir ? dir : "/tmp", (long)getpid());
	MUST(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	shared();
	if (rank == 0)
		MUST(MPI_File_delete(name, MPI_INFO_NULL));
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	sequential();
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	whole();
	done();
	MPI_Finalize();
	return 0;
}
