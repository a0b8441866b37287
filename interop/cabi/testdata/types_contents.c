// Datatypes made again of their contents are like them, over several levels; large counts; datatypes of
// Fortran kinds and pairs.
// cabi: ranks=1 transports=shm
#include "check.h"

/* Makes a datatype of the contents of another, and of those that it is made of. */
static MPI_Datatype again(MPI_Datatype old)
{
	int ni, na, nd, combiner;
	MPI_Datatype new;
	MUST(MPI_Type_get_envelope(old, &ni, &na, &nd, &combiner));
	if (combiner == MPI_COMBINER_NAMED) {
		CHECK(ni == 0 && na == 0 && nd == 0, "named: %d %d %d", ni, na, nd);
		FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(old, 0, 0, 0, NULL, NULL, NULL));
		return old;
	}
	int *i = malloc((ni + 1) * sizeof *i);
	MPI_Aint *a = malloc((na + 1) * sizeof *a);
	MPI_Datatype *d = malloc((nd + 1) * sizeof *d);
	MUST(MPI_Type_get_contents(old, ni, na, nd, i, a, d));
	for (int k = 0; k < nd; k++) {
		MPI_Datatype part = again(d[k]);
		if (part != d[k])
			MUST(MPI_Type_free(&d[k]));
		d[k] = part;
	}
	switch (combiner) {
	case MPI_COMBINER_DUP:
		MUST(MPI_Type_dup(d[0], &new));
		break;
	case MPI_COMBINER_CONTIGUOUS:
		MUST(MPI_Type_contiguous(i[0], d[0], &new));
		break;
	case MPI_COMBINER_VECTOR:
		MUST(MPI_Type_vector(i[0], i[1], i[2], d[0], &new));
		break;
	case MPI_COMBINER_HVECTOR:
		MUST(MPI_Type_create_hvector(i[0], i[1], a[0], d[0], &new));
		break;
	case MPI_COMBINER_INDEXED:
		MUST(MPI_Type_indexed(i[0], i + 1, i + 1 + i[0], d[0], &new));
		break;
	case MPI_COMBINER_HINDEXED:
		MUST(MPI_Type_create_hindexed(i[0], i + 1, a, d[0], &new));
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		MUST(MPI_Type_create_indexed_block(i[0], i[1], i + 2, d[0], &new));
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		MUST(MPI_Type_create_hindexed_block(i[0], i[1], a, d[0], &new));
		break;
	case MPI_COMBINER_STRUCT:
		MUST(MPI_Type_create_struct(i[0], i + 1, a, d, &new));
		break;
	case MPI_COMBINER_SUBARRAY:
		MUST(MPI_Type_create_subarray(i[0], i + 1, i + 1 + i[0], i + 1 + 2 * i[0], i[1 + 3 * i[0]], d[0], &new));
		break;
	case MPI_COMBINER_DARRAY: {
		int n = i[2];
		MUST(MPI_Type_create_darray(i[0], i[1], n, i + 3, i + 3 + n, i + 3 + 2 * n, i + 3 + 3 * n, i[3 + 4 * n], d[0], &new));
		break;
	}
	case MPI_COMBINER_RESIZED:
		MUST(MPI_Type_create_resized(d[0], a[0], a[1], &new));
		break;
	default:
		CHECK(0, "combiner %d", combiner);
	}
	for (int k = 0; k < nd; k++) {
		MUST(MPI_Type_get_envelope(d[k], &ni, &na, &nd, &combiner));
		if (combiner != MPI_COMBINER_NAMED)
			MUST(MPI_Type_free(&d[k]));
		MUST(MPI_Type_get_envelope(old, &ni, &na, &nd, &combiner));
	}
	free(i);
	free(a);
	free(d);
	return new;
}

/* Checks that both datatypes pack the same of an array. */
static void same(MPI_Datatype a, MPI_Datatype b)
{
	static char mem[4000], x[4000], y[4000];
	int n = 0, m = 0;
	MPI_Aint la, ea, lb, eb;
	MUST(MPI_Type_get_extent(a, &la, &ea));
	MUST(MPI_Type_get_extent(b, &lb, &eb));
	CHECK(la == lb && ea == eb, "bounds %ld and %ld, %ld and %ld", (long)la, (long)ea, (long)lb, (long)eb);
	for (int i = 0; i < 4000; i++)
		mem[i] = i * 31 + i / 256;
	MUST(MPI_Type_commit(&a));
	MUST(MPI_Type_commit(&b));
	MUST(MPI_Pack(mem + 1000, 2, a, x, sizeof x, &n, MPI_COMM_SELF));
	MUST(MPI_Pack(mem + 1000, 2, b, y, sizeof y, &m, MPI_COMM_SELF));
	CHECK(n == m && n > 0 && memcmp(x, y, n) == 0, "packed %d and %d bytes, or not the same", n, m);
}

int main(int argc, char **argv)
{
	MUST(MPI_Init(&argc, &argv));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MPI_Datatype t[16], u;
	int n = 0;
	int lens[] = {1, 0, 2}, displs[] = {3, 1, -2};
	MPI_Aint bytes[] = {48, 16, -40};
	MUST(MPI_Type_vector(2, 3, 4, MPI_SHORT, &t[n++]));
	MUST(MPI_Type_create_resized(t[0], -2, 24, &t[n++]));
	MUST(MPI_Type_contiguous(2, t[1], &t[n++]));
	MUST(MPI_Type_create_hvector(2, 2, -70, t[1], &t[n++]));
	MUST(MPI_Type_indexed(3, lens, displs, t[0], &t[n++]));
	MUST(MPI_Type_create_hindexed(3, lens, bytes, t[1], &t[n++]));
	MUST(MPI_Type_create_indexed_block(3, 2, displs, MPI_DOUBLE, &t[n++]));
	MUST(MPI_Type_create_hindexed_block(3, 1, bytes, t[0], &t[n++]));
	MPI_Datatype parts[] = {t[0], MPI_INT, t[1]};
	MUST(MPI_Type_create_struct(3, lens, bytes, parts, &t[n++]));
	int sizes[] = {4, 5}, sub[] = {2, 3}, from[] = {1, 2};
	MUST(MPI_Type_create_subarray(2, sizes, sub, from, MPI_ORDER_FORTRAN, MPI_FLOAT, &t[n++]));
	int dists[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE}, dargs[] = {1, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 1};
	MUST(MPI_Type_create_darray(2, 1, 2, sizes, dists, dargs, grid, MPI_ORDER_C, t[0], &t[n++]));
	MUST(MPI_Type_dup(t[8], &t[n++]));
	for (int k = 0; k < n; k++) {
		u = again(t[k]);
		same(t[k], u);
		MUST(MPI_Type_free(&u));
	}
	/* The parts may be freed before what is made of them. */
	for (int k = 0; k < n - 1; k++)
		MUST(MPI_Type_free(&t[k]));
	u = again(t[n - 1]);
	same(t[n - 1], u);
	MUST(MPI_Type_free(&u));
	MUST(MPI_Type_free(&t[n - 1]));

	/* Large counts are told by the _c forms alone. */
	MPI_Count count = 5000000000, ci, ca, cc, cd, counts[3];
	int combiner, i, a, d;
	MUST(MPI_Type_vector_c(1, count, 7, MPI_CHAR, &u));
	MUST(MPI_Type_get_envelope_c(u, &ci, &ca, &cc, &cd, &combiner));
	CHECK(ci == 0 && ca == 0 && cc == 3 && cd == 1 && combiner == MPI_COMBINER_VECTOR, "%d %d %d %d %d", (int)ci, (int)ca,
		(int)cc, (int)cd, combiner);
	MPI_Datatype part;
	MUST(MPI_Type_get_contents_c(u, 0, 0, 3, 1, NULL, NULL, counts, &part));
	CHECK(counts[0] == 1 && counts[1] == count && counts[2] == 7 && part == MPI_CHAR, "%lld", (long long)counts[1]);
	FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(u, &i, &a, &d, &combiner));
	MUST(MPI_Type_free(&u));

	/* Fortran kinds: predefined, without a name, the same each time. */
	MUST(MPI_Type_create_f90_real(15, 307, &u));
	MUST(MPI_Type_create_f90_real(15, 307, &part));
	CHECK(u == part, "two datatypes of one kind");
	MUST(MPI_Type_get_envelope(u, &i, &a, &d, &combiner));
	CHECK(i == 2 && a == 0 && d == 0 && combiner == MPI_COMBINER_F90_REAL, "%d %d %d %d", i, a, d, combiner);
	int pr[2];
	MUST(MPI_Type_get_contents(u, 2, 0, 0, pr, NULL, NULL));
	CHECK(pr[0] == 15 && pr[1] == 307, "p %d, r %d", pr[0], pr[1]);
	FAILS(MPI_ERR_TYPE, MPI_Type_free(&u));
	FAILS(MPI_ERR_ARG, MPI_Type_create_f90_integer(50, &u));
	MUST(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &u));
	CHECK(u == MPI_REAL8, "a real of 8 bytes");
	MUST(MPI_Type_get_value_index(MPI_LONG_DOUBLE, MPI_INT, &u));
	CHECK(u == MPI_LONG_DOUBLE_INT, "a pair of long double and int");
	done();
	MUST(MPI_Finalize());
	return 0;
}
