// What the program may do in the functions that MPI_Finalize and MPI_Grequest call.
// cabi: ranks=1,2
#include "check.h"

static int deleted, queried;

static int on_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
	MPI_Session s;
	int n;
	MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
	MUST(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
	CHECK(n > 0, "%d sets of processes", n);
	MUST(MPI_Session_finalize(&s));
	CHECK(s == MPI_SESSION_NULL, "the session is not null");
	deleted++;
	return MPI_SUCCESS;
}

static int query(void *extra, MPI_Status *status)
{
	MPI_Request *request = extra;
	int flag = 0;
	if (queried++ == 0) /* asks for itself */
		MUST(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
	MPI_Status_set_elements(status, MPI_INT, 3);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int release(void *extra) { return MPI_SUCCESS; }
static int cancel(void *extra, int complete) { return MPI_SUCCESS; }

int main(int argc, char **argv)
{
	MPI_Request request;
	MPI_Status status;
	int key, n;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Grequest_start(query, release, cancel, &request, &request));
	MUST(MPI_Grequest_complete(request));
	MUST(MPI_Wait(&request, &status));
	MUST(MPI_Get_count(&status, MPI_INT, &n));
	CHECK(n == 3 && queried == 2, "%d items, asked %d times", n, queried);

	MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, NULL));
	MUST(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
	done();
	MUST(MPI_Finalize());
	return deleted == 1 ? 0 : 3;
}
