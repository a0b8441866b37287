// Dynamic processes: a program that starts itself, ports and names, sockets.
// cabi: ranks=1,2
#include "check.h"
#include <sys/socket.h>
#include <unistd.h>

#define HOLDS(x) CHECK(x, "does not hold")

static void child(MPI_Comm parent, int argc, char **argv)
{
	MPI_Comm all, again;
	char name[MPI_MAX_OBJECT_NAME];
	int n, m;

	MUST(MPI_Comm_get_name(parent, name, &n));
	CHECK(strcmp(name, "MPI_COMM_PARENT") == 0, "%s", name);
	MUST(MPI_Comm_get_parent(&again));
	HOLDS(again == parent);
	CHECK(argc == 3 && strcmp(argv[1], "child") == 0 && strcmp(argv[2], "with an argument") == 0, "%d arguments", argc);
	MUST(MPI_Comm_remote_size(parent, &m));
	MUST(MPI_Intercomm_merge(parent, 1, &all));
	MUST(MPI_Comm_size(all, &n));
	HOLDS(n == m + 2);
	MUST(MPI_Comm_free(&all));
	MUST(MPI_Comm_disconnect(&parent));
	MUST(MPI_Comm_get_parent(&parent));
	HOLDS(parent == MPI_COMM_NULL);
}

static void spawn(char *self)
{
	MPI_Comm inter, all;
	char *args[] = {"child", "with an argument", NULL};
	char *commands[] = {self, self};
	char **argvs[] = {args, args};
	int n, size, codes[2] = {-1, -1}, ones[] = {1, 1};
	MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};

	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			MUST(MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes));
		else
			MUST(MPI_Comm_spawn_multiple(2, commands, argvs, ones, infos, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
		HOLDS(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
		MUST(MPI_Comm_remote_size(inter, &n));
		HOLDS(n == 2);
		MUST(MPI_Intercomm_merge(inter, 0, &all));
		MUST(MPI_Comm_size(all, &n));
		HOLDS(n == size + 2);
		MUST(MPI_Comm_free(&all));
		MUST(MPI_Comm_disconnect(&inter));
	}
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes));
	FAILS(MPI_ERR_ROOT, MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 9, MPI_COMM_WORLD, &inter, codes));
}

/* Rank 0 accepts, the last one connects. */
static void ports(int rank, int size)
{
	MPI_Comm inter;
	char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
	int n;

	if (size == 1)
		return;
	if (rank == 0) {
		MUST(MPI_Open_port(MPI_INFO_NULL, port));
		MUST(MPI_Publish_name("weft.test.port", MPI_INFO_NULL, port));
		MUST(MPI_Lookup_name("weft.test.port", MPI_INFO_NULL, found));
		HOLDS(strcmp(port, found) == 0);
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == 0) {
		MUST(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
	} else if (rank == size - 1) {
		MUST(MPI_Lookup_name("weft.test.port", MPI_INFO_NULL, found));
		MUST(MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
	}
	if (rank == 0 || rank == size - 1) {
		MUST(MPI_Comm_remote_size(inter, &n));
		HOLDS(n == 1);
		MUST(MPI_Comm_disconnect(&inter));
	}
	MUST(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == 0) {
		MUST(MPI_Unpublish_name("weft.test.port", MPI_INFO_NULL, port));
		MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
		FAILS(MPI_ERR_NAME, MPI_Lookup_name("weft.test.port", MPI_INFO_NULL, found));
		MUST(MPI_Close_port(port));
		FAILS(MPI_ERR_PORT, MPI_Close_port(port));
		FAILS(MPI_ERR_ARG, MPI_Comm_join(-1, &inter));
	}
}

int main(int argc, char **argv)
{
	MPI_Comm parent;
	int rank, size;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_get_parent(&parent));
	if (parent != MPI_COMM_NULL) {
		child(parent, argc, argv);
	} else {
		MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
		MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
		spawn(argv[0]);
		ports(rank, size);
		done();
	}
	MUST(MPI_Finalize());
	return 0;
}
