// Package install builds the C library of weft, libmpi_abi, and puts it where
// compilers and programs find it: command weft install-mpi. It needs the Go tool, a C
// compiler and the source of weft.
package install
