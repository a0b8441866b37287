// Sessions, without MPI_Init.
// cabi: ranks=1,2,4
#include "check.h"

#define HOLDS(x) CHECK(x, "does not hold")

int main(int argc, char **argv)
{
	MPI_Session s, t;
	MPI_Group g;
	MPI_Comm c, d;
	MPI_Info info;
	int n, len, rank, size, flag, world = 0;
	char name[MPI_MAX_PSET_NAME_LEN], value[MPI_MAX_INFO_VAL];

	MUST(MPI_Info_create(&info));
	MUST(MPI_Info_set(info, "thread_level", "MPI_THREAD_DOZEN"));
	HOLDS(MPI_Session_init(info, MPI_ERRORS_RETURN, &s) != MPI_SUCCESS);
	MUST(MPI_Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED"));
	MUST(MPI_Session_init(info, MPI_ERRORS_RETURN, &s));
	MUST(MPI_Session_finalize(&s));
	MUST(MPI_Info_free(&info));
	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	MUST(MPI_Session_get_info(s, &info));
	MUST(MPI_Info_get(info, "thread_level", sizeof value - 1, value, &flag));
	HOLDS(flag);
	MUST(MPI_Info_free(&info));
	MUST(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
	for (int i = 0; i < n; i++) {
		len = 0;
		MUST(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name));
		HOLDS(len > 1 && len <= (int)sizeof name);
		MUST(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, name));
		HOLDS((int)strlen(name) == len - 1);
		world |= strcmp(name, "mpi://WORLD") == 0;
	}
	HOLDS(world);
	FAILS(MPI_ERR_ARG, MPI_Session_get_nth_pset(s, MPI_INFO_NULL, n, &len, name));
	FAILS(MPI_ERR_ARG, MPI_Group_from_session_pset(s, "none://such", &g));
	HOLDS(g == MPI_GROUP_NULL);

	MUST(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
	MUST(MPI_Group_rank(g, &rank));
	MUST(MPI_Group_size(g, &size));
	MUST(MPI_Session_get_pset_info(s, "mpi://WORLD", &info));
	MUST(MPI_Info_get(info, "mpi_size", sizeof value - 1, value, &flag));
	HOLDS(flag && atoi(value) == size);
	MUST(MPI_Info_free(&info));
	MUST(MPI_Comm_create_from_group(g, "weft.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	MUST(MPI_Comm_rank(c, &n));
	HOLDS(n == rank);
	MUST(MPI_Barrier(c));

	// a second session at the same time, and an intercommunicator of two halves in it
	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &t));
	if (size > 1) {
		MPI_Group w, low, high;
		int range[1][3] = {{0, size / 2 - 1, 1}};
		MUST(MPI_Group_from_session_pset(t, "mpi://WORLD", &w));
		MUST(MPI_Group_range_incl(w, 1, range, &low));
		MUST(MPI_Group_difference(w, low, &high));
		int first = rank < size / 2;
		MUST(MPI_Intercomm_create_from_groups(first ? low : high, 0, first ? high : low, 0, "weft.halves", MPI_INFO_NULL,
			MPI_ERRORS_RETURN, &d));
		MUST(MPI_Comm_remote_size(d, &n));
		HOLDS(n == (first ? size - size / 2 : size / 2));
		MUST(MPI_Comm_free(&d));
		MUST(MPI_Group_free(&w));
		MUST(MPI_Group_free(&low));
		MUST(MPI_Group_free(&high));
	}
	MUST(MPI_Session_finalize(&t));
	HOLDS(t == MPI_SESSION_NULL);
	MUST(MPI_Barrier(c));
	MUST(MPI_Comm_free(&c));
	MUST(MPI_Group_free(&g));
	MUST(MPI_Session_finalize(&s));
	MUST(MPI_Initialized(&flag));
	if (flag)
		return 5;
	if (rank == 0)
		puts("ok");
	return 0;
}
