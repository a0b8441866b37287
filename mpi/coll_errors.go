package mpi

import "errors"

// Errors of collectives, operators, datatypes and windows.
var (
	// ErrRoot is returned for a root outside the communicator.
	ErrRoot = errors.New("mpi: root outside the communicator")
	// ErrOp is returned for an operator that is nil or not allowed here.
	ErrOp = errors.New("mpi: operator not allowed here")
	// ErrOverlap is returned when buffers that must be apart overlap. (The
	// same memory as send and receive buffer is the in-place form.)
	ErrOverlap = errors.New("mpi: buffers overlap")
	// ErrTuning is returned for a tuning table that cannot be read or names
	// unknown algorithms.
	ErrTuning = errors.New("mpi: bad tuning table")
)
