// Package fortran gives Fortran programs the C library of MPI: it writes the sources
// of the Fortran bindings from the facts of package standard, and compiles them into
// an installation of the C library.
//
// An installation gets
//   - mpif.h, for fixed and free source form (MPI-5.0, 19.1.4),
//   - the modules mpi and mpi_f08 (19.1.2, 19.1.3), compiled by the Fortran compiler
//     that is going to use them, and
//   - libmpi_abi_fortran.so, whose entry points (mpi_send_, pmpi_send_) call the C
//     functions PMPI_Send … and nothing else of weft.
//
// The standard's binary interface is one of C. That of Fortran is the compiler's, so
// the library is apart from libmpi_abi.so, and belongs to compilers whose calling
// convention is that of gfortran (flang's and Intel's are alike): arguments by
// address, lower-case names with an underscore, the lengths of CHARACTER arguments
// behind the last one as size_t, LOGICAL with 0 and 1, INTEGER as int.
//
// # How arguments pass
//
// A handle is an INTEGER with the value of the C handle, which is below 2^31. A status
// has the same layout in both. Special addresses (MPI_BOTTOM, MPI_IN_PLACE,
// MPI_STATUS_IGNORE …) are variables of the library, which mpif.h declares in common
// blocks: an entry point knows them by their addresses. Blanks at the end of strings
// are left out on the way to C and padded on the way back. Indices of MPI_Waitany and
// its kin count from one. Everything that follows from the kinds of the parameters is
// generated; the directory source has the rest, and says why.
//
// The specific procedures of mpi_f08 with choice buffers get descriptors
// (ISO_Fortran_binding.h). If an array section is not contiguous and its count and
// datatype belong to it alone, the call gets a datatype that describes the section;
// else a blocking call gets a copy, and one that uses the buffer after its return
// fails with MPI_ERR_BUFFER. So MPI_SUBARRAYS_SUPPORTED is .FALSE. (MPI-5.0, 19.1.12).
package fortran
