package abi

// Status is MPI_Status as a C program lays it out (MPI-5.0, 20.3.3): 32 bytes, which
// in Fortran are INTEGER(MPI_STATUS_SIZE).
type Status struct {
	Source   int32 // MPI_SOURCE
	Tag      int32 // MPI_TAG
	Error    int32 // MPI_ERROR
	Internal [5]int32
}
