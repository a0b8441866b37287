package abi

// A Handle is an MPI handle as C holds it.
type Handle uintptr

// MaxPredefined is where handles of the ABI end (MPI-5.0, Section 20.3): those of objects that a
// program makes are greater.
const MaxPredefined = 1 << 12
