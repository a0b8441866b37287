// What every program does: start, ask who and where it is, end.
// cabi: ranks=1,2,8
#include "check.h"

int main(int argc, char **argv)
{
	int flag = -1, rank = -1, size = 0, length = 0, version = 0, subversion = 0, major = 0, minor = -1, provided = -1;
	char name[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];

	MUST(MPI_Initialized(&flag));
	CHECK(flag == 0, "MPI_Initialized before MPI_Init: %d", flag);
	MUST(MPI_Get_version(&version, &subversion));
	CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION, "version %d.%d", version, subversion);

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Initialized(&flag));
	CHECK(flag != 0, "MPI_Initialized after MPI_Init: %d", flag);
	MUST(MPI_Finalized(&flag));
	CHECK(flag == 0, "MPI_Finalized before MPI_Finalize: %d", flag);
	MUST(MPI_Query_thread(&provided));
	CHECK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE, "thread level %d", provided);

	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	CHECK(rank >= 0 && rank < size, "rank %d of %d", rank, size);
	MUST(MPI_Comm_rank(MPI_COMM_SELF, &flag));
	CHECK(flag == 0, "rank %d in MPI_COMM_SELF", flag);
	MUST(MPI_Comm_size(MPI_COMM_SELF, &flag));
	CHECK(flag == 1, "%d ranks in MPI_COMM_SELF", flag);

	MUST(MPI_Get_processor_name(name, &length));
	CHECK(length > 0 && (int)strlen(name) == length, "processor name %s of %d bytes", name, length);
	MUST(MPI_Get_library_version(library, &length));
	CHECK(strstr(library, "weft") != NULL && (int)strlen(library) == length, "library version %s of %d bytes", library, length);
	MUST(MPI_Abi_get_version(&major, &minor));
	CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION, "ABI %d.%d", major, minor);

	double tick = MPI_Wtick(), begin = MPI_Wtime(), end = begin;
	CHECK(tick > 0 && tick <= 1e-3, "a tick of %g s", tick);
	while (end == begin)
		end = MPI_Wtime();
	CHECK(end > begin && end - begin < 1, "from %.9f to %.9f", begin, end);

	int here = 0;
	MPI_Aint a, b;
	int ints[10];
	MUST(MPI_Get_address(&ints[0], &a));
	MUST(MPI_Get_address(&ints[7], &b));
	CHECK(MPI_Aint_diff(b, a) == 7 * sizeof(int) && MPI_Aint_add(a, 7 * sizeof(int)) == b, "addresses %ld and %ld", (long)a, (long)b);

	CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD, "MPI_COMM_WORLD to Fortran and back");
	CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE, "MPI_DOUBLE to int and back");
	CHECK(MPI_Comm_c2f(MPI_COMM_WORLD) == 257, "MPI_COMM_WORLD in Fortran: %d", MPI_Comm_c2f(MPI_COMM_WORLD));

	MPI_Status s = {0}, back = {0};
	MPI_Fint f[MPI_F_STATUS_SIZE];
	s.MPI_SOURCE = 3, s.MPI_TAG = 4, s.MPI_ERROR = MPI_ERR_TRUNCATE;
	MUST(MPI_Status_c2f(&s, f));
	CHECK(f[MPI_F_SOURCE] == 3 && f[MPI_F_TAG] == 4 && f[MPI_F_ERROR] == MPI_ERR_TRUNCATE, "status in Fortran: %d %d %d", f[0], f[1], f[2]);
	MUST(MPI_Status_f2c(f, &back));
	CHECK(memcmp(&s, &back, sizeof s) == 0, "a status differs after a way through Fortran");

	MUST(MPI_Allreduce(&rank, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(here == size * (size - 1) / 2, "the sum of the ranks is %d", here);
	done();

	MUST(MPI_Finalize());
	MUST(MPI_Finalized(&flag));
	CHECK(flag != 0, "MPI_Finalized after MPI_Finalize: %d", flag);
	return 0;
}
