// Package cbinding is the C face of package mpi: one Go function for each procedure of the MPI-5.0
// ABI. Package libmpi_abi exports them to C; nothing here needs a C compiler.
//
// # Functions
//
// MPI_Type_create_f90_real is TypeCreateF90Real. One function serves the small and the _c form of a
// procedure. Parameters are those of C in their order. A handle that is passed in is a [Handle],
// every other scalar an int, and what is a pointer or an array in C, or a pointer-sized value such as
// an attribute, is a uintptr. Where the elements of arrays or results are int in the small form and
// MPI_Count in the other, a last parameter large tells which. The result is the error code that the
// C function returns. A body reads as follows, and does not allocate:
//
//	func Send(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle) int {
//		c, err := commOf(comm)
//		if err != nil {
//			return fail("MPI_Send", err)
//		}
//		b, err := bufferOf(buf, count, datatype)
//		if err != nil {
//			return c.done("MPI_Send", err)
//		}
//		rank, err := c.peer("dest", dest)
//		…
//		return c.done("MPI_Send", c.Send(ctx, b, rank, tag))
//	}
//
// # Handles
//
// A handle is a value of the ABI below 4096, or one that a [table] gave out: less than 2^31, so that
// it fits an INTEGER of Fortran, with its kind in the bits from 24 on, then a generation, then an
// index. commOf, groupOf, typeOf, opOf and so on return the object of a handle, or an error with the
// class that the standard has for it: for null handles, for those of freed objects, for handles of
// another kind. They take no lock and do not allocate.
//
// # Errors
//
// [argError] makes the error of an argument, with its class, name and value. Errors of package mpi
// have the class that [mpi.ErrorClass] finds. A function ends with done of the object that it was
// called on (a communicator, window, file or session), or with fail if there is none: these give the
// error to the handler of the object, MPI_ERRORS_ARE_FATAL unless the program has set another, and
// return its code. Without an object that is the handler of MPI_COMM_SELF (MPI-4.1, Section 9.3), or
// outside of MPI_Init and MPI_Finalize the initial one. The codes of predefined errors are their
// classes, as many programs expect; MPI_Error_string adds the message of the last error of a class.
//
// # Ranks and tags
//
// The special values of the ABI differ from those of package mpi. peer and root of a communicator,
// tagOf and sourceTag translate and check them; rankToC and tagToC translate results.
//
// # Memory of C
//
// A uintptr becomes a pointer only through [at], [array], [str], [ints] and their like, and after
// special values (MPI_IN_PLACE, MPI_STATUS_IGNORE, …) have been dealt with: the collector takes a
// small number in a pointer for a bug and stops the program. [bufferOf] makes a [mpi.Buffer] of what C
// calls a buffer, a count and a datatype. A null pointer where one is needed is an error: [out]
// checks the pointers to results.
//
// # Calls into C
//
// callbacks.go has a variable for each kind of C function that the library calls. Package libmpi_abi
// sets them; tests set Go functions.
package cbinding
