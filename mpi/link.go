package mpi

import (
	"context"
	"errors"
)

// A link carries messages to one peer. Its methods may be called from any goroutine, also from an
// upcall, and never wait for the peer.
//
// In the other direction the link gives what arrives to the message parsers of the peer, one call
// at a time, and calls down of the peer when it ends.
type link interface {
	// send queues one message, made of hdr and body. Messages of one stream arrive in the order of
	// the calls. hdr is copied. If own is nil, body is copied, and send returns errLinkFull if too
	// much is queued (never for a message without body). Otherwise body is referenced without a
	// limit until own.Released, which may be called within send. Nothing need be transmitted before
	// flush. send fails once the link has ended and down of the peer has been or is about to be
	// called.
	send(stream uint16, hdr, body []byte, own owner) error
	// flush transmits the queued messages.
	flush()
	// copyLimit is the length up to which copying a body is better than referencing it. blocks says
	// that the sender is blocked until the body is released.
	copyLimit(blocks bool) int
	// shutdown ends the link after everything sent has been delivered, or when ctx ends.
	shutdown(ctx context.Context) error
	// abort ends the link at once, and sends reason to the peer if possible.
	abort(reason string)
}

// promptLink is a link that can queue and transmit in one step, which costs less than two.
type promptLink interface {
	// sendNow is send without an owner, and flush. It makes no upcalls.
	sendNow(stream uint16, hdr, body []byte) error
}

// owner is notified when the link no longer reads a body that it references.
type owner interface{ Released(err error) }

// errLinkFull is returned by link.send for a body that should be referenced rather than copied.
var errLinkFull = errors.New("mpi: link full")
