// The usual mistakes, one by each argument; see TestMistakes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASE(name) if (!strcmp(which, name))
#define WORLD MPI_COMM_WORLD

int main(int argc, char **argv)
{
	static int in[64], out[64];
	static double real[64];
	const char *which = argv[1];
	int rank = -1, size = -1;
	MPI_Comm comm, copy;
	MPI_Datatype type;
	MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	(void)argc;

	CASE("before-init") MPI_Barrier(WORLD);
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &size);
	CASE("rank") MPI_Send(in, 1, MPI_INT, 7, 0, WORLD);
	CASE("tag") MPI_Send(in, 1, MPI_INT, 0, -3, WORLD);
	CASE("count") MPI_Send(in, -1, MPI_INT, 0, 0, WORLD);
	CASE("null-buffer") MPI_Send(NULL, 4, MPI_INT, 0, 0, WORLD);
	CASE("null-type") MPI_Send(in, 4, MPI_DATATYPE_NULL, 0, 0, WORLD);
	CASE("uncommitted") { MPI_Type_contiguous(2, MPI_INT, &type); MPI_Send(in, 1, type, 0, 0, WORLD); }
	CASE("type") {
		if (rank == 0) MPI_Send(in, 4, MPI_INT, 1, 5, WORLD);
		else MPI_Recv(real, 4, MPI_DOUBLE, 0, 5, WORLD, MPI_STATUS_IGNORE);
		MPI_Barrier(WORLD);
	}
	CASE("truncated") {
		if (rank == 0) MPI_Send(in, 8, MPI_INT, 1, 5, WORLD);
		else MPI_Recv(out, 4, MPI_INT, 0, 5, WORLD, MPI_STATUS_IGNORE);
		MPI_Barrier(WORLD);
	}
	CASE("bcast-length") { MPI_Bcast(in, rank ? 4 : 8, MPI_INT, 0, WORLD); MPI_Barrier(WORLD); }
	CASE("freed-comm") { MPI_Comm_dup(WORLD, &comm); copy = comm; MPI_Comm_free(&comm); MPI_Barrier(copy); }
	CASE("null-comm") MPI_Barrier(MPI_COMM_NULL);
	CASE("null-request") MPI_Start(requests);
	CASE("active-request") { MPI_Recv_init(in, 1, MPI_INT, 0, 0, WORLD, requests); MPI_Start(requests); MPI_Start(requests); }
	CASE("free-world") { comm = WORLD; MPI_Comm_free(&comm); }
	CASE("free-int") { type = MPI_INT; MPI_Type_free(&type); }
	CASE("root") MPI_Bcast(in, 1, MPI_INT, 9, WORLD);
	CASE("operator") MPI_Allreduce(real, real + 8, 4, MPI_DOUBLE, MPI_BAND, WORLD);
	CASE("same-buffer") MPI_Allreduce(in, in, 4, MPI_INT, MPI_SUM, WORLD);
	CASE("window-range") {
		MPI_Win win;
		MPI_Win_create(in, 16, 4, MPI_INFO_NULL, WORLD, &win);
		MPI_Win_fence(0, win);
		MPI_Put(out, 1, MPI_INT, 0, 100, 1, MPI_INT, win);
	}
	CASE("bsend") MPI_Bsend(in, 60, MPI_INT, 0, 0, WORLD);
	CASE("null-argument") MPI_Test(NULL, &size, MPI_STATUS_IGNORE);
	CASE("init-twice") MPI_Init(NULL, NULL);
	CASE("after-finalize") { MPI_Finalize(); MPI_Barrier(WORLD); }
	CASE("exit-early") { if (rank == 1) exit(0); MPI_Barrier(WORLD); }
	CASE("exit-3") { if (rank == 1) exit(3); MPI_Barrier(WORLD); }
	CASE("abort") { if (rank == 1) MPI_Abort(WORLD, 5); MPI_Barrier(WORLD); }
	CASE("crash") { if (rank == 1) *(volatile int *)0 = 1; MPI_Barrier(WORLD); }
	CASE("receives") {
		MPI_Comm_dup(WORLD, &comm);
		MPI_Comm_set_name(comm, "ocean");
		if (rank == 0) MPI_Recv(in, 3, MPI_INT, 1, 42, comm, MPI_STATUS_IGNORE);
		else MPI_Barrier(comm);
	}
	CASE("waitall") {
		MPI_Irecv(in, 3, MPI_INT, MPI_ANY_SOURCE, 1, WORLD, requests);
		MPI_Irecv(out, 4, MPI_INT, 1 - rank, MPI_ANY_TAG, WORLD, requests + 1);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	CASE("ssend") MPI_Ssend(in, 3, MPI_INT, 1 - rank, 42, WORLD);
	CASE("finalize") if (rank == 0) MPI_Recv(in, 3, MPI_INT, 1, 42, WORLD, MPI_STATUS_IGNORE);
	return MPI_Finalize();
}
