// Communicators: constructors, intercommunicators, names, info, comparing, freeing.
// cabi: ranks=1,2,4
#include "check.h"

#define HOLDS(x) CHECK(x, "does not hold")

static void intracommunicators(int rank, int size)
{
	MPI_Comm c, d;
	int n, r, len, flag;
	char name[MPI_MAX_OBJECT_NAME];

	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	MPI_Comm_compare(MPI_COMM_WORLD, c, &n);
	HOLDS(n == MPI_CONGRUENT);
	MPI_Comm_compare(c, c, &n);
	HOLDS(n == MPI_IDENT);
	MPI_Comm_get_name(c, name, &len);
	HOLDS(len == 0 && name[0] == 0);
	MPI_Comm_set_name(c, "mine");
	MPI_Comm_get_name(c, name, &len);
	HOLDS(len == 4 && strcmp(name, "mine") == 0);

	/* the ranks in reverse order */
	MPI_Comm_split(c, 0, -rank, &d);
	MPI_Comm_rank(d, &r);
	HOLDS(r == size - 1 - rank);
	MPI_Comm_compare(c, d, &n);
	HOLDS(n == (size > 1 ? MPI_SIMILAR : MPI_CONGRUENT));
	MPI_Comm_free(&d);
	HOLDS(d == MPI_COMM_NULL);

	/* even and odd ranks, and the last one not at all */
	MPI_Comm_split(c, rank == size - 1 ? MPI_UNDEFINED : rank % 2, rank, &d);
	if (rank == size - 1) {
		HOLDS(d == MPI_COMM_NULL);
	} else {
		MPI_Comm_rank(d, &r);
		MPI_Comm_size(d, &n);
		HOLDS(r == rank / 2 && n == (size - 1 + 1 - rank % 2) / 2);
		MPI_Comm_free(&d);
	}

	MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &d);
	HOLDS(d != MPI_COMM_NULL);
	MPI_Comm_size(d, &n);
	HOLDS(n == size);
	MPI_Comm_free(&d);
	MPI_Comm_split_type(c, rank ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0, MPI_INFO_NULL, &d);
	HOLDS((d == MPI_COMM_NULL) == (rank == 0));
	if (d != MPI_COMM_NULL)
		MPI_Comm_free(&d);

	MPI_Info info, used;
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
	MPI_Comm_dup_with_info(c, info, &d);
	MPI_Info_free(&info);
	MPI_Comm_get_info(d, &used);
	MPI_Info_get(used, "mpi_assert_no_any_tag", MPI_MAX_INFO_VAL - 1, name, &flag);
	HOLDS(flag && strcmp(name, "true") == 0);
	MPI_Info_free(&used);
	MPI_Comm_free(&d);

	MPI_Request req;
	MPI_Comm_idup(c, &d, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Comm_compare(c, d, &n);
	HOLDS(n == MPI_CONGRUENT && req == MPI_REQUEST_NULL);
	MPI_Comm_free(&d);
	MPI_Comm_idup_with_info(c, MPI_INFO_NULL, &d, &req);
	MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
	HOLDS(flag);
	MPI_Comm_free(&d);
	MPI_Comm_free(&c);
}

/* Two halves give different groups in one call (MPI-4.1, 7.4.2). */
static void subgroups(int rank, int size)
{
	MPI_Group world, half;
	MPI_Comm c;
	int r, n, range[1][3] = {{0, size / 2 - 1, 1}};

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	if (size == 1) {
		MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c);
		HOLDS(c == MPI_COMM_NULL);
		MPI_Group_free(&world);
		return;
	}
	if (rank >= size / 2)
		range[0][0] = size - 1, range[0][1] = size / 2, range[0][2] = -1;
	MPI_Group_range_incl(world, 1, range, &half);
	MPI_Comm_create(MPI_COMM_WORLD, half, &c);
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &n);
	HOLDS(r == (rank < size / 2 ? rank : size - 1 - rank));
	HOLDS(n == (rank < size / 2 ? size / 2 : size - size / 2));
	MPI_Comm_free(&c);

	MPI_Comm_create(MPI_COMM_WORLD, rank < size / 2 ? half : MPI_GROUP_EMPTY, &c);
	HOLDS((c == MPI_COMM_NULL) == (rank >= size / 2));
	if (c != MPI_COMM_NULL)
		MPI_Comm_free(&c);

	/* only the members call it */
	MPI_Comm_create_group(MPI_COMM_WORLD, half, 17, &c);
	MPI_Comm_size(c, &n);
	HOLDS(n == (rank < size / 2 ? size / 2 : size - size / 2));
	MPI_Comm_free(&c);
	MPI_Group_free(&half);
	MPI_Group_free(&world);
}

static void intercommunicators(int rank, int size)
{
	MPI_Comm half, inter, merged, part;
	MPI_Group mine, theirs, both;
	int n, m, flag, low = rank < size / 2;

	if (size == 1)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
	MPI_Intercomm_create(half, 0, low ? MPI_COMM_WORLD : MPI_COMM_WORLD, low ? size / 2 : 0, 5, &inter);
	MPI_Comm_test_inter(inter, &flag);
	MPI_Comm_remote_size(inter, &n);
	HOLDS(flag && n == (low ? size - size / 2 : size / 2));
	MPI_Comm_group(inter, &mine);
	MPI_Comm_remote_group(inter, &theirs);
	MPI_Group_union(mine, theirs, &both);
	MPI_Group_size(both, &n);
	HOLDS(n == size);
	MPI_Group_intersection(mine, theirs, &both);
	HOLDS(both == MPI_GROUP_EMPTY);

	MPI_Intercomm_merge(inter, !low, &merged);
	MPI_Comm_rank(merged, &n);
	MPI_Comm_size(merged, &m);
	HOLDS(n == rank && m == size);
	MPI_Comm_free(&merged);

	/* of the first of both groups alone */
	int first = 0;
	MPI_Group one;
	MPI_Group_incl(mine, 1, &first, &one);
	MPI_Comm_create(inter, one, &part);
	MPI_Comm_rank(inter, &n);
	HOLDS((part == MPI_COMM_NULL) == (n != 0));
	if (part != MPI_COMM_NULL) {
		MPI_Comm_remote_size(part, &n);
		HOLDS(n == 1);
		MPI_Comm_free(&part);
	}
	MPI_Comm_split(inter, 0, 0, &part);
	MPI_Comm_compare(inter, part, &n);
	HOLDS(n == MPI_CONGRUENT);
	MPI_Comm_free(&part);
	MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
	MPI_Comm_compare(inter, part, &n);
	HOLDS(n == MPI_CONGRUENT); /* all are on one host */
	MPI_Comm_free(&part);
	MPI_Comm_split_type(inter, MPI_UNDEFINED, 0, MPI_INFO_NULL, &part);
	HOLDS(part == MPI_COMM_NULL);
	MPI_Comm_dup(inter, &part);
	MPI_Comm_compare(inter, part, &n);
	HOLDS(n == MPI_CONGRUENT);
	MPI_Comm_compare(inter, half, &n);
	HOLDS(n == MPI_UNEQUAL);
	MPI_Comm_free(&part);
	MPI_Group_free(&one);
	MPI_Group_free(&mine);
	MPI_Group_free(&theirs);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/* More communicators than a table has room for at a time, one after the other. */
static void many(void)
{
	MPI_Comm c, last = MPI_COMM_NULL;
	for (int i = 0; i < 2000; i++) {
		MPI_Comm_dup(i % 2 ? MPI_COMM_SELF : MPI_COMM_WORLD, &c);
		HOLDS(c != last);
		if (last != MPI_COMM_NULL)
			MPI_Comm_free(&last);
		last = c;
	}
	MPI_Comm_free(&last);
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	intracommunicators(rank, size);
	subgroups(rank, size);
	intercommunicators(rank, size);
	many();
	done();
	MUST(MPI_Finalize());
	return 0;
}
