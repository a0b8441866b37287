package mpi

// Element is what the elements of a message buffer may be: any type of fixed
// size that holds no pointer — numbers, bool, and arrays and structs of these
// (MPI-4.1, Section 3.2.2). The language cannot express that as a type set, so
// it is checked at run time, once per type; a buffer of another type gives
// ErrType. Values travel in the memory layout of the machine: ranks of one job
// share an architecture.
type Element interface{ any }
