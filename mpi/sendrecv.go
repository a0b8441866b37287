package mpi

import (
	"context"
	"errors"
	"time"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Sendrecv sends send to dst and receives into recv from src at the same time (MPI-4.1, Section
// 3.10). The buffers must not overlap. It blocks until send may be changed and recv is filled. If
// ctx ends, the messages that no call of another rank has matched are withdrawn; if that is one of
// the two, Sendrecv returns a [SendrecvError], which says which message was exchanged. Errors to
// test for: those of [Send] and [Recv].
func Sendrecv[S, R Element](
	ctx context.Context, c *Comm, send []S, dst, stag int, recv []R, src, rtag int,
) (Status, error) {
	return c.Sendrecv(ctx, Elements(send), dst, stag, Elements(recv), src, rtag)
}

// Sendrecv is the function [Sendrecv] of what send and recv describe (MPI_Sendrecv).
func (c *Comm) Sendrecv(ctx context.Context, send Buffer, dst, stag int, recv Buffer, src, rtag int) (Status, error) {
	if err := c.checkBoth(&send, stag, &recv, src, rtag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.comm.SendrecvItems(ctx, &send.items, dst, stag, &recv.items, src, rtag)
	return c.exchanged("Sendrecv", t, dst, stag, send.Len(), st, err)
}

// SendrecvReplace sends buf to dst and then receives into it from src (MPI-4.1, Section 3.10). It
// copies buf. It blocks until buf has been filled; until then buf belongs to the call. Errors to
// test for: those of [Sendrecv].
func SendrecvReplace[T Element](ctx context.Context, c *Comm, buf []T, dst, stag, src, rtag int) (Status, error) {
	return c.SendrecvReplace(ctx, Elements(buf), dst, stag, src, rtag)
}

// SendrecvReplace is the function [SendrecvReplace] of what b describes (MPI_Sendrecv_replace).
func (c *Comm) SendrecvReplace(ctx context.Context, b Buffer, dst, stag, src, rtag int) (Status, error) {
	if err := c.checkBoth(&b, stag, &b, src, rtag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.comm.ReplaceItems(ctx, &b.items, dst, stag, src, rtag)
	return c.exchanged("SendrecvReplace", t, dst, stag, b.Len(), st, err)
}

// exchanged ends a combined send and receive of n bytes.
func (c *Comm) exchanged(name string, t time.Time, dst, stag, n int, st p2p.Status, err error) (Status, error) {
	if e, ok := err.(*p2p.PartialError); ok {
		err = (*SendrecvError)(e)
	}
	c.leave(t, name, dst, stag, n, err)
	return Status(st), c.raise(err)
}

// Isendrecv starts [Sendrecv] (MPI_Isendrecv). The receive and the send are matched in the order of
// the calls. The buffers must not be touched until the request is done. It does not block.
func Isendrecv[S, R Element](c *Comm, send []S, dst, stag int, recv []R, src, rtag int) (*Request, error) {
	return c.Isendrecv(Elements(send), dst, stag, Elements(recv), src, rtag)
}

// Isendrecv is the function [Isendrecv] of what send and recv describe (MPI_Isendrecv).
func (c *Comm) Isendrecv(send Buffer, dst, stag int, recv Buffer, src, rtag int) (*Request, error) {
	return c.isendrecv("Isendrecv", false, &send, dst, stag, &recv, src, rtag)
}

// IsendrecvReplace starts [SendrecvReplace] (MPI_Isendrecv_replace). buf must not be touched until
// the request is done. It does not block.
func IsendrecvReplace[T Element](c *Comm, buf []T, dst, stag, src, rtag int) (*Request, error) {
	return c.IsendrecvReplace(Elements(buf), dst, stag, src, rtag)
}

// IsendrecvReplace is the function [IsendrecvReplace] of what b describes (MPI_Isendrecv_replace).
func (c *Comm) IsendrecvReplace(b Buffer, dst, stag, src, rtag int) (*Request, error) {
	return c.isendrecv("IsendrecvReplace", true, &b, dst, stag, &b, src, rtag)
}

// isendrecv starts the send and the receive: first the send, since that may fail, and a receive
// that has matched cannot be undone. With copies, send is sent from a copy.
func (c *Comm) isendrecv(
	name string, copies bool, send *Buffer, dst, stag int, recv *Buffer, src, rtag int,
) (*Request, error) {
	if err := c.checkBoth(send, stag, recv, src, rtag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	r, err := c.beginBoth(copies, send, dst, stag, recv, src, rtag)
	c.leave(t, name, dst, stag, send.Len(), err)
	return c.started(r, err)
}

func (c *Comm) beginBoth(copies bool, send *Buffer, dst, stag int, recv *Buffer, src, rtag int) (*Request, error) {
	if src != ProcNull {
		if err := c.comm.CheckSource(p2p.SlotUser, src); err != nil {
			return nil, err
		}
	}
	s, r := p2p.GetRequest(c.w.eng), p2p.GetRequest(c.w.eng)
	if err := c.comm.BeginSendItems(s, p2p.SendStandard, copies, &send.items, dst, stag); err != nil {
		return nil, err
	}
	err := c.comm.BeginRecvItems(r, &recv.items, src, rtag) // its arguments have been checked
	return goRequest(c.w, func() (Status, error) {
		_, serr := s.Wait(context.Background())
		if err != nil {
			return Status{}, err
		}
		st, rerr := r.Wait(context.Background())
		if rerr == nil {
			rerr = serr
		}
		return Status(st), rerr
	}), nil
}

// checkBoth returns why the Buffers cannot be sent and received, or nil.
func (c *Comm) checkBoth(send *Buffer, stag int, recv *Buffer, src, rtag int) error {
	if err := errors.Join(send.err, recv.err); err != nil {
		return err
	}
	if err := checkTag(stag); err != nil {
		return err
	}
	return c.checkRecv(src, rtag)
}
