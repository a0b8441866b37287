package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Iprobe reports whether there is a message that a receive for (src, tag) would match now, and
// describes it (MPI_Iprobe). It does not block and leaves the message.
func Iprobe(c *Comm, src, tag int) (st Status, found bool, err error) {
	t := c.enter()
	st, found, err = c.iprobe(src, tag)
	c.leave(t, "Iprobe", src, tag, st.Bytes, err)
	return st, found, c.raise(err)
}

func (c *Comm) iprobe(src, tag int) (st Status, found bool, err error) {
	if src == ProcNull {
		return Status{Source: ProcNull, Tag: AnyTag}, true, c.comm.Usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return Status{}, false, err
	}
	got, m, err := c.comm.LookFor(src, tag, false)
	return Status(got), m != nil, err
}

// Probe blocks until there is a message that a receive for (src, tag) would match, or ctx ends, and
// describes it (MPI-4.1, Section 3.8.1). The message stays, so another goroutine may receive it:
// use [Mprobe] if several goroutines receive. Errors to test for: ErrRank, ErrTag, and [RankError].
func Probe(ctx context.Context, c *Comm, src, tag int) (Status, error) {
	if src == ProcNull {
		return Status{Source: ProcNull, Tag: AnyTag}, c.comm.Usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, _, err := c.comm.Probe(ctx, src, tag, false)
	c.leaveRecv(t, "Probe", src, tag, st, err)
	return Status(st), c.raise(err)
}

// A Message is a message that [Mprobe] or [Improbe] has taken out of the matching (MPI_Message). It
// must be received, once, with [Mrecv] or [Imrecv].
type Message struct {
	c  *Comm
	m  *p2p.Message
	st Status
}

// Status describes the message (MPI_Mprobe).
func (m *Message) Status() Status { return m.st }

// Mprobe blocks like [Probe] until there is a message, and takes it: no other receive or probe
// matches it (MPI-4.1, Section 3.8.2). Errors to test for: those of Probe.
func Mprobe(ctx context.Context, c *Comm, src, tag int) (*Message, error) {
	if src == ProcNull {
		return &Message{c: c, st: Status{Source: ProcNull, Tag: AnyTag}}, c.comm.Usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	st, m, err := c.comm.Probe(ctx, src, tag, true)
	c.leaveRecv(t, "Mprobe", src, tag, st, err)
	if err != nil {
		return nil, c.raise(err)
	}
	return &Message{c: c, m: m, st: Status(st)}, nil
}

// Improbe is [Mprobe] that does not block; it returns nil if there is no message (MPI_Improbe).
func Improbe(c *Comm, src, tag int) (*Message, error) {
	t := c.enter()
	m, err := c.improbe(src, tag)
	n := 0
	if m != nil {
		n = m.st.Bytes
	}
	c.leave(t, "Improbe", src, tag, n, err)
	return m, c.raise(err)
}

func (c *Comm) improbe(src, tag int) (*Message, error) {
	if src == ProcNull {
		return &Message{c: c, st: Status{Source: ProcNull, Tag: AnyTag}}, c.comm.Usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return nil, err
	}
	st, m, err := c.comm.LookFor(src, tag, true)
	if m == nil {
		return nil, err
	}
	return &Message{c: c, m: m, st: Status(st)}, nil
}

// Mrecv receives the message m into buf (MPI_Mrecv). It blocks until all of it has arrived or its
// sender is found to have failed ([RankError]); the end of ctx does not lose the message. m must
// not be used again.
func Mrecv[T Element](ctx context.Context, m *Message, buf []T) (Status, error) {
	return m.Recv(ctx, Elements(buf))
}

// Recv is the function [Mrecv] into what b describes (MPI_Mrecv).
func (m *Message) Recv(ctx context.Context, b Buffer) (Status, error) {
	c := m.c
	if b.err != nil {
		return Status{}, c.raise(b.err)
	}
	t := c.enter()
	r := p2p.GetRequest(c.comm.Engine)
	m.start(r, &b)
	st, err := c.comm.Engine.FinishRecv(ctx, r)
	c.leaveRecv(t, "Mrecv", m.st.Source, m.st.Tag, st, err)
	return Status(st), c.raise(err)
}

// Imrecv starts [Mrecv] (MPI_Imrecv). buf must not be touched until the request is done. It does
// not block.
func Imrecv[T Element](m *Message, buf []T) (*Request, error) {
	return m.Irecv(Elements(buf))
}

// Irecv is the function [Imrecv] into what b describes (MPI_Imrecv).
func (m *Message) Irecv(b Buffer) (*Request, error) {
	if b.err != nil {
		return nil, m.c.raise(b.err)
	}
	t := m.c.enter()
	r := newRequest(m.c.w)
	m.start(&r.request, &b)
	m.c.leave(t, "Imrecv", m.st.Source, m.st.Tag, m.st.Bytes, nil)
	return m.c.started(r, nil)
}

// start receives the message into b.
func (m *Message) start(r *p2p.Request, b *Buffer) {
	if m.m == nil {
		r.Status = p2p.Status(m.st)
		if m.st.Source != ProcNull {
			r.Complete(ErrMessage)
		} else {
			r.Complete(nil)
		}
		return
	}
	if m.c.comm.StartProbedItems(r, &b.items, m.m) {
		m.m = nil
	}
}

func checkProbe(c *Comm, src, tag int) error {
	if err := c.checkRecv(src, tag); err != nil {
		return err
	}
	return c.comm.CheckSource(p2p.SlotUser, src)
}
