package mpi

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Errors of arguments, which callers branch on with errors.Is. The MPI error class of
// each is what ErrorClass returns.
var (
	// ErrRank is returned for a rank outside the communicator (MPI_ERR_RANK).
	ErrRank = mpierr.ErrRank
	// ErrRoot is returned for a root outside the communicator (MPI_ERR_ROOT).
	ErrRoot = mpierr.ErrRoot
	// ErrTag is returned for a tag that is negative or above TagUB
	// (MPI_ERR_TAG).
	ErrTag = mpierr.ErrTag
	// ErrType is returned for a buffer with elements that hold pointers (MPI_ERR_TYPE).
	ErrType = mpierr.ErrType
	// ErrCount is returned when buffer lengths do not fit the operation
	// (MPI_ERR_COUNT).
	ErrCount = mpierr.ErrCount
	// ErrBuffer is returned for memory that cannot be a buffer (MPI_ERR_BUFFER).
	ErrBuffer = mpierr.ErrBuffer
	// ErrOverlap is returned when buffers that must be apart overlap (MPI_ERR_BUFFER). The
	// same memory as send and receive buffer is the in-place form (MPI_IN_PLACE).
	ErrOverlap = mpierr.ErrOverlap
	// ErrOp is returned for an operator that is nil or not allowed here
	// (MPI_ERR_OP).
	ErrOp = mpierr.ErrOp
	// ErrDatatype is returned for impossible datatypes: negative lengths, sizes that do not fit an
	// int, lists of different lengths, too much nesting (MPI_ERR_ARG).
	ErrDatatype = mpierr.ErrDatatype
	// ErrTopology is returned for impossible topologies (MPI_ERR_TOPOLOGY).
	ErrTopology = mpierr.ErrTopology
	// ErrPartition is returned for a partition that does not exist, or that is
	// marked as ready twice or while the operation is not started
	// (MPI_ERR_ARG).
	ErrPartition = mpierr.ErrPartition
	// ErrOption is returned for an option or environment variable that makes no sense.
	ErrOption = mpierr.ErrOption
	// ErrTuning is returned for a tuning table that cannot be read or names
	// unknown algorithms.
	ErrTuning = mpierr.ErrTuning
	// ErrNotSame is returned on all ranks by a collective call with arguments that must be the same
	// on all of them, and are not (MPI_ERR_NOT_SAME).
	ErrNotSame = mpierr.ErrNotSame
)

// Errors of messages and requests.
var (
	// ErrTruncate is returned by a receive with a buffer that is shorter than the message. The
	// buffer holds the first part of the message, the rest is dropped, and the job goes on
	// (MPI-4.1, Section 3.2.2).
	ErrTruncate = mpierr.ErrTruncate
	// ErrTypeMismatch is returned by a receive or collective for a message with elements of another
	// type than its buffer (MPI-4.1, Section 3.3.1). The message is consumed, the buffer is
	// unchanged, and the send completes.
	ErrTypeMismatch = mpierr.ErrTypeMismatch
	// ErrCanceled is returned by a request that was cancelled
	// (MPI_Test_cancelled).
	ErrCanceled = mpierr.ErrCanceled
	// ErrMessage is returned for a Message that has been received before.
	ErrMessage = mpierr.ErrMessage
	// ErrLimit is returned when a limit is reached: by a send, when too many earlier ones to the
	// same rank wait for receives.
	ErrLimit = mpierr.ErrLimit
)

// Errors of communicators and of the job.
var (
	// ErrComm is returned for an operation that an intercommunicator, or an intracommunicator, does
	// not support (MPI_ERR_COMM).
	ErrComm = mpierr.ErrComm
	// ErrFreed is returned by operations on a [Comm] after [Comm.Free].
	ErrFreed = mpierr.ErrFreed
	// ErrRevoked is returned by operations on a communicator after [Comm.Revoke] (MPI_ERR_REVOKED).
	ErrRevoked = mpierr.ErrRevoked
	// ErrProcFailed is wrapped by a [RankError]: the named rank has failed (MPI_ERR_PROC_FAILED).
	ErrProcFailed = mpierr.ErrProcFailed
	// ErrProcFailedPending is returned by [Request.Wait] and its relatives for a receive from
	// [AnySource] while the failure of a member of the communicator is not acknowledged by
	// [Comm.AckFailed] (MPI_ERR_PROC_FAILED_PENDING). The receive goes on; the error also wraps the
	// RankError.
	ErrProcFailedPending = mpierr.ErrProcFailedPending
	// ErrAborted is returned by operations after Abort.
	ErrAborted = mpierr.ErrAborted
	// ErrInitialized is returned by Init when it has been called before in this process
	// (MPI-4.1, Section 11.2.1: "at most once").
	ErrInitialized = mpierr.ErrInitialized
	// ErrFinalized is returned by operations on a World after Finalize.
	ErrFinalized = mpierr.ErrFinalized
	// ErrGoexit is returned for a function of the program that has ended its goroutine with
	// runtime.Goexit instead of returning, as testing.T.FailNow does: the function of a rank of
	// RunLocal, or an operator of a nonblocking collective.
	ErrGoexit = mpierr.ErrGoexit
	// ErrAuth is returned when a peer does not know the key of the job.
	ErrAuth = mpierr.ErrAuth
	// ErrProtocol is the reason why a link is closed when its peer violates the wire protocol.
	ErrProtocol = mpierr.ErrProtocol
)

// Errors of ports, published names and spawned processes.
var (
	// ErrPort is returned for a port that is not open, or where no Accept comes (MPI_ERR_PORT).
	ErrPort = mpierr.ErrPort
	// ErrName is returned for a name that is not published (MPI_ERR_NAME).
	ErrName = mpierr.ErrName
	// ErrService is returned by the publication of a name that is published already, and the
	// unpublication of one that is not (MPI_ERR_SERVICE).
	ErrService = mpierr.ErrService
	// ErrSpawn is wrapped by the errors of Spawn when processes cannot be started
	// (MPI_ERR_SPAWN).
	ErrSpawn = mpierr.ErrSpawn
)

// Errors of windows.
var (
	// ErrRange is returned for an access outside the target's window
	// (MPI_ERR_RMA_RANGE).
	ErrRange = mpierr.ErrRange
	// ErrAccess is returned for an access that the target's window does not allow
	// (MPI_ERR_RMA_ACCESS).
	ErrAccess = mpierr.ErrAccess
	// ErrEpoch is returned for synchronization calls that do not match, such as [Win.Unlock]
	// without [Win.Lock] (MPI_ERR_RMA_SYNC). [Win.Flush] never returns it: a window is always open.
	ErrEpoch = mpierr.ErrEpoch
	// ErrWindow is returned if the ranks of a window disagree about its elements, for operations
	// that the window does not support, and after [Win.Free] (MPI_ERR_WIN).
	ErrWindow = mpierr.ErrWindow
)

// Errors of files.
var (
	// ErrFile is returned after [File.Close], and for split collectives that do not match
	// (MPI_ERR_FILE).
	ErrFile = mpierr.ErrFile
	// ErrMode is returned for an access mode that makes no sense, and for
	// operations that it does not allow (MPI_ERR_AMODE).
	ErrMode = mpierr.ErrMode
	// ErrView is returned for an impossible view, and for places outside a view (MPI_ERR_ARG).
	ErrView = mpierr.ErrView
	// ErrDatarep is returned for a data representation that is not known for the
	// elements of a file, or that is registered already
	// (MPI_ERR_UNSUPPORTED_DATAREP).
	ErrDatarep = mpierr.ErrDatarep
	// ErrConversion is returned when a function of a Datarep returns an error,
	// which it wraps (MPI_ERR_CONVERSION).
	ErrConversion = mpierr.ErrConversion
)

// A SendrecvError is returned by [Sendrecv] and [SendrecvReplace] when one of the two messages was
// exchanged and the other was not, because the context ended or a rank failed in between
// (MPI_ERR_IN_STATUS). It wraps the reason. An error of another type says that neither was
// exchanged, or, if it is ErrTruncate, ErrTypeMismatch or, because of [InfoExactLength], ErrCount,
// that both were.
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

// Unwrap returns the reason, for errors.Is and errors.As.
func (e *SendrecvError) Unwrap() error { return e.Err }

// A RankError says that an operation failed because a rank has failed (MPI_ERR_PROC_FAILED). It
// wraps [ErrProcFailed] and the reason.
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

// Unwrap returns ErrProcFailed and the reason, for errors.Is and errors.As.
func (e *RankError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrProcFailed}
	}
	return []error{ErrProcFailed, e.Err}
}
