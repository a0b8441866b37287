package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Send sends buf to rank dst of c (MPI-4.1, Section 3.2.1). It blocks until buf may be reused: a
// short message is sent eagerly, so Send returns at once; a longer one uses a rendezvous, so Send
// returns after a receive has matched and the transport has sent the body. If ctx ends while Send
// waits for a matching receive, it asks dst to drop the message, and returns ctx.Err() when dst has
// done so: the message is never received. If a receive has matched before, Send waits until the
// message is sent, and succeeds. Either takes a round trip, or until dst is found to have failed.
// Errors to test for: ErrRank, ErrTag, ErrType, ErrLimit if too many messages to dst wait for
// receives, and [RankError] if dst has failed.
func Send[T Element](ctx context.Context, c *Comm, buf []T, dst, tag int) error {
	b, s, err := typedBytes(buf)
	if err != nil {
		return c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return c.raise(err)
	}
	t := c.enter()
	err = c.comm.Send(ctx, s, p2p.SendStandard, b, dst, tag)
	c.leave(t, "Send", dst, tag, len(b), err)
	return c.raise(err)
}

// Ssend is [Send] that returns only when a receive has matched the message (MPI-4.1, Section 3.4).
// If it returns ctx.Err() the message is never received. Until it returns buf must not be changed.
// Errors to test for: those of Send.
func Ssend[T Element](ctx context.Context, c *Comm, buf []T, dst, tag int) error {
	b, s, err := typedBytes(buf)
	if err != nil {
		return c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return c.raise(err)
	}
	t := c.enter()
	err = c.comm.Send(ctx, s, p2p.SendSync, b, dst, tag)
	c.leave(t, "Ssend", dst, tag, len(b), err)
	return c.raise(err)
}

// Recv receives a message from rank src of c with the given tag into buf; src may be [AnySource],
// tag may be [AnyTag] (MPI_Recv). It blocks until the message is received, ctx ends or src has
// failed. If ctx ends before a message has matched, the receive is withdrawn: no message is taken,
// and buf is not written to any more. After a match Recv waits for the rest of the message, or
// until its sender is found to have failed.
//
// A message longer than buf gives ErrTruncate. One of elements of another type gives
// ErrTypeMismatch, and buf is unchanged; []byte matches all types, as sender and as receiver, and
// so do structs of very many different fields. Errors to test for, apart from these: ErrRank,
// ErrTag, ErrType, and [RankError].
func Recv[T Element](ctx context.Context, c *Comm, buf []T, src, tag int) (Status, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return Status{}, c.raise(err)
	}
	if err := c.checkRecv(src, tag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.comm.Recv(ctx, s, b, src, tag)
	c.leaveRecv(t, "Recv", src, tag, st, err)
	return Status(st), c.raise(err)
}

// Sendrecv sends send to dst and receives into recv from src at the same time (MPI-4.1, Section
// 3.10). The buffers must not overlap. It blocks until send may be changed and recv is filled. If
// ctx ends, the messages that no call of another rank has matched are withdrawn; if that is one of
// the two, Sendrecv returns a [SendrecvError], which says which message was exchanged. Errors to
// test for: those of [Send] and [Recv].
func Sendrecv[S, R Element](
	ctx context.Context, c *Comm, send []S, dst, stag int, recv []R, src, rtag int,
) (Status, error) {
	sb, ss, err := typedBytes(send)
	if err != nil {
		return Status{}, c.raise(err)
	}
	rb, rs, err := typedBytes(recv)
	if err != nil {
		return Status{}, c.raise(err)
	}
	return c.sendrecvUser(ctx, "Sendrecv", ss, sb, dst, stag, rs, rb, src, rtag)
}

// sendrecvUser is Sendrecv of bytes, with a name for profilers.
func (c *Comm) sendrecvUser(
	ctx context.Context, name string, s p2p.Slot, send []byte, dst, stag int, rs p2p.Slot, recv []byte, src, rtag int,
) (Status, error) {
	if err := checkTag(stag); err != nil {
		return Status{}, c.raise(err)
	}
	if err := c.checkRecv(src, rtag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.comm.Sendrecv(ctx, s, send, dst, stag, rs, recv, src, rtag)
	if e, ok := err.(*p2p.PartialError); ok {
		err = (*SendrecvError)(e)
	}
	c.leave(t, name, dst, stag, len(send), err)
	return Status(st), c.raise(err)
}

// Isend starts [Send] (MPI_Isend). buf must not be changed until the request is done. It does not
// block.
func Isend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return nil, c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r, err := c.isend(s, p2p.SendStandard, b, dst, tag)
	c.leave(t, "Isend", dst, tag, len(b), err)
	return r, c.raise(err)
}

// Issend is [Isend] with a request that is done only when a receive has matched (MPI_Issend). It
// does not block.
func Issend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return nil, c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r, err := c.isend(s, p2p.SendSync, b, dst, tag)
	c.leave(t, "Issend", dst, tag, len(b), err)
	return r, c.raise(err)
}

// Irecv starts [Recv] (MPI_Irecv). buf must not be touched until the request is done. It does not
// block.
func Irecv[T Element](c *Comm, buf []T, src, tag int) (*Request, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return nil, c.raise(err)
	}
	if err := c.checkRecv(src, tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r, err := c.irecv(s, b, src, tag)
	c.leave(t, "Irecv", src, tag, len(b), err)
	return r, c.raise(err)
}

// isend starts a send of the program.
func (c *Comm) isend(s p2p.Slot, mode p2p.SendMode, b []byte, dst, tag int) (*Request, error) {
	r := newRequest(c.w)
	if err := c.comm.BeginSend(&r.request, s, mode, b, dst, tag); err != nil {
		return nil, err
	}
	r.comm = c
	return r, nil
}

// irecv starts a receive of the program.
func (c *Comm) irecv(s p2p.Slot, b []byte, src, tag int) (*Request, error) {
	r := newRequest(c.w)
	if err := c.comm.BeginRecv(&r.request, s, b, src, tag); err != nil {
		return nil, err
	}
	r.comm = c
	return r, nil
}

func checkTag(tag int) error {
	if tag < 0 || tag > TagUB {
		return fmt.Errorf("%w: %d", ErrTag, tag)
	}
	return nil
}
