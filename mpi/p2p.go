package mpi

import (
	"context"
	"fmt"
)

// Send sends buf to rank dst of c and returns when buf may be reused: at once
// for a short message, when the transport has taken it all for a long one,
// which needs a matching receive. It returns ErrRank, ErrTag or ErrType for bad
// arguments and a RankError if dst is gone. When ctx ends while Send waits for a
// matching receive it asks dst to forget the message, and returns ctx.Err() when dst
// has done so: the message is never received. If a receive has matched the message
// before, Send waits until it is sent, and succeeds. Either takes a round trip, or
// until dst is found to be gone. (MPI-4.1, Section 3.2.1)
func Send[T Element](ctx context.Context, c *Comm, buf []T, dst, tag int) error {
	b, s, err := typedBytes(buf)
	if err != nil {
		return c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return c.raise(err)
	}
	t := c.enter()
	err = c.send(ctx, s, sendStandard, b, dst, tag)
	c.leave(t, "Send", dst, tag, len(b), err)
	return c.raise(err)
}

// Ssend is Send that returns only when a receive has matched the message
// (MPI-4.1, Section 3.4). If it returns ctx.Err() the message is never received.
// Until it returns buf must not be changed. Errors are those of Send.
func Ssend[T Element](ctx context.Context, c *Comm, buf []T, dst, tag int) error {
	b, s, err := typedBytes(buf)
	if err != nil {
		return c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return c.raise(err)
	}
	t := c.enter()
	err = c.send(ctx, s, sendSync, b, dst, tag)
	c.leave(t, "Ssend", dst, tag, len(b), err)
	return c.raise(err)
}

// Recv receives a message from rank src of c with the given tag into buf; src may be
// AnySource, tag may be AnyTag (MPI_Recv). It blocks until the message is there, ctx
// is done or src is gone (RankError). When ctx ends before a message has matched, the
// receive is withdrawn, and buf no longer written to: no message is taken. After that
// Recv waits for the rest of the message, or until its sender is found to be gone. A
// message longer than buf gives ErrTruncate, one of elements of another type
// ErrTypeMismatch: then buf is unchanged. []byte matches all types, as sender and as
// receiver; so do structs of very many different fields.
func Recv[T Element](ctx context.Context, c *Comm, buf []T, src, tag int) (Status, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return Status{}, c.raise(err)
	}
	if err := c.checkRecv(src, tag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.recv(ctx, s, b, src, tag)
	c.leaveRecv(t, "Recv", src, tag, st, err)
	return st, c.raise(err)
}

// Sendrecv sends send to dst and receives into recv from src at the same time
// (MPI-4.1, Section 3.10). The buffers must not overlap. When ctx ends it withdraws
// what no call of another rank has matched; if that is only one of the two messages it
// returns a SendrecvError, which says which was exchanged. It blocks until send may be
// changed and recv is filled. Other errors are those of Send and Recv.
func Sendrecv[S, R Element](ctx context.Context, c *Comm, send []S, dst, stag int, recv []R, src, rtag int) (Status, error) {
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

// sendrecvUser is Sendrecv of bytes, by a name for profilers.
func (c *Comm) sendrecvUser(ctx context.Context, name string, s slot, send []byte, dst, stag int, rs slot, recv []byte, src, rtag int) (Status, error) {
	if err := checkTag(stag); err != nil {
		return Status{}, c.raise(err)
	}
	if err := c.checkRecv(src, rtag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.sendrecv(ctx, s, send, dst, stag, rs, recv, src, rtag)
	c.leave(t, name, dst, stag, len(send), err)
	return st, c.raise(err)
}

// Isend starts a send. buf must not be changed until the request is done
// (MPI_Isend). It does not block.
func Isend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return nil, c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r, err := c.isend(s, sendStandard, b, dst, tag)
	c.leave(t, "Isend", dst, tag, len(b), err)
	return r, c.raise(err)
}

// Issend is Isend whose request is done only when a receive has matched
// (MPI_Issend).
func Issend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return nil, c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r, err := c.isend(s, sendSync, b, dst, tag)
	c.leave(t, "Issend", dst, tag, len(b), err)
	return r, c.raise(err)
}

// Irecv starts a receive. buf must not be touched until the request is done
// (MPI_Irecv). It does not block.
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

func checkTag(tag int) error {
	if tag < 0 || tag > TagUB {
		return fmt.Errorf("%w: %d", ErrTag, tag)
	}
	return nil
}
