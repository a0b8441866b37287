// Package abi has the constants and the layout of MPI_Status of the application
// binary interface of MPI-5.0 (Chapter 20): what a compiled C or Fortran program has
// built in. The name of a constant is its C name without MPI_, in camel case:
// MPI_ERR_COMM is ErrComm, MPI_2INT is X2int.
package abi
