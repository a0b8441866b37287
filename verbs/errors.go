package verbs

import (
	"errors"
	"fmt"

	"github.com/weftstack/weft/rdmap"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrBusy is returned by Close of an object that others still use: a PD
	// with regions, windows, queue pairs or shared receive queues, a CQ or SRQ
	// with queue pairs, a CompChannel with completion queues, an MR that posted
	// work requests name or windows are bound to, an MW that posted work
	// requests name, a device with protection domains.
	ErrBusy = errors.New("verbs: object in use")
	// ErrClosed is returned by operations on a closed object.
	ErrClosed = errors.New("verbs: closed")
	// ErrQPState is returned by operations that the state of the queue pair
	// does not allow.
	ErrQPState = errors.New("verbs: queue pair state does not allow this")
	// ErrQueueFull is returned by PostSend and PostRecv when the queue has no
	// room for all the work requests given.
	ErrQueueFull = errors.New("verbs: work queue is full")
	// ErrSGL is returned for a scatter/gather list that is too long, or whose
	// elements are outside their region, of another protection domain or
	// without the access right the operation needs.
	ErrSGL = errors.New("verbs: bad scatter/gather list")
	// ErrWorkRequest is returned for any other defect of a work request.
	ErrWorkRequest = errors.New("verbs: bad work request")
	// ErrAccess is returned by Register for an impossible set of rights.
	ErrAccess = errors.New("verbs: bad access rights")
	// ErrInvalid is returned for arguments that make no sense together: an
	// object of another device or domain, an attribute that cannot be changed.
	ErrInvalid = errors.New("verbs: invalid argument")
	// ErrLimit is returned when a limit of the device is reached.
	ErrLimit = errors.New("verbs: device limit reached")
	// ErrCQOverflow is returned, once for each overflow, by Wait and Err of a
	// completion queue that lost completions, and ends the queue pairs whose
	// completions they were: see Device.NewCQ.
	ErrCQOverflow = errors.New("verbs: completion queue overflow")
	// ErrPrivateData is returned for private data over MaxPrivateData.
	ErrPrivateData = errors.New("verbs: private data too long")
	// ErrRefused ends a Connect that the peer's device refused without asking
	// its consumer: it has no listener, or too many requests are pending.
	ErrRefused = errors.New("verbs: connection refused")
	// ErrNoTransport is returned by Connect of a device without a transport.
	ErrNoTransport = errors.New("verbs: device has no SCTP transport")
	// ErrDisconnected is the end of a queue pair that either side
	// disconnected gracefully.
	ErrDisconnected = errors.New("verbs: disconnected")
	// ErrReadDepth ends a Connect or Accept whose read depths cannot be
	// granted (RFC 6581, Section 9.1).
	ErrReadDepth = errors.New("verbs: insufficient inbound read resources")
	// ErrRTR ends a ConnectTCP whose peer wants a ready-to-receive indication
	// that this side does not generate (RFC 6581, Section 9.2).
	ErrRTR = errors.New("verbs: no matching ready-to-receive indication")
	// ErrWRFlush is the error of a completion with StatusFlush.
	ErrWRFlush = errors.New("verbs: work request flushed")
)

// RejectError ends a Connect that the consumer on the other side rejected.
type RejectError struct {
	// PrivateData is what the other side gave to Reject.
	PrivateData []byte
}

// Error implements error.
func (e *RejectError) Error() string {
	return fmt.Sprintf("verbs: connection rejected, %d bytes of private data", len(e.PrivateData))
}

// TerminateError is the end of a queue pair by an RDMAP Terminate message, in
// either direction; see rdmap.TerminateError.
type TerminateError = rdmap.TerminateError
