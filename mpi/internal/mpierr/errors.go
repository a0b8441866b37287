package mpierr

import "errors"

// Errors that callers of package mpi branch on with errors.Is. Each is in the table of
// classes, class.go.
var (
	// Arguments of a call.

	ErrRank      = errors.New("mpi: rank outside the communicator")
	ErrRoot      = errors.New("mpi: root outside the communicator")
	ErrTag       = errors.New("mpi: tag out of range")
	ErrType      = errors.New("mpi: element type holds pointers")
	ErrCount     = errors.New("mpi: buffer length does not fit the operation")
	ErrBuffer    = errors.New("mpi: bad buffer")
	ErrOverlap   = errors.New("mpi: buffers overlap")
	ErrOp        = errors.New("mpi: operator not allowed here")
	ErrDatatype  = errors.New("mpi: bad datatype")
	ErrTopology  = errors.New("mpi: bad topology")
	ErrPartition = errors.New("mpi: bad partition")
	ErrOption    = errors.New("mpi: bad option")
	ErrTuning    = errors.New("mpi: bad tuning table")
	ErrNotSame   = errors.New("mpi: ranks give different arguments")

	// Messages and requests.

	ErrTruncate     = errors.New("mpi: message truncated")
	ErrTypeMismatch = errors.New("mpi: element types do not match")
	ErrCanceled     = errors.New("mpi: request cancelled")
	ErrMessage      = errors.New("mpi: message of Mprobe received before")
	ErrLimit        = errors.New("mpi: too many sends wait for receives")

	// Communicators and the job.

	ErrComm              = errors.New("mpi: communicator of the wrong kind")
	ErrFreed             = errors.New("mpi: communicator freed")
	ErrRevoked           = errors.New("mpi: communicator revoked")
	ErrProcFailed        = errors.New("mpi: process failed")
	ErrProcFailedPending = errors.New("mpi: receive is pending, but a process has failed")
	ErrAborted           = errors.New("mpi: job aborted")
	ErrInitialized       = errors.New("mpi: Init has been called before in this process")
	ErrFinalized         = errors.New("mpi: finalized")
	ErrGoexit            = errors.New("mpi: the function ended its goroutine (runtime.Goexit)")
	ErrAuth              = errors.New("mpi: peer does not know the job key")
	ErrProtocol          = errors.New("mpi: protocol violation")

	// Ports, names and spawned processes.

	ErrPort    = errors.New("mpi: no such port")
	ErrName    = errors.New("mpi: no such name published")
	ErrService = errors.New("mpi: cannot change a published name")
	ErrSpawn   = errors.New("mpi: processes not spawned")

	// Windows.

	ErrRange  = errors.New("mpi: access outside the window")
	ErrAccess = errors.New("mpi: access right missing")
	ErrEpoch  = errors.New("mpi: synchronization calls do not match")
	ErrWindow = errors.New("mpi: bad window")

	// Files.

	ErrFile       = errors.New("mpi: file")
	ErrMode       = errors.New("mpi: access mode of the file")
	ErrView       = errors.New("mpi: bad file view")
	ErrDatarep    = errors.New("mpi: data representation")
	ErrConversion = errors.New("mpi: conversion of the data of a file")
)
