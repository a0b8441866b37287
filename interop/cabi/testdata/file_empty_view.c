/* Views of ranks that own nothing of the file: filetypes without data.
 * cabi: ranks=1,2,4 */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, amount;
	char name[4096];
	MPI_File f;
	MPI_Status s;
	MPI_Datatype t;
	MPI_Offset at = -1;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	snprintf(name, sizeof name, "%s/weft-empty-view-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (long)getpid());
	MUST(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
	MUST(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));

	/* The even ranks own a block of two numbers each. */
	int own = rank % 2 == 0, length = 2, place = rank, v[2] = {10 * rank, 10 * rank + 1}, back[2] = {-1, -1};
	MUST(MPI_Type_indexed(own, &length, &place, MPI_INT, &t));
	MUST(MPI_Type_commit(&t));
	MUST(MPI_File_set_view(f, 0, MPI_INT, t, "native", MPI_INFO_NULL));
	MUST(MPI_File_write_all(f, v, 2 * own, MPI_INT, &s));
	MUST(MPI_Get_count(&s, MPI_INT, &amount));
	CHECK(amount == 2 * own, "%d numbers are written", amount);
	MUST(MPI_File_read_at_all(f, 0, back, 2 * own, MPI_INT, &s));
	CHECK(back[0] == (own ? v[0] : -1) && back[1] == (own ? v[1] : -1), "%d %d", back[0], back[1]);
	MUST(MPI_File_get_position(f, &at));
	CHECK(at == 2 * own, "the pointer is at %lld", (long long)at);
	if (own) {
		MUST(MPI_File_get_byte_offset(f, 0, &at));
		CHECK(at == 4 * rank, "the view begins at %lld", (long long)at);
	} else {
		MUST(MPI_File_seek(f, 0, MPI_SEEK_END));
		MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
		CHECK(MPI_File_write(f, v, 1, MPI_INT, &s) != MPI_SUCCESS, "a number is written to nowhere");
	}
	MUST(MPI_File_close(&f));
	MUST(MPI_Type_free(&t));
	MUST(MPI_Finalize());
	if (rank == 0)
		puts("ok");
	return 0;
}
