// Ports, names and data representations of a program that has sessions only.
// cabi: ranks=1,2
#include "check.h"
#include <string.h>

static int extent(MPI_Datatype type, MPI_Aint *bytes, void *extra)
{
	(void)type, (void)extra;
	*bytes = 8;
	return MPI_SUCCESS;
}

int main(void)
{
	MPI_Session s;
	MPI_Group g;
	MPI_Comm c, inter;
	int rank, size;
	char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";

	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	MUST(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
	MUST(MPI_Comm_create_from_group(g, "weft.ports", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
	MUST(MPI_Comm_rank(c, &rank));
	MUST(MPI_Comm_size(c, &size));
	MUST(MPI_Register_datarep("eight", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, NULL));
	if (rank == 0) {
		MUST(MPI_Open_port(MPI_INFO_NULL, port));
		MUST(MPI_Publish_name("weft.session", MPI_INFO_NULL, port));
		MUST(MPI_Lookup_name("weft.session", MPI_INFO_NULL, found));
		CHECK(strcmp(port, found) == 0, "port %s, found %s", port, found);
		MUST(MPI_Unpublish_name("weft.session", MPI_INFO_NULL, port));
	}
	if (size == 2) { // one accepts, the other one connects
		MPI_Comm self;
		MPI_Group alone;
		int other = -1;
		MUST(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, c));
		MUST(MPI_Group_incl(g, 1, &rank, &alone));
		MUST(MPI_Comm_create_from_group(alone, "weft.alone", MPI_INFO_NULL, MPI_ERRORS_RETURN, &self));
		if (rank == 0)
			MUST(MPI_Comm_accept(port, MPI_INFO_NULL, 0, self, &inter));
		else
			MUST(MPI_Comm_connect(port, MPI_INFO_NULL, 0, self, &inter));
		MUST(MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &other, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
		CHECK(other == 1 - rank, "rank %d", other);
		MUST(MPI_Comm_disconnect(&inter));
		MUST(MPI_Comm_free(&self));
		MUST(MPI_Group_free(&alone));
	}
	if (rank == 0)
		MUST(MPI_Close_port(port));
	MUST(MPI_Comm_free(&c));
	MUST(MPI_Group_free(&g));
	MUST(MPI_Session_finalize(&s));
	if (rank == 0)
		puts("ok");
	return 0;
}
