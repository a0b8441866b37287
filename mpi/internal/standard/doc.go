// Package standard has the facts of MPI-5.0 that a binding for another language is
// made from: the procedures with the kinds of their parameters, and the constants
// with the values that the standard's application binary interface (ABI, MPI-5.0,
// Chapter 20) gives them.
//
// The tables are procedures.tsv and constants.tsv. Command generate, below this
// directory, writes everything that follows from them: the Go constants of package
// abi, mpi.h, the C functions of libmpi_abi, and the Fortran interfaces.
package standard
