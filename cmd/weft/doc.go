// Command weft runs and examines programs over user-space SCTP, iWARP and MPI.
//
//	weft run -n 4 ./cmd/farm -input FILE   start four ranks of an MPI program
//	weft gateway -sites FILE -site NAME    relay messages of jobs between sites
//	weft install-mpi PREFIX                build and install the C library
//	weft version [-json]                   print the version, Go version and revision
//	weft help [COMMAND]                    explain a command
//
// Under the names mpicc, mpicxx and mpifort it is a compiler with the flags of MPI
// programs, and under mpiexec and mpirun it is weft run: so weft install-mpi installs
// it.
package main
