package main

// removed are names that MPI-3.0 took out of the standard (MPI-5.0, Chapter 17), for
// programs that were written before. They are functions of the header, not of the library: a
// compiled program stays within the ABI.
const removed = `
#if !defined(MPI_OMIT_REMOVED) && \
	(defined(__cplusplus) || !defined(__STRICT_ANSI__) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L))
/* Names that MPI-3.0 has removed, in terms of those that replace them. */
typedef MPI_Comm_errhandler_function MPI_Handler_function;
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;

static inline int MPI_Address(void *location, MPI_Aint *address)
{
	return MPI_Get_address(location, address);
}

static inline int MPI_Errhandler_create(MPI_Handler_function *handler_fn, MPI_Errhandler *errhandler)
{
	return MPI_Comm_create_errhandler(handler_fn, errhandler);
}

static inline int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	return MPI_Comm_get_errhandler(comm, errhandler);
}

static inline int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
	return MPI_Comm_set_errhandler(comm, errhandler);
}

static inline int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
	MPI_Aint lb;
	return MPI_Type_get_extent(datatype, &lb, extent);
}

static inline int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
	MPI_Aint extent;
	return MPI_Type_get_extent(datatype, displacement, &extent);
}

static inline int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
	MPI_Aint extent;
	int code = MPI_Type_get_extent(datatype, displacement, &extent);
	if (code == MPI_SUCCESS)
		*displacement += extent;
	return code;
}

static inline int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
	MPI_Datatype *newtype)
{
	return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

static inline int MPI_Type_hindexed(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
	MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
}

static inline int MPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
	MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
	return MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
}
#endif
`
