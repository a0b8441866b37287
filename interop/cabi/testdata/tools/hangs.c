// Each rank but the last hangs in a call of its own, which needs the last one; see TestHangReports.
#include <mpi.h>
#include <stdlib.h>

static int in[64], out[64], rank, last, n;
static MPI_Comm comm;
static MPI_Win win;
static MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

static void hang(void)
{
	static const int counts[2] = {1, 1}, displs[2] = {0, 1}, dims = 2, periods = 0, one = 1;
	MPI_Comm other;
	MPI_Group group, peer;
	MPI_Message m;
	MPI_File file;

	MPI_Comm_group(comm, &group);
	MPI_Group_incl(group, 1, &one, &peer);
	switch (rank) {
	case 0: MPI_Probe(1, 42, comm, MPI_STATUS_IGNORE); break;
	case 1: MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &m, MPI_STATUS_IGNORE); break;
	case 2: MPI_Send(calloc(4 << 20, 1), 1 << 20, MPI_INT, 1, 42, comm); break;
	case 3: MPI_Ssend(in, 3, MPI_INT, 1, 42, comm); break;
	case 4: MPI_Sendrecv(in, 3, MPI_INT, 1, 42, out, 3, MPI_INT, 1, 43, comm, MPI_STATUS_IGNORE); break;
	case 5:
		MPI_Precv_init(in, 2, 3, MPI_INT, 1, 42, comm, MPI_INFO_NULL, r);
		MPI_Start(r);
		MPI_Wait(r, MPI_STATUS_IGNORE);
		break;
	case 6:
		MPI_Irecv(in, 3, MPI_INT, 1, 42, comm, r);
		MPI_Waitany(2, r, &n, MPI_STATUS_IGNORE);
		break;
	case 7: MPI_Gatherv(in, 1, MPI_INT, out, counts, displs, MPI_INT, 0, comm); break;
	case 8: MPI_Comm_split(comm, 0, 0, &other); break;
	case 9: MPI_Cart_create(comm, 1, &dims, &periods, 0, &other); break;
	case 10: MPI_Win_start(peer, 0, win); break;
	case 11: MPI_Win_fence(0, win); break;
	case 12: MPI_File_open(comm, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file); break;
	case 13: MPI_Intercomm_create(MPI_COMM_SELF, 0, comm, 1, 42, &other); break;
	case 14: MPI_Comm_disconnect(&comm); break;
	}
}

int main(void)
{
	MPI_Group world, pair;
	void *base;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &last);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	last--;
	for (int i = rank < last ? rank : 0; i < (rank < last ? rank + 1 : last); i++) {
		int members[2] = {i, last};
		MPI_Group_incl(world, 2, members, &pair);
		MPI_Comm_create_group(MPI_COMM_WORLD, pair, i, &comm);
		MPI_Comm_set_name(comm, "ocean");
		MPI_Win_allocate(64, 4, MPI_INFO_NULL, comm, &base, &win);
		MPI_Win_set_name(win, "tide");
	}
	if (rank < last)
		hang();
	MPI_Recv(out, 1, MPI_INT, 0, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
