// What is packed by one rank is unpacked by another, as MPI_PACKED or as what it is; the canonical
// representation, and values that it cannot hold.
// cabi: ranks=1,2 transports=shm,sctp
#include "check.h"

int main(int argc, char **argv)
{
	int rank, size;
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	MUST(MPI_Comm_size(MPI_COMM_WORLD, &size));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

	MPI_Datatype column;
	MUST(MPI_Type_vector(4, 1, 5, MPI_DOUBLE, &column));
	MUST(MPI_Type_commit(&column));
	double matrix[20], values[4];
	for (int i = 0; i < 20; i++)
		matrix[i] = rank * 100 + i;
	int room, more, n = 7 + rank, position = 0;
	MUST(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &room));
	MUST(MPI_Pack_size(1, column, MPI_COMM_WORLD, &more));
	room += more;
	char *packed = malloc(room), *received = malloc(room);
	MUST(MPI_Pack(&n, 1, MPI_INT, packed, room, &position, MPI_COMM_WORLD));
	MUST(MPI_Pack(matrix + 2, 1, column, packed, room, &position, MPI_COMM_WORLD));
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	MPI_Status status;
	MUST(MPI_Sendrecv(packed, position, MPI_PACKED, to, 0, received, room, MPI_PACKED, from, 0, MPI_COMM_WORLD, &status));
	int m, back = 0;
	MUST(MPI_Unpack(received, room, &back, &m, 1, MPI_INT, MPI_COMM_WORLD));
	MUST(MPI_Unpack(received, room, &back, values, 4, MPI_DOUBLE, MPI_COMM_WORLD));
	CHECK(m == 7 + from && back == position, "%d, position %d", m, back);
	for (int i = 0; i < 4; i++)
		CHECK(values[i] == from * 100 + 2 + 5 * i, "value %d is %g", i, values[i]);

	/* A packed message is one of its items, and the other way round. */
	position = 0;
	MUST(MPI_Pack(matrix, 1, column, packed, room, &position, MPI_COMM_WORLD));
	MUST(MPI_Sendrecv(packed, position, MPI_PACKED, to, 1, values, 4, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, &status));
	CHECK(values[3] == from * 100 + 15, "value 3 is %g", values[3]);
	MUST(MPI_Get_count(&status, MPI_DOUBLE, &m));
	CHECK(m == 4, "%d numbers", m);

	/* The canonical representation: big-endian, long of 4 bytes. */
	long numbers[] = {1, -2};
	MPI_Aint length, at = 0;
	unsigned char canonical[64], want[] = {0, 0, 0, 1, 255, 255, 255, 254, 63, 248, 0, 0, 0, 0, 0, 0};
	double x = 1.5;
	MUST(MPI_Pack_external_size("external32", 2, MPI_LONG, &length));
	CHECK(length == 8, "%ld bytes", (long)length);
	MUST(MPI_Pack_external("external32", numbers, 2, MPI_LONG, canonical, sizeof canonical, &at));
	MUST(MPI_Pack_external("external32", &x, 1, MPI_DOUBLE, canonical, sizeof canonical, &at));
	CHECK(at == 16 && memcmp(canonical, want, 16) == 0, "position %ld, or other bytes", (long)at);
	at = 0;
	numbers[0] = numbers[1] = 0;
	x = 0;
	MUST(MPI_Unpack_external("external32", canonical, 16, &at, numbers, 2, MPI_LONG));
	MUST(MPI_Unpack_external("external32", canonical, 16, &at, &x, 1, MPI_DOUBLE));
	CHECK(numbers[0] == 1 && numbers[1] == -2 && x == 1.5, "%ld %ld %g", numbers[0], numbers[1], x);
	long double e = 2.25L, f = 0;
	MPI_Count c = 0;
	MUST(MPI_Pack_external_c("external32", &e, 1, MPI_LONG_DOUBLE, canonical, sizeof canonical, &c));
	CHECK(c == 16, "a long double of %lld bytes", (long long)c);
	c = 0;
	MUST(MPI_Unpack_external_c("external32", canonical, 16, &c, &f, 1, MPI_LONG_DOUBLE));
	CHECK(f == e, "%Lg", f);

	numbers[0] = 1L << 40;
	at = 0;
	FAILS(MPI_ERR_CONVERSION, MPI_Pack_external("external32", numbers, 1, MPI_LONG, canonical, sizeof canonical, &at));
	FAILS(MPI_ERR_ARG, MPI_Pack_external_size("native", 2, MPI_LONG, &length));
	position = room - 3;
	FAILS(MPI_ERR_TRUNCATE, MPI_Pack(&n, 1, MPI_INT, packed, room, &position, MPI_COMM_WORLD));
	CHECK(position == room - 3, "the position has moved to %d", position);
	MUST(MPI_Type_free(&column));
	free(packed);
	free(received);
	done();
	MUST(MPI_Finalize());
	return 0;
}
