package mpi

import (
	"context"
	"slices"

	"github.com/weftstack/weft/internal/poll"
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
		return Status{Source: ProcNull, Tag: AnyTag}, true, c.usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return Status{}, false, err
	}
	e := c.w.eng
	for try := 0; ; try++ {
		e.mu.Lock()
		m, err := c.find(c.ctx[slotUser], src, tag)
		if m != nil {
			st = m.status()
		}
		e.mu.Unlock()
		if m != nil || err != nil || try > 0 || !e.pollOnce() {
			return st, m != nil, err
		}
	}
}

// Probe blocks until there is a message that a receive for (src, tag) would match, or ctx ends, and
// describes it (MPI-4.1, Section 3.8.1). The message stays, so another goroutine may receive it:
// use [Mprobe] if several goroutines receive. Errors to test for: ErrRank, ErrTag, and [RankError].
func Probe(ctx context.Context, c *Comm, src, tag int) (Status, error) {
	if src == ProcNull {
		return Status{Source: ProcNull, Tag: AnyTag}, c.usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, _, err := c.probe(ctx, src, tag, false)
	c.leaveRecv(t, "Probe", src, tag, st, err)
	return st, c.raise(err)
}

// A Message is a message that [Mprobe] or [Improbe] has taken out of the matching (MPI_Message). It
// must be received, once, with [Mrecv] or [Imrecv].
type Message struct {
	c  *Comm
	m  *message
	st Status
}

// Status describes the message (MPI_Mprobe).
func (m *Message) Status() Status { return m.st }

// Mprobe blocks like [Probe] until there is a message, and takes it: no other receive or probe
// matches it (MPI-4.1, Section 3.8.2). Errors to test for: those of Probe.
func Mprobe(ctx context.Context, c *Comm, src, tag int) (*Message, error) {
	if src == ProcNull {
		return &Message{c: c, st: Status{Source: ProcNull, Tag: AnyTag}}, c.usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return nil, c.raise(err)
	}
	t := c.enter()
	st, m, err := c.probe(ctx, src, tag, true)
	c.leaveRecv(t, "Mprobe", src, tag, st, err)
	if err != nil {
		return nil, c.raise(err)
	}
	return &Message{c: c, m: m, st: st}, nil
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
		return &Message{c: c, st: Status{Source: ProcNull, Tag: AnyTag}}, c.usable()
	}
	if err := checkProbe(c, src, tag); err != nil {
		return nil, err
	}
	e := c.w.eng
	for try := 0; ; try++ {
		e.mu.Lock()
		x := c.ctx[slotUser]
		m, err := c.find(x, src, tag)
		if m != nil {
			x.removeMessage(m)
			m.probed = true
			st := m.status()
			e.mu.Unlock()
			return &Message{c: c, m: m, st: st}, nil
		}
		e.mu.Unlock()
		if err != nil || try > 0 || !e.pollOnce() {
			return nil, err
		}
	}
}

// Mrecv receives the message m into buf (MPI_Mrecv). It blocks until all of it has arrived or its
// sender is found to have failed ([RankError]); the end of ctx does not lose the message. m must
// not be used again.
func Mrecv[T Element](ctx context.Context, m *Message, buf []T) (Status, error) {
	c := m.c
	b, s, err := typedBytes(buf)
	if err != nil {
		return Status{}, c.raise(err)
	}
	t := c.enter()
	st, err := c.w.eng.finishRecv(ctx, m.start(s, b))
	c.leaveRecv(t, "Mrecv", m.st.Source, m.st.Tag, st, err)
	return st, c.raise(err)
}

// Imrecv starts [Mrecv] (MPI_Imrecv). buf must not be touched until the request is done. It does
// not block.
func Imrecv[T Element](m *Message, buf []T) (*Request, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return nil, m.c.raise(err)
	}
	t := m.c.enter()
	r := m.start(s, b)
	m.c.leave(t, "Imrecv", m.st.Source, m.st.Tag, m.st.Bytes, nil)
	return r, nil
}

// start receives the message into b.
func (m *Message) start(s slot, b []byte) *Request {
	e := m.c.w.eng
	if m.m == nil {
		var err error
		if m.st.Source != ProcNull {
			err = ErrMessage
		}
		return doneRequest(e, m.st, err)
	}
	r := newRequest(e)
	r.comm = m.c
	r.ctx, r.src, r.tag, r.buf, r.probed = m.m.ctx, int32(m.st.Source), int32(m.st.Tag), b, true
	r.sig = s.sig()
	e.mu.Lock()
	if m.m.lost {
		e.mu.Unlock()
		r.complete(m.m.peer.failure())
		return r
	}
	m.m.ctx.take(m.m, r)
	ms := m.m.ctx.taken()
	e.mu.Unlock()
	m.m = nil
	e.handAll(ms)
	return r
}

func checkProbe(c *Comm, src, tag int) error {
	if err := c.checkRecv(src, tag); err != nil {
		return err
	}
	return c.checkSource(slotUser, src)
}

func (m *message) status() Status {
	return Status{Source: int(m.src), Tag: int(m.tag), Bytes: int(m.length)}
}

// find looks for a message, and for reasons not to wait for one. e.mu is held.
func (c *comm) find(x *matchContext, src, tag int) (*message, error) {
	if m := x.lookup(int32(src), int32(tag)); m != nil {
		return m, nil
	}
	switch {
	case x.dead != nil:
		return nil, x.dead
	case c.eng.err != nil:
		return nil, c.eng.err
	}
	return nil, c.sourceGone(x, src)
}

// probe waits for a message and, if take is set, removes it.
func (c *comm) probe(ctx context.Context, src, tag int, take bool) (st Status, m *message, err error) {
	e, x := c.eng, c.ctx[slotUser]
	found := false
	look := func() bool {
		if found {
			return true
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		m, err = c.find(x, src, tag)
		if found = m != nil || err != nil; m == nil {
			return found
		}
		st = m.status()
		if take {
			x.removeMessage(m)
			m.probed = true
		}
		return true
	}
	if look() {
		return st, m, err
	}
	e.coalescer.flushBeforeWait()
	start := e.prog.begin()
	if e.prog.spin(ctx, start, look) {
		e.prog.end(start)
		return st, m, err
	}
	w := e.waiters.get()
	defer w.recycle()
	e.mu.Lock()
	x.probers = append(x.probers, w)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		if i := slices.Index(x.probers, w); i >= 0 {
			x.probers = slices.Delete(x.probers, i, i+1)
			x.tellEmpty()
		}
		e.mu.Unlock()
	}()
	var gap poll.Wait
	for !look() {
		if werr := e.prog.rest(ctx, w, &gap, look); werr != nil && !look() {
			return Status{}, nil, werr
		}
	}
	e.prog.end(start)
	return st, m, err
}
