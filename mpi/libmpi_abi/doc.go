//go:build linux && cgo

// Command libmpi_abi is the C library of weft: libmpi_abi.so.1, with which C and
// Fortran programs that are compiled for the ABI of MPI-5.0 run.
//
//	go run ./cmd/weft install-mpi PREFIX
//
// builds and installs it; docs/c-library.md describes its use.
//
// For each procedure the generator of mpi/internal/standard writes PMPI_x and a weak
// MPI_x in C (shim_*.c), which call a Go function (exports_*.go), which calls package
// cbinding. All that C passes is widened to 64 bits, and addresses are integers: a
// special value such as MPI_IN_PLACE, which is 1, in a pointer of Go would stop the
// program when the collector sees it.
//
// A call from C to Go takes some 50 ns. Those that programs make often and that need
// nothing of the engine (rank, size, time) are answered in C (answers.h).
package main
