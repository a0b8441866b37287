// Package cbinding and those below it are the C face of package mpi: one Go function for each procedure of
// the MPI-5.0 ABI. Package libmpi_abi exports them to C; nothing here needs a C compiler.
//
// The procedures are in a package for each chapter of the standard, which do not import each other: package
// pointtopoint, collective, datatype, communicator, topology, process, onesided, file, tool and environment.
// This package has what they share: handles and the objects behind them, errors and their handlers,
// attributes, the memory of C and the state of the process. Package ctest has what their tests share.
//
// # Functions
//
// MPI_Type_create_f90_real is TypeCreateF90Real. One function serves the small and the _c form of a
// procedure. Parameters are those of C in their order. A handle that is passed in is an [abi.Handle],
// every other scalar an int, and what is a pointer or an array in C, or a pointer-sized value such as
// an attribute, is a uintptr. Where the elements of arrays or results are int in the small form and
// MPI_Count in the other, a last parameter large tells which. The result is the error code that the
// C function returns. A body reads as follows, and does not allocate:
//
//	func Send(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle) int {
//		c, err := cbinding.CommOf(comm)
//		if err != nil {
//			return cbinding.Fail("MPI_Send", err)
//		}
//		b, err := cbinding.BufferOf(buf, count, datatype)
//		if err != nil {
//			return c.Done("MPI_Send", err)
//		}
//		rank, err := c.Peer("dest", dest)
//		…
//		return c.Done("MPI_Send", c.Comm.Send(cbinding.Background, b, rank, tag))
//	}
//
// # Handles
//
// A handle is a value of the ABI below 4096, or one that a [Table] gave out: less than 2^31, so that
// it fits an INTEGER of Fortran, with its kind in the bits from 24 on, then a generation, then an
// index. [CommOf], [GroupOf], [TypeOf], [OpOf] and so on return the object of a handle, or an error with the
// class that the standard has for it: for null handles, for those of freed objects, for handles of
// another kind. They take no lock and do not allocate. The tables of windows, files and matched messages are
// in their chapters, all others here.
//
// # Errors
//
// [ArgError] makes the error of an argument, with its class, name and value. Errors of package mpi
// have the class that [mpi.ErrorClass] finds. A function ends with Done of the [Object] that it was
// called on (a communicator, window, file or session), or with [Fail] if there is none: these give the
// error to the handler of the object, MPI_ERRORS_ARE_FATAL unless the program has set another, and
// return its code. Without an object that is the handler of MPI_COMM_SELF (MPI-4.1, Section 9.3), or
// outside of MPI_Init and MPI_Finalize the initial one. The codes of predefined errors are their
// classes, as many programs expect; MPI_Error_string adds the message of the last error of a class.
//
// # Ranks and tags
//
// The special values of the ABI differ from those of package mpi. Peer and Root of a [Communicator],
// [TagOf] and [SourceTag] translate and check them; [RankToC] translates results.
//
// # Memory of C
//
// A uintptr becomes a pointer only through [At], [Array], [Str], [Ints] and their like, and after
// special values (MPI_IN_PLACE, MPI_STATUS_IGNORE, …) have been dealt with: the collector takes a
// small number in a pointer for a bug and stops the program. [BufferOf] makes a [mpi.Buffer] of what C
// calls a buffer, a count and a datatype. A null pointer where one is needed is an error: [Out]
// checks the pointers to results.
//
// # Calls into C
//
// callbacks.go has a variable for each kind of C function that the library calls. Package libmpi_abi
// sets them; tests set Go functions.
package cbinding
