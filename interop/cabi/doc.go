// Package cabi tests the C library of weft with programs in C, C++ and Fortran. They
// lie in testdata; each checks itself, and prints ok on rank 0 when all is well.
//
// The test installs the library as a user would, by weft install-mpi, compiles each
// program with the installed wrapper, and runs it under weft run. A comment in the
// first lines of a program says how:
//
//	// cabi: ranks=1,2,4 transports=shm,sctp env=WEFT_EAGER=64 flags=-pthread status=0 args=a,b says=TEXT
//
// The program runs with each number of ranks (default 1,2,4) on shared memory, and
// with the greatest also on each transport: shm, hybrid, sctp, tcp (default all). It
// has to exit with status (default 0), and then to print ok. Output or error output
// must contain the text of says, an underscore standing for a blank. C programs may
// include check.h.
package cabi
