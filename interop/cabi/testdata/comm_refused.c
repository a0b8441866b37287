// One rank refuses a collective that makes an object, for its arguments: nobody hangs, all ranks or, where the call does
// not communicate, this one alone get an error, and afterwards all calls work.
// cabi: ranks=2,3 transports=shm,sctp
#include "check.h"

static int rank, size, last;

/* BOTH(call with wrong arguments, right call, handle, null): no rank gets an object. */
#define BOTH(wrong, right, handle, null) \
	do { \
		int code_ = last ? (wrong) : (right); \
		CHECK(code_ != MPI_SUCCESS, "rank %d: no error from %s", rank, last ? #wrong : #right); \
		CHECK(last || (handle) == (null), "rank %d: %s has made something", rank, #right); \
	} while (0)

static void communicators(MPI_Comm c)
{
	MPI_Comm n = MPI_COMM_NULL, half;
	MPI_Group all;
	MPI_Request r = MPI_REQUEST_NULL;
	int two[2] = {2, -1}, one[1] = {size}, zero[1] = {0}, far[1] = {77}, index[3] = {0, 0, 0};
	MPI_Info bad = (MPI_Info)999;

	MUST(MPI_Comm_group(c, &all));
	BOTH(MPI_Comm_split(c, -3, 0, &n), MPI_Comm_split(c, 1, 0, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Comm_split(c, 1, 0, NULL), MPI_Comm_split(c, 1, 0, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Comm_split_type(c, 12345, 0, MPI_INFO_NULL, &n), MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, bad, &n), MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Comm_create(c, MPI_GROUP_NULL, &n), MPI_Comm_create(c, all, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Cart_create(c, -1, two, two, 0, &n), MPI_Cart_create(c, 1, one, zero, 0, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Cart_create(c, 1, NULL, zero, 0, &n), MPI_Cart_create(c, 1, one, zero, 0, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Graph_create(c, -1, index, index, 0, &n), MPI_Graph_create(c, size, index, index, 0, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Dist_graph_create_adjacent(c, 1, far, MPI_UNWEIGHTED, 0, far, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &n),
	     MPI_Dist_graph_create_adjacent(c, 0, far, MPI_UNWEIGHTED, 0, far, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Dist_graph_create(c, 1, zero, far, far, MPI_UNWEIGHTED, bad, 0, &n),
	     MPI_Dist_graph_create(c, 0, zero, zero, zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &n), n, MPI_COMM_NULL);
	/* Leaders wait for each other only when their groups agree. */
	MUST(MPI_Comm_split(c, 0, rank, &half));
	MUST(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
	BOTH(MPI_Intercomm_create(half, 99, c, 0, 1, &n), MPI_Intercomm_create(half, 0, c, 0, 1, &n), n, MPI_COMM_NULL);
	MUST(MPI_Comm_free(&half));

	/* These are counted, and do not communicate. */
	if (last) {
		FAILS(MPI_ERR_INFO, MPI_Comm_dup_with_info(c, bad, &n));
		FAILS(MPI_ERR_ARG, MPI_Comm_dup(c, NULL));
		FAILS(MPI_ERR_ARG, MPI_Comm_idup(c, &n, NULL));
		FAILS(MPI_ERR_COUNT, MPI_Bcast_init(far, -1, MPI_INT, 0, c, MPI_INFO_NULL, &r));
	} else {
		for (int i = 0; i < 3; i++) {
			MUST(MPI_Comm_dup(c, &n));
			MUST(MPI_Comm_free(&n));
		}
		MUST(MPI_Bcast_init(far, 1, MPI_INT, 0, c, MPI_INFO_NULL, &r));
		MUST(MPI_Request_free(&r));
	}
	int sum;
	MUST(MPI_Comm_dup(c, &n));
	MUST(MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, n));
	CHECK(sum == size * size, "the sum is %d", sum);
	MUST(MPI_Comm_free(&n));
	MUST(MPI_Cart_create(c, 1, one, zero, 0, &n));
	MUST(MPI_Comm_set_errhandler(n, MPI_ERRORS_RETURN));
	half = MPI_COMM_NULL;
	BOTH(MPI_Cart_sub(n, NULL, &half), MPI_Cart_sub(n, one, &half), half, MPI_COMM_NULL);
	MUST(MPI_Comm_free(&n));
	MUST(MPI_Group_free(&all));
}

/* The first rank, and the others, of whom the last refuses: it is their leader with two ranks. */
static void intercommunicators(MPI_Comm c)
{
	MPI_Comm half, both, n = MPI_COMM_NULL;
	MPI_Group all, own;
	int sum, i, first[1] = {0}, peer = rank > 0 ? 0 : 1;

	MUST(MPI_Comm_split(c, rank > 0, rank, &half));
	MUST(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
	for (i = 0; i < 2; i++)
		BOTH(MPI_Intercomm_create(half, 0, c, peer, 5, NULL), MPI_Intercomm_create(half, 0, c, peer, 5, &n), n, MPI_COMM_NULL);
	if (size > 2) { /* a member; a leader that does not know its own tag cannot tell the other group */
		BOTH(MPI_Intercomm_create(half, 0, c, peer, -5, &n), MPI_Intercomm_create(half, 0, c, peer, 5, &n), n, MPI_COMM_NULL);
		BOTH(MPI_Intercomm_create(half, 1, c, peer, 5, &n), MPI_Intercomm_create(half, 0, c, peer, 5, &n), n, MPI_COMM_NULL);
	}
	for (i = 0; size > 3 && i < 2; i++) { /* their rank 0 has another leader than the others: itself, or none */
		int leader = rank > 1, code;
		if (rank == 1)
			leader = i ? -1 : 0;
		code = MPI_Intercomm_create(half, leader, c, rank > 0 ? 0 : 2, 5, &n);
		CHECK(code != MPI_SUCCESS && n == MPI_COMM_NULL, "rank %d: code %d", rank, code);
	}
	MUST(MPI_Intercomm_create(half, 0, c, peer, 5, &both));
	MUST(MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN));
	for (i = 0; i < 2; i++)
		BOTH(MPI_Intercomm_merge(both, rank > 0, NULL), MPI_Intercomm_merge(both, rank > 0, &n), n, MPI_COMM_NULL);
	if (size > 2)
		BOTH(MPI_Intercomm_merge(both, 0, &n), MPI_Intercomm_merge(both, rank > 0, &n), n, MPI_COMM_NULL);
	MUST(MPI_Comm_group(both, &own));
	BOTH(MPI_Comm_create(both, MPI_GROUP_NULL, &n), MPI_Comm_create(both, own, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Comm_split(both, -3, 0, &n), MPI_Comm_split(both, 1, 0, &n), n, MPI_COMM_NULL);
	MUST(MPI_Comm_create(both, own, &n));
	MUST(MPI_Comm_free(&n));
	MUST(MPI_Intercomm_merge(both, rank > 0, &n));
	MUST(MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, n));
	CHECK(sum == size * size, "the sum is %d", sum);
	MUST(MPI_Comm_free(&n));
	MUST(MPI_Comm_free(&both));
	MUST(MPI_Comm_free(&half));

	/* Groups. The calls of sessions do not communicate between the groups. */
	MUST(MPI_Comm_group(c, &all));
	for (i = 0; i < 2; i++)
		BOTH(MPI_Comm_create_group(c, all, 7, NULL), MPI_Comm_create_group(c, all, 7, &n), n, MPI_COMM_NULL);
	MUST(MPI_Comm_create_group(c, all, 7, &n));
	MUST(MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, n));
	CHECK(sum == size * size, "the sum is %d", sum);
	MUST(MPI_Comm_free(&n));
	if (last) {
		FAILS(MPI_ERR_INFO, MPI_Comm_create_from_group(all, "all", (MPI_Info)999, MPI_ERRORS_RETURN, &n));
		FAILS(MPI_ERR_ARG, MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL));
	} else {
		for (i = 0; i < 2; i++) {
			MUST(MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &n));
			MUST(MPI_Comm_free(&n));
		}
	}
	MUST(MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &n));
	MUST(MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, n));
	CHECK(sum == size * size, "the sum is %d", sum);
	MUST(MPI_Comm_free(&n));

	MPI_Group one, others, other;
	MUST(MPI_Group_incl(all, 1, first, &one));
	MUST(MPI_Group_excl(all, 1, first, &others));
	MUST(MPI_Group_free(&own));
	own = rank > 0 ? others : one;
	other = rank > 0 ? one : others;
	for (i = 0; i < 2; i++) {
		int code = MPI_Intercomm_create_from_groups(own, 0, other, 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, last ? NULL : &n);
		CHECK((code == MPI_SUCCESS) == (rank == 0), "rank %d: code %d", rank, code);
		if (rank == 0)
			MUST(MPI_Comm_free(&n));
	}
	/* Another leader counts on where the first one was. */
	MUST(MPI_Intercomm_create_from_groups(own, rank ? size - 2 : 0, other, 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &n));
	i = rank + 1;
	MUST(MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, n));
	CHECK(sum == (rank ? 1 : size * (size + 1) / 2 - 1), "the sum is %d", sum);
	MUST(MPI_Comm_free(&n));
	MUST(MPI_Group_free(&one));
	MUST(MPI_Group_free(&others));
	MUST(MPI_Group_free(&all));

	/* Processes. */
	BOTH(MPI_Comm_spawn("none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 99, c, &n, MPI_ERRCODES_IGNORE),
	     MPI_Comm_spawn("none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, c, &n, MPI_ERRCODES_IGNORE), n, MPI_COMM_NULL);
	BOTH(MPI_Comm_accept("", MPI_INFO_NULL, 0, c, NULL), MPI_Comm_accept("", MPI_INFO_NULL, 0, c, &n), n, MPI_COMM_NULL);
	BOTH(MPI_Comm_connect("", MPI_INFO_NULL, -9, c, &n), MPI_Comm_connect("", MPI_INFO_NULL, 0, c, &n), n, MPI_COMM_NULL);
}

static void windows(MPI_Comm c)
{
	MPI_Win w = MPI_WIN_NULL;
	int x[4], *mem;

	BOTH(MPI_Win_create(x, -1, 1, MPI_INFO_NULL, c, &w), MPI_Win_create(x, 16, 4, MPI_INFO_NULL, c, &w), w, MPI_WIN_NULL);
	BOTH(MPI_Win_create(x, 16, 4, MPI_INFO_NULL, c, NULL), MPI_Win_create(x, 16, 4, MPI_INFO_NULL, c, &w), w, MPI_WIN_NULL);
	BOTH(MPI_Win_create(NULL, 16, 4, MPI_INFO_NULL, c, &w), MPI_Win_create(x, 16, 4, MPI_INFO_NULL, c, &w), w, MPI_WIN_NULL);
	BOTH(MPI_Win_allocate(16, 0, MPI_INFO_NULL, c, &mem, &w), MPI_Win_allocate(16, 4, MPI_INFO_NULL, c, &mem, &w), w, MPI_WIN_NULL);
	BOTH(MPI_Win_allocate(16, 4, MPI_INFO_NULL, c, NULL, &w), MPI_Win_allocate(16, 4, MPI_INFO_NULL, c, &mem, &w), w, MPI_WIN_NULL);
	BOTH(MPI_Win_allocate_shared(-16, 4, MPI_INFO_NULL, c, &mem, &w), MPI_Win_allocate_shared(16, 4, MPI_INFO_NULL, c, &mem, &w), w, MPI_WIN_NULL);
	BOTH(MPI_Win_create_dynamic((MPI_Info)999, c, &w), MPI_Win_create_dynamic(MPI_INFO_NULL, c, &w), w, MPI_WIN_NULL);
	MUST(MPI_Win_allocate(16, 4, MPI_INFO_NULL, c, &mem, &w));
	MUST(MPI_Win_free(&w));
}

int main(int argc, char **argv)
{
	MPI_Comm c;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	last = rank == size - 1;
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	MUST(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	for (int i = 0; i < 2; i++) {
		communicators(c);
		intercommunicators(c);
		windows(c);
	}
	MUST(MPI_Comm_free(&c));
	done();
	MUST(MPI_Finalize());
	return 0;
}
