package mpi

import "context"

// This file is the byte-level interface that everything above point-to-point
// messages (collectives, windows) is built from. Tags of the slots other than
// slotUser are private to their owner and may be any int32 ≥ 0; receives there
// may use AnySource, but not AnyTag. Peers may be ProcNull.

// A sendMode selects when a send completes.
type sendMode uint8

const (
	sendStandard sendMode = iota
	sendSync              // completes only when a receive has matched (MPI-5.0, Section 3.4)
	sendHeld              // as sendStandard; the caller calls pusher.waiting before it blocks
)

// csend sends b to rank dst of c in the collective context and returns when b
// may be reused. It blocks at most until a matching receive is posted.
func (c *Comm) csend(ctx context.Context, b []byte, dst, tag int) error {
	return c.send(ctx, slotColl, sendStandard, b, dst, tag)
}

// cisend starts csend. b must not be changed until the request is done. It
// does not block.
func (c *Comm) cisend(b []byte, dst, tag int) (*Request, error) {
	return c.isend(slotColl, sendStandard, b, dst, tag)
}

// cirecv starts a receive into b from rank src of c in the collective context.
// A message longer than b gives ErrTruncate; a shorter one is not an error. b
// must not be touched until the request is done.
func (c *Comm) cirecv(b []byte, src, tag int) (*Request, error) {
	return c.irecv(slotColl, b, src, tag)
}

// csendrecv sends and receives at the same time: it posts the receive first,
// so pairs of ranks that call it never block each other.
func (c *Comm) csendrecv(ctx context.Context, sb []byte, dst, stag int, rb []byte, src, rtag int) (Status, error) {
	return c.sendrecv(ctx, slotColl, sb, dst, stag, rb, src, rtag)
}
