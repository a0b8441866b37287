package mpi

import (
	"context"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Messages described by datatypes. Items that are one run of memory are sent
// and received in place; others by way of a packed copy. Only the data
// travels, so the datatypes of the two sides may differ in layout (MPI-4.1,
// Section 5.1.11).

// SendType is Send of count items of t in buf (MPI_Send). It blocks as Send
// does, and buf belongs to the call as long. Errors are those of Send, and
// ErrCount for items outside buf.
func SendType[T Element](ctx context.Context, c *Comm, buf []T, count int, t *Datatype, dst, tag int) error {
	b, s, err := packed(buf, count, t)
	if err != nil {
		return c.raise(err)
	}
	defer s.Put()
	if err := checkTag(tag); err != nil {
		return c.raise(err)
	}
	at := c.enter()
	err = c.comm.Send(ctx, p2p.SlotUser.Of(t.rt.Values()), p2p.SendStandard, b, dst, tag)
	c.leave(at, "SendType", dst, tag, len(b), err)
	return c.raise(err)
}

// IsendType is Isend of count items of t in buf (MPI_Isend).
func IsendType[T Element](c *Comm, buf []T, count int, t *Datatype, dst, tag int) (*Request, error) {
	b, _, err := packed(buf, count, t) // scratch is left to the garbage collector
	if err != nil {
		return nil, c.raise(err)
	}
	if err := checkTag(tag); err != nil {
		return nil, c.raise(err)
	}
	at := c.enter()
	r, err := c.isend(p2p.SlotUser.Of(t.rt.Values()), p2p.SendStandard, b, dst, tag)
	c.leave(at, "IsendType", dst, tag, len(b), err)
	return r, c.raise(err)
}

// RecvType is Recv of up to count items of t into buf (MPI_Recv). A shorter
// message fills the first part of the items. It blocks as Recv does, and buf
// belongs to the call as long. Errors are those of Recv, and ErrCount for items
// outside buf.
func RecvType[T Element](ctx context.Context, c *Comm, buf []T, count int, t *Datatype, src, tag int) (Status, error) {
	dst, b, s, err := unpackable(buf, count, t)
	if err != nil {
		return Status{}, c.raise(err)
	}
	defer s.Put()
	if err := c.checkRecv(src, tag); err != nil {
		return Status{}, c.raise(err)
	}
	at := c.enter()
	st, err := c.comm.Recv(ctx, p2p.SlotUser.Of(t.rt.Values()), b, src, tag)
	c.leaveRecv(at, "RecvType", src, tag, st, err)
	if s != nil {
		t.rt.Unpack(dst, b[:st.Bytes], count)
	}
	return Status(st), c.raise(err)
}

// IrecvType is Irecv of up to count items of t into buf (MPI_Irecv). If the
// items are not one run of memory the request cannot be cancelled.
func IrecvType[T Element](c *Comm, buf []T, count int, t *Datatype, src, tag int) (*Request, error) {
	dst, b, s, err := unpackable(buf, count, t)
	if err != nil {
		return nil, c.raise(err)
	}
	if err := c.checkRecv(src, tag); err != nil {
		return nil, c.raise(err)
	}
	at := c.enter()
	r, err := c.irecv(p2p.SlotUser.Of(t.rt.Values()), b, src, tag)
	c.leave(at, "IrecvType", src, tag, len(b), err)
	if err != nil || s == nil {
		return r, c.raise(err)
	}
	all := goRequest(c.w, func() (Status, error) {
		st, err := c.comm.Engine.AwaitRecv(context.Background(), &r.request)
		t.rt.Unpack(dst, b[:st.Bytes], count)
		s.Put()
		return Status(st), err
	})
	all.comm = c
	return all, nil
}

// packed returns the data of the items: in buf itself, or packed in s.
func packed[T Element](buf []T, count int, t *Datatype) (b []byte, s *bufpool.Buffer, err error) {
	src, err := datatype.CheckedBytes(buf)
	if err != nil {
		return nil, nil, err
	}
	size, err := t.typ().Span(count, len(src))
	if err != nil {
		return nil, nil, err
	}
	if t.rt.Dense(count) {
		return src[:size], nil, nil
	}
	s = bufpool.Get(size)
	b = s.Bytes(size)
	t.rt.Pack(b, src, count)
	return b, s, nil
}

// unpackable returns where to receive the items: in buf itself, or in s.
func unpackable[T Element](buf []T, count int, t *Datatype) (dst, b []byte, s *bufpool.Buffer, err error) {
	if dst, err = datatype.CheckedBytes(buf); err != nil {
		return nil, nil, nil, err
	}
	size, err := t.typ().Span(count, len(dst))
	if err != nil {
		return nil, nil, nil, err
	}
	if t.rt.Dense(count) {
		return dst, dst[:size], nil, nil
	}
	s = bufpool.Get(size)
	return dst, s.Bytes(size), s, nil
}
