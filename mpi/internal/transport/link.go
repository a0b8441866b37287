package transport

import (
	"context"
	"errors"
)

// A Link carries messages to one peer. Its methods may be called from any goroutine, also from an upcall, and never
// wait for the peer, but for Shutdown. What arrives goes to the Parsers of the Peer.
type Link interface {
	// Send queues one message, made of hdr and body. Messages of one stream arrive in the order of the calls. hdr is
	// copied. If own is nil, body is copied, and Send returns ErrFull if too much is queued (never for a message without
	// body). Otherwise body is referenced without a limit until own.Released, which may be called within Send. Nothing
	// need be transmitted before Flush. Send fails once the link has ended and Peer.Down has been or is about to be
	// called.
	Send(stream uint16, hdr, body []byte, own Owner) error
	// Flush transmits the queued messages.
	Flush()
	// CopyLimit is the length up to which copying a body is better than referencing it. blocks says that the sender is
	// blocked until the body is released.
	CopyLimit(blocks bool) int
	// Shutdown ends the link after everything sent has been delivered, or when ctx ends. It blocks until then.
	Shutdown(ctx context.Context) error
	// Abort ends the link at once, and sends reason to the peer if possible.
	Abort(reason string)
}

// PromptLink is a link that can queue and transmit in one step, which costs less than two.
type PromptLink interface {
	// SendNow is Send without an owner, and Flush. It makes no upcalls.
	SendNow(stream uint16, hdr, body []byte) error
}

// RunsLink is a link that can send a body which lies in runs of memory without a packed copy of it.
type RunsLink interface {
	Link
	// SendRuns is Send with an owner of a body that is made of runs, none of which is empty. The runs and the slice of
	// them are referenced until own.Released. If it fails, Released is not called.
	SendRuns(stream uint16, hdr []byte, runs [][]byte, own Owner) error
	// MinRun is the mean length of the runs, in bytes, from which SendRuns takes less time than a packed copy.
	MinRun() int
}

// Owner is notified when the link no longer reads a body that it references.
type Owner interface{ Released(err error) }

// Errors of links.
var (
	// ErrFull is returned by Send for a body that should be referenced rather than copied.
	ErrFull = errors.New("mpi: link full")
	// ErrClosed is the error of a link that this process has closed.
	ErrClosed = errors.New("mpi: link closed")
)
