package mpi

import (
	"context"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Isendrecv starts [Sendrecv] (MPI_Isendrecv). The receive and the send are matched in the order of
// the calls. The buffers must not be touched until the request is done. It does not block.
func Isendrecv[S, R Element](c *Comm, send []S, dst, stag int, recv []R, src, rtag int) (*Request, error) {
	sb, ss, err := typedBytes(send)
	if err != nil {
		return nil, c.raise(err)
	}
	rb, rs, err := typedBytes(recv)
	if err != nil {
		return nil, c.raise(err)
	}
	r, err := c.isendrecv("Isendrecv", ss, sb, dst, stag, rs, rb, src, rtag, nil)
	return r, c.raise(err)
}

// IsendrecvReplace starts [SendrecvReplace] (MPI_Isendrecv_replace). buf must not be touched until
// the request is done. It does not block.
func IsendrecvReplace[T Element](c *Comm, buf []T, dst, stag, src, rtag int) (*Request, error) {
	b, s, mem, err := copied(c, buf, stag, src, rtag)
	if err != nil {
		return nil, c.raise(err)
	}
	r, err := c.isendrecv("IsendrecvReplace", s, b, dst, stag, s, datatype.Bytes(buf), src, rtag, mem)
	return r, c.raise(err)
}

// isendrecv starts a receive and a send; it gives mem back when that is done.
func (c *Comm) isendrecv(
	name string, ss p2p.Slot, sb []byte, dst, stag int, rs p2p.Slot, rb []byte, src, rtag int, mem *bufpool.Buffer,
) (*Request, error) {
	if err := checkTag(stag); err != nil {
		return nil, err
	}
	if err := c.checkRecv(src, rtag); err != nil {
		return nil, err
	}
	t := c.enter()
	r, err := c.both(ss, sb, dst, stag, rs, rb, src, rtag, mem)
	if err != nil {
		return nil, err
	}
	r.comm = c
	c.leave(t, name, dst, stag, len(sb), nil)
	return r, nil
}

// copied returns a copy of buf in scratch memory, and its slot, after checking the tags.
func copied[T Element](c *Comm, buf []T, stag, src, rtag int) ([]byte, p2p.Slot, *bufpool.Buffer, error) {
	own, s, err := typedBytes(buf)
	if err != nil {
		return nil, 0, nil, err
	}
	if err := checkTag(stag); err != nil {
		return nil, 0, nil, err
	}
	if err := c.checkRecv(src, rtag); err != nil {
		return nil, 0, nil, err
	}
	mem := bufpool.Get(len(own))
	b := mem.Bytes(len(own))
	copy(b, own)
	return b, s, mem, nil
}

// both starts the send and the receive of isendrecv: first the send, since that may
// fail, and a receive that has matched cannot be undone.
func (c *Comm) both(
	ss p2p.Slot, sb []byte, dst, stag int, rs p2p.Slot, rb []byte, src, rtag int, mem *bufpool.Buffer,
) (*Request, error) {
	if src != ProcNull {
		if err := c.comm.CheckSource(rs, src); err != nil {
			mem.Put()
			return nil, err
		}
	}
	s, err := c.comm.Isend(ss, p2p.SendStandard, sb, dst, stag)
	if err != nil {
		mem.Put()
		return nil, err
	}
	r, err := c.comm.Irecv(rs, rb, src, rtag) // its arguments have been checked
	return goRequest(c.w, func() (Status, error) {
		_, serr := s.Wait(context.Background())
		mem.Put()
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

// SendrecvReplace sends buf to dst and then receives into it from src (MPI-4.1, Section 3.10). It
// copies buf. It blocks until buf has been filled; until then buf belongs to the call. Errors to
// test for: those of [Sendrecv].
func SendrecvReplace[T Element](ctx context.Context, c *Comm, buf []T, dst, stag, src, rtag int) (Status, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return Status{}, c.raise(err)
	}
	m := bufpool.Get(len(b))
	st, err := c.sendrecvUser(ctx, "SendrecvReplace", s, copyOf(m, b), dst, stag, s, b, src, rtag)
	if err == nil {
		m.Put()
	}
	return st, err
}
