package verbs

import (
	"fmt"

	"github.com/weftstack/weft/rdmap"
)

// Status tells how a work request ended.
type Status = rdmap.Status

// Statuses of a completion.
const (
	StatusSuccess = rdmap.StatusSuccess
	// StatusFlush: the queue pair left the RTS state before the work request
	// was done.
	StatusFlush = rdmap.StatusFlush
	// StatusLocalLength: an incoming message did not fit the receive buffer.
	StatusLocalLength = rdmap.StatusLocalLength
	// StatusLocalProtection: the memory of the work request was revoked.
	StatusLocalProtection = rdmap.StatusLocalProtection
	// StatusLocalOperation: a read or atomic where the peer grants none.
	StatusLocalOperation = rdmap.StatusLocalOperation
	// StatusBadResponse: the response to a read or atomic was not what was
	// asked for.
	StatusBadResponse = rdmap.StatusBadResponse
	// StatusRemoteAccess: the peer terminated the stream because of this work
	// request's STag, bounds or rights.
	StatusRemoteAccess = rdmap.StatusRemoteAccess
	// StatusRemoteOperation: the peer terminated the stream because of this
	// work request, for another reason: it had no receive for a send, or a shorter
	// one, or an atomic was not aligned.
	//
	// A send or write completes when its memory is not needed any more, not when
	// the peer has accepted it. One of at most ddp.MaxCopied bytes that fits a
	// segment has completed with success by the time that the peer objects, unless
	// an earlier work request had not: QP.Err then tells, and later work requests
	// are flushed.
	StatusRemoteOperation = rdmap.StatusRemoteOperation
	// StatusBind: an OpBindMW or OpFastRegister found its window or region in
	// use, or the memory not registered any more.
	StatusBind = rdmap.StatusBind
)

// WCFlags tell more about a receive completion.
type WCFlags = rdmap.CompletionFlags

// Flags of a receive completion.
const (
	// WithImm: Imm is valid.
	WithImm = rdmap.CompletionImm
	// WithInvalidate: the peer invalidated the region with STag Invalidated.
	WithInvalidate = rdmap.CompletionInvalidate
	// WasSolicited: the peer asked for a solicited event.
	WasSolicited = rdmap.CompletionSolicited
)

// WC is a work completion.
type WC struct {
	// ID is that of the work request.
	ID uint64
	// QP is the queue pair it was posted to.
	QP *QP
	// Recv tells a receive work request from a send work request, whose Op is
	// Op.
	Recv bool
	Op   Opcode
	// Status tells how it ended; the fields below are valid for
	// StatusSuccess.
	Status Status
	Flags  WCFlags
	// Len is the number of bytes received or read.
	Len uint32
	// Imm is the immediate data, Invalidated the STag the peer invalidated.
	Imm         uint64
	Invalidated uint32
}

// Err returns nil for StatusSuccess, else an error that wraps ErrWRFlush for
// StatusFlush and, if the queue pair ended by a Terminate message, the
// *TerminateError. It allocates.
func (wc *WC) Err() error {
	if wc.Status == StatusSuccess {
		return nil
	}
	var cause error
	if wc.QP != nil {
		cause = wc.QP.Err()
	}
	if wc.Status == StatusFlush {
		if cause == nil {
			return ErrWRFlush
		}
		return fmt.Errorf("%w: %w", ErrWRFlush, cause)
	}
	if cause == nil {
		return fmt.Errorf("verbs: work request %#x: %v", wc.ID, wc.Status)
	}
	return fmt.Errorf("verbs: work request %#x: %v: %w", wc.ID, wc.Status, cause)
}
