package mpi

import (
	"context"
	"errors"
)

// A link carries messages to one peer. Its methods may be called from any
// goroutine, also from within an upcall, and never wait for the peer.
//
// In the other direction the link passes what arrives to the message parsers of the peer,
// one call at a time, and finally calls down of the peer.
type link interface {
	// send queues one message, made of hdr and body. Messages of one stream
	// arrive in the order of the calls. hdr is copied. body is copied if own
	// is nil, and errLinkFull is returned if there is too much queued (never
	// for a message without body); otherwise it is referenced until
	// own.Released, which may be called within send, and there is no limit.
	// Nothing need be transmitted before flush. Once the link has ended, down
	// of the peer being called or about to be, send fails.
	send(stream uint16, hdr, body []byte, own owner) error
	// flush transmits what was queued.
	flush()
	// copyLimit is the length up to which bodies are better copied, depending
	// on whether the sender is blocked until they are released.
	copyLimit(blocks bool) int
	// shutdown ends the link when everything sent has been delivered, or ctx
	// is done.
	shutdown(ctx context.Context) error
	// abort ends the link at once; the peer is told reason if possible.
	abort(reason string)
}

// promptLink is a link that can queue and transmit at once for less than both
// take.
type promptLink interface {
	// sendNow is send, without an owner, and flush. It makes no upcalls.
	sendNow(stream uint16, hdr, body []byte) error
}

// owner is told when the link no longer reads a body that it references.
type owner interface{ Released(err error) }

// errLinkFull is returned by link.send for a message that should be referenced
// rather than copied.
var errLinkFull = errors.New("mpi: link full")
