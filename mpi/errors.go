package mpi

import (
	"errors"
	"fmt"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrRank is returned for a rank outside the communicator.
	ErrRank = errors.New("mpi: rank outside the communicator")
	// ErrTag is returned for a tag that is negative or above TagUB.
	ErrTag = errors.New("mpi: tag out of range")
	// ErrType is returned for a buffer whose element type holds pointers.
	ErrType = errors.New("mpi: element type holds pointers")
	// ErrCount is returned when buffer lengths do not fit the operation.
	ErrCount = errors.New("mpi: buffer length does not fit the operation")
	// ErrTruncate is returned by a receive whose buffer is shorter than the
	// message. The buffer holds the first part of the message, the rest is
	// dropped, and the job goes on (MPI-5.0, Section 3.2.2).
	ErrTruncate = errors.New("mpi: message truncated")
	// ErrCanceled is returned by a request that was cancelled.
	ErrCanceled = errors.New("mpi: request cancelled")
	// ErrFinalized is returned by operations on a World after Finalize.
	ErrFinalized = errors.New("mpi: finalized")
	// ErrComm is returned for an operation that an intercommunicator, or an
	// intracommunicator, does not have.
	ErrComm = errors.New("mpi: communicator of the wrong kind")
	// ErrFreed is returned by operations on a Comm after Free.
	ErrFreed = errors.New("mpi: communicator freed")
	// ErrProcFailed is what a RankError wraps: the named rank is gone.
	ErrProcFailed = errors.New("mpi: process failed")
	// ErrProcFailedPending is returned by Request.Wait and its relatives for a
	// receive from AnySource while a member of the communicator has failed that
	// AckFailed has not been called for. The receive goes on; the error also
	// wraps the RankError.
	ErrProcFailedPending = errors.New("mpi: receive is pending, but a process has failed")
	// ErrRevoked is returned by operations on a communicator after Revoke.
	ErrRevoked = errors.New("mpi: communicator revoked")
	// ErrAborted is returned by operations after Abort.
	ErrAborted = errors.New("mpi: job aborted")
	// ErrProtocol is the reason a link is closed when its peer breaks the
	// wire protocol.
	ErrProtocol = errors.New("mpi: protocol violation")
	// ErrAuth is returned when a peer does not know the key of the job.
	ErrAuth = errors.New("mpi: peer does not know the job key")
	// ErrMessage is returned for a Message that has been received before.
	ErrMessage = errors.New("mpi: message of Mprobe received before")
	// ErrLimit is returned by a send when too many earlier ones to the same
	// rank wait for receives.
	ErrLimit = errors.New("mpi: too many sends wait for receives")
	// ErrOption is returned for an option or environment variable that makes no sense.
	ErrOption = errors.New("mpi: bad option")
)

// A SendrecvError is returned by Sendrecv and SendrecvReplace when one of the two
// messages was exchanged and the other was not, because the context ended or a rank
// failed in between. It wraps the reason. An error of another type says that neither
// was, or, if it is ErrTruncate or ErrCount, that both were.
type SendrecvError struct {
	Sent     bool  // dst receives the message that was sent
	Received bool  // the buffer holds a message, which the Status returned with the error describes
	Err      error // why the other message was not exchanged
}

// Error says which message was exchanged, and why the other was not.
func (e *SendrecvError) Error() string {
	if e.Sent {
		return fmt.Sprintf("mpi: Sendrecv has sent its message but received none: %v", e.Err)
	}
	return fmt.Sprintf("mpi: Sendrecv has received a message but not sent its own: %v", e.Err)
}

// Unwrap gives the reason to errors.Is and errors.As.
func (e *SendrecvError) Unwrap() error { return e.Err }

// A RankError says that an operation failed because a rank is gone.
// It wraps ErrProcFailed and the reason.
type RankError struct {
	Rank  int   // rank in MPI_COMM_WORLD (World.Comm)
	Other bool  // it is a process of another job, with that rank there
	Err   error // why; may be nil
}

// Error names the rank and the reason.
func (e *RankError) Error() string {
	of := ""
	if e.Other {
		of = " of another job"
	}
	if e.Err == nil {
		return fmt.Sprintf("mpi: rank %d%s is gone", e.Rank, of)
	}
	return fmt.Sprintf("mpi: rank %d%s is gone: %v", e.Rank, of, e.Err)
}

// Unwrap gives ErrProcFailed and the reason to errors.Is and errors.As.
func (e *RankError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrProcFailed}
	}
	return []error{ErrProcFailed, e.Err}
}
