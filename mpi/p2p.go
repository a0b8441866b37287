package mpi

import (
	"context"

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
	return c.Send(ctx, Elements(buf), dst, tag)
}

// Send is the function [Send] of what b describes (MPI_Send). Errors are those of Send and of b.
func (c *Comm) Send(ctx context.Context, b Buffer, dst, tag int) error {
	return c.send(ctx, "Send", p2p.SendStandard, &b, dst, tag)
}

// SendType is Send of count items of t in buf (MPI_Send). It blocks as Send
// does, and buf belongs to the call as long. Errors are those of Send, and
// ErrCount for items outside buf.
func SendType[T Element](ctx context.Context, c *Comm, buf []T, count int, t *Datatype, dst, tag int) error {
	return c.Send(ctx, Items(buf, count, t), dst, tag)
}

// Ssend is [Send] that returns only when a receive has matched the message (MPI-4.1, Section 3.4).
// If it returns ctx.Err() the message is never received. Until it returns buf must not be changed.
// Errors to test for: those of Send.
func Ssend[T Element](ctx context.Context, c *Comm, buf []T, dst, tag int) error {
	return c.Ssend(ctx, Elements(buf), dst, tag)
}

// Ssend is the function [Ssend] of what b describes (MPI_Ssend). Errors are those of Ssend and of b.
func (c *Comm) Ssend(ctx context.Context, b Buffer, dst, tag int) error {
	return c.send(ctx, "Ssend", p2p.SendSync, &b, dst, tag)
}

func (c *Comm) send(ctx context.Context, name string, mode p2p.SendMode, b *Buffer, dst, tag int) error {
	if err := b.check(tag); err != nil {
		return c.raise(err)
	}
	t := c.enter()
	err := c.comm.SendItems(ctx, mode, &b.items, dst, tag)
	c.leave(t, name, dst, tag, b.Len(), err)
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
	return c.Recv(ctx, Elements(buf), src, tag)
}

// Recv is the function [Recv] into what b describes (MPI_Recv). Errors are those of Recv and of b.
func (c *Comm) Recv(ctx context.Context, b Buffer, src, tag int) (Status, error) {
	if err := b.err; err != nil {
		return Status{}, c.raise(err)
	}
	if err := c.checkRecv(src, tag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.comm.RecvItems(ctx, &b.items, src, tag)
	c.leaveRecv(t, "Recv", src, tag, st, err)
	return Status(st), c.raise(err)
}

// RecvType is Recv of up to count items of t into buf (MPI_Recv). A shorter
// message fills the first part of the items. It blocks as Recv does, and buf
// belongs to the call as long. Errors are those of Recv, and ErrCount for items
// outside buf.
func RecvType[T Element](ctx context.Context, c *Comm, buf []T, count int, t *Datatype, src, tag int) (Status, error) {
	return c.Recv(ctx, Items(buf, count, t), src, tag)
}

// Isend starts [Send] (MPI_Isend). buf must not be changed until the request is done. It does not
// block.
func Isend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	return c.Isend(Elements(buf), dst, tag)
}

// Isend is the function [Isend] of what b describes (MPI_Isend).
func (c *Comm) Isend(b Buffer, dst, tag int) (*Request, error) {
	return c.isend("Isend", p2p.SendStandard, false, &b, dst, tag)
}

// IsendType is Isend of count items of t in buf (MPI_Isend).
func IsendType[T Element](c *Comm, buf []T, count int, t *Datatype, dst, tag int) (*Request, error) {
	return c.Isend(Items(buf, count, t), dst, tag)
}

// Issend is [Isend] with a request that is done only when a receive has matched (MPI_Issend). It
// does not block.
func Issend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	return c.Issend(Elements(buf), dst, tag)
}

// Issend is the function [Issend] of what b describes (MPI_Issend).
func (c *Comm) Issend(b Buffer, dst, tag int) (*Request, error) {
	return c.isend("Issend", p2p.SendSync, false, &b, dst, tag)
}

// Irecv starts [Recv] (MPI_Irecv). buf must not be touched until the request is done. It does not
// block.
func Irecv[T Element](c *Comm, buf []T, src, tag int) (*Request, error) {
	return c.Irecv(Elements(buf), src, tag)
}

// Irecv is the function [Irecv] into what b describes (MPI_Irecv).
func (c *Comm) Irecv(b Buffer, src, tag int) (*Request, error) {
	if err := b.err; err != nil {
		return nil, c.raise(err)
	}
	if err := c.checkRecv(src, tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r := newRequest(c.w)
	err := c.comm.BeginRecvItems(&r.request, &b.items, src, tag)
	c.leave(t, "Irecv", src, tag, b.Len(), err)
	return c.started(r, err)
}

// IrecvType is Irecv of up to count items of t into buf (MPI_Irecv).
func IrecvType[T Element](c *Comm, buf []T, count int, t *Datatype, src, tag int) (*Request, error) {
	return c.Irecv(Items(buf, count, t), src, tag)
}

// isend starts a send of the program. With copies b is free at once.
func (c *Comm) isend(name string, mode p2p.SendMode, copies bool, b *Buffer, dst, tag int) (*Request, error) {
	if err := b.check(tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r := newRequest(c.w)
	err := c.comm.BeginSendItems(&r.request, mode, copies, &b.items, dst, tag)
	c.leave(t, name, dst, tag, b.Len(), err)
	return c.started(r, err)
}

// started returns the request of an operation of c that has begun, or why it has not.
func (c *Comm) started(r *Request, err error) (*Request, error) {
	if err != nil {
		return nil, c.raise(err)
	}
	r.comm = c
	return r, nil
}
