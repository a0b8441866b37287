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
	int sizes[2] = {4, 4};
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
	CASE("window-epoch") { MPI_Win win; MPI_Win_create(in, 16, 4, MPI_INFO_NULL, WORLD, &win); MPI_Put(out, 1, MPI_INT, 0, 0, 1, MPI_INT, win); }
	CASE("window-unlock") { MPI_Win win; MPI_Win_create(in, 16, 4, MPI_INFO_NULL, WORLD, &win); MPI_Win_unlock(0, win); }
	CASE("window-lock") {
		MPI_Win win;
		MPI_Win_create(in, 16, 4, MPI_INFO_NULL, WORLD, &win);
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	}
	CASE("window-unit") { MPI_Win win; MPI_Win_create(in, 16, 0, MPI_INFO_NULL, WORLD, &win); }
	CASE("gather-buffer") MPI_Gather(in, 4, MPI_INT, NULL, 4, MPI_INT, 0, WORLD);
	CASE("gatherv-displs") MPI_Gatherv(in, 4, MPI_INT, out, sizes, NULL, MPI_INT, 0, WORLD);
	CASE("alltoallv-count") { sizes[1] = -4; MPI_Alltoallv(in, sizes, sizes, MPI_INT, out, sizes, sizes, MPI_INT, WORLD); }
	CASE("in-place") MPI_Reduce(MPI_IN_PLACE, out, 4, MPI_INT, MPI_SUM, 1 - rank, WORLD);
	CASE("bcast-type") { if (rank) MPI_Bcast(real, 4, MPI_DOUBLE, 0, WORLD); else MPI_Bcast(in, 8, MPI_INT, 0, WORLD); MPI_Barrier(WORLD); }
	CASE("freed-type") { MPI_Type_contiguous(2, MPI_INT, &type); MPI_Type_commit(&type); MPI_Datatype old = type; MPI_Type_free(&type); MPI_Send(in, 1, old, 0, 0, WORLD); }
	CASE("freed-request") {
		MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, requests);
		requests[1] = requests[0];
		MPI_Wait(requests, MPI_STATUS_IGNORE);
		MPI_Wait(requests + 1, MPI_STATUS_IGNORE);
	}
	CASE("vector") MPI_Type_vector(3, -2, 4, MPI_INT, &type);
	CASE("subarray") { int n = 4, m = 5, from = 0; MPI_Type_create_subarray(1, &n, &m, &from, MPI_ORDER_C, MPI_INT, &type); }
	CASE("group-rank") { int bad[2] = {0, 9}; MPI_Group group, part; MPI_Comm_group(WORLD, &group); MPI_Group_incl(group, 2, bad, &part); }
	CASE("group-twice") { int bad[2] = {1, 1}; MPI_Group group, part; MPI_Comm_group(WORLD, &group); MPI_Group_incl(group, 2, bad, &part); }
	CASE("split-color") MPI_Comm_split(WORLD, -7, 0, &comm);
	CASE("cart-size") { int dims[2] = {2, 2}, periods[2] = {0, 0}; MPI_Cart_create(WORLD, 2, dims, periods, 0, &comm); }
	CASE("dims") { int dims[2] = {3, 0}; MPI_Dims_create(8, 2, dims); }
	CASE("no-topology") MPI_Cart_coords(WORLD, 0, 1, sizes);
	CASE("remote-size") MPI_Comm_remote_size(WORLD, &size);
	CASE("info-key") { MPI_Info info; char key[400]; memset(key, 'k', sizeof key); key[399] = 0; MPI_Info_create(&info); MPI_Info_set(info, key, "x"); }
	CASE("attach-twice") { MPI_Buffer_attach(in, sizeof in); MPI_Buffer_attach(out, sizeof out); }
	CASE("bsend-room") { MPI_Buffer_attach(out, sizeof out); MPI_Bsend(in, 64, MPI_INT, 0, 0, WORLD); }
	CASE("handler") MPI_Comm_set_errhandler(WORLD, MPI_ERRHANDLER_NULL);
	CASE("file-error") { MPI_File f; MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL); MPI_File_open(WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &f); }
	CASE("file-mode") { MPI_File f; MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL); MPI_File_open(WORLD, "x", MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &f); }
	CASE("spawn") { MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, WORLD, &comm, MPI_ERRCODES_IGNORE); }
	CASE("partition") { MPI_Psend_init(in, 4, 2, MPI_INT, 1 - rank, 0, WORLD, MPI_INFO_NULL, requests); MPI_Start(requests); MPI_Pready(4, requests[0]); }
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
