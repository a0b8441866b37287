// The root of a broadcast only reads its buffer, also items with gaps.
// cabi: ranks=1,3
#include "check.h"
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	int *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED, "no memory");
	MPI_Datatype pairs;
	MUST(MPI_Type_vector(100, 1, 2, MPI_INT, &pairs));
	MUST(MPI_Type_commit(&pairs));
	for (int root = 0; root < size; root++)
		for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
			MPI_Request r;
			CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0, "mprotect");
			for (int i = 0; i < 200; i++)
				page[i] = rank == root ? 7 * root + i : -1;
			if (rank == root)
				CHECK(mprotect(page, 4096, PROT_READ) == 0, "mprotect");
			if (nonblocking) {
				MUST(MPI_Ibcast(page, 1, pairs, root, MPI_COMM_WORLD, &r));
				MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
			} else {
				MUST(MPI_Bcast(page, 1, pairs, root, MPI_COMM_WORLD));
			}
			for (int i = 0; i < 199; i++) {
				int want = rank == root || i % 2 == 0 ? 7 * root + i : -1;
				CHECK(page[i] == want, "number %d is %d, want %d", i, page[i], want);
			}
		}
	MUST(MPI_Type_free(&pairs));
	MUST(MPI_Finalize());
	if (rank == 0)
		puts("ok");
	return 0;
}
