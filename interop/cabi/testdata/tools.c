/* The tool information interface: before MPI_Init, between, and after MPI_Finalize.
 * cabi: ranks=1,2,4 transports=shm,sctp */
#include "check.h"

static int failed;

/* Before MPI_Init there is no MPI_Abort. */
#define EXPECT(call, want) \
	do { \
		int code_ = (call); \
		if (code_ != (want)) { \
			fprintf(stderr, "%s:%d: %s: code %d, want %s\n", __FILE__, __LINE__, #call, code_, #want); \
			failed = 1; \
		} \
	} while (0)

static int index_of(const char *name)
{
	int i = -1;
	EXPECT(MPI_T_cvar_get_index(name, &i), MPI_SUCCESS);
	return i;
}

static void set_size(const char *name, unsigned long long value, int want)
{
	MPI_T_cvar_handle h;
	int count;
	unsigned long long back = 0;
	EXPECT(MPI_T_cvar_handle_alloc(index_of(name), NULL, &h, &count), MPI_SUCCESS);
	EXPECT(MPI_T_cvar_write(h, &value), want);
	EXPECT(MPI_T_cvar_read(h, &back), MPI_SUCCESS);
	if (count != 1 || back != value) {
		fprintf(stderr, "%s is %llu, want %llu\n", name, back, value);
		failed = 1;
	}
	EXPECT(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
	if (h != MPI_T_CVAR_HANDLE_NULL)
		failed = 1;
}

static unsigned long long read_pvar(MPI_T_pvar_session s, MPI_T_pvar_handle h)
{
	unsigned long long v = 0;
	EXPECT(MPI_T_pvar_read(s, h, &v), MPI_SUCCESS);
	return v;
}

int main(int argc, char **argv)
{
	int provided, n, i, rank, size;
	MPI_T_pvar_session session;
	MPI_T_pvar_handle handle;
	EXPECT(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	EXPECT(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
	EXPECT(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
	EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
	EXPECT(MPI_T_finalize(), MPI_SUCCESS); /* one use is left */
	EXPECT(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
	for (i = 0; i < n; i++) {
		char name[100], desc[300];
		int name_len = sizeof name, desc_len = sizeof desc, verbosity, bind, scope;
		MPI_Datatype type;
		MPI_T_enum e;
		EXPECT(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &e, desc, &desc_len, &bind, &scope), MPI_SUCCESS);
		if ((int)strlen(name) + 1 != name_len || name_len < 5 || desc_len < 5)
			failed = 1;
		if (e != MPI_T_ENUM_NULL) {
			int items, value;
			char item[50];
			EXPECT(MPI_T_enum_get_info(e, &items, NULL, NULL), MPI_SUCCESS);
			for (int k = 0; k < items; k++) {
				int len = sizeof item;
				EXPECT(MPI_T_enum_get_item(e, k, &value, item, &len), MPI_SUCCESS);
			}
			EXPECT(MPI_T_enum_get_item(e, items, &value, item, NULL), MPI_T_ERR_INVALID_ITEM);
		}
	}
	EXPECT(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
	/* Options are set before MPI_Init, which reads them. */
	set_size("WEFT_EAGER", 12345, MPI_SUCCESS);
	if (getenv("WEFT_TRANSPORT") && strcmp(getenv("WEFT_TRANSPORT"), "hybrid") == 0) {
		MPI_T_cvar_handle h;
		int read = 2;
		EXPECT(MPI_T_cvar_handle_alloc(index_of("WEFT_RENDEZVOUS"), NULL, &h, &n), MPI_SUCCESS);
		EXPECT(MPI_T_cvar_write(h, &read), MPI_SUCCESS);
		read = 0;
		EXPECT(MPI_T_cvar_write(h, &read), MPI_SUCCESS);
		read = 99;
		EXPECT(MPI_T_cvar_write(h, &read), MPI_T_ERR_INVALID);
		EXPECT(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
	}
	EXPECT(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
	EXPECT(MPI_T_pvar_get_index("weft_messages", MPI_T_PVAR_CLASS_COUNTER, &i), MPI_SUCCESS);
	EXPECT(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &n), MPI_SUCCESS);
	EXPECT(MPI_T_pvar_start(session, handle), MPI_SUCCESS);
	if (failed)
		return 1;

	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	set_size("WEFT_EAGER", 12345, MPI_T_ERR_CVAR_SET_NEVER);
	CHECK(read_pvar(session, handle) == 0, "messages before there are any");
	int to = (rank + 1) % size, from = (rank + size - 1) % size, x = rank, y = -1;
	for (i = 0; i < 10; i++)
		MUST(MPI_Sendrecv(&x, 1, MPI_INT, to, 0, &y, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(read_pvar(session, handle) == 10, "%llu messages, want 10", read_pvar(session, handle));
	EXPECT(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
	MUST(MPI_Sendrecv(&x, 1, MPI_INT, to, 0, &y, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(read_pvar(session, handle) == 10, "%llu messages, want 10", read_pvar(session, handle));

	/* The table of algorithms of a communicator. */
	MPI_Comm dup;
	MPI_T_cvar_handle table;
	static char text[1 << 16];
	int count;
	MUST(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
	EXPECT(MPI_T_cvar_handle_alloc(index_of("weft_coll"), &dup, &table, &count), MPI_SUCCESS);
	EXPECT(MPI_T_cvar_write(table, "bcast linear"), MPI_SUCCESS);
	CHECK(count <= (int)sizeof text, "table of %d bytes", count);
	EXPECT(MPI_T_cvar_read(table, text), MPI_SUCCESS);
	CHECK(strstr(text, "bcast"), "%s", text);
	MUST(MPI_Bcast(&x, 1, MPI_INT, 0, dup));
	EXPECT(MPI_T_cvar_handle_free(&table), MPI_SUCCESS);
	EXPECT(MPI_T_cvar_read(table, text), MPI_T_ERR_INVALID_HANDLE);
	MUST(MPI_Comm_free(&dup));

	EXPECT(MPI_T_event_get_num(&n), MPI_SUCCESS);
	EXPECT(MPI_T_source_get_num(&i), MPI_SUCCESS);
	CHECK(n == 0 && i == 0, "%d events, %d sources", n, i);
	EXPECT(MPI_T_category_get_num(&n), MPI_SUCCESS);
	CHECK(n > 0, "no categories");
	CHECK(!failed, "see above");
	done();
	MPI_Finalize();

	EXPECT(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
	EXPECT(MPI_T_pvar_get_num(&n), MPI_SUCCESS);
	EXPECT(MPI_T_finalize(), MPI_SUCCESS);
	EXPECT(MPI_T_pvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	return failed;
}
