package p2p

import (
	"context"
	"slices"

	"github.com/weftstack/weft/internal/poll"
)

// LookFor looks for a message of the program without waiting for one; it polls the transport once.
// If take is set it removes the message from the matching.
func (c *Comm) LookFor(src, tag int, take bool) (st Status, m *Message, err error) {
	for try := 0; ; try++ {
		st, m, err = c.look(src, tag, take)
		if m != nil || err != nil || try > 0 || !c.Engine.PollOnce() {
			return st, m, err
		}
	}
}

// look is LookFor without polling.
func (c *Comm) look(src, tag int, take bool) (st Status, m *Message, err error) {
	e, x := c.Engine, c.Contexts[SlotUser]
	e.Mu.Lock()
	if m, err = c.find(x, src, tag); m != nil {
		st = m.status()
		if take {
			x.removeMessage(m)
			m.probed = true
		}
	}
	e.Mu.Unlock()
	return st, m, err
}

// StartProbed receives m, which a probe has taken, into b. It reports false if the rest of m will
// not come.
func (c *Comm) StartProbed(r *Request, s Slot, b []byte, m *Message) bool {
	e := c.Engine
	r.Context, r.src, r.tag, r.Buf, r.probed = m.ctx, m.src, m.tag, b, true
	r.sig = s.Sig()
	e.Mu.Lock()
	if m.lost {
		e.Mu.Unlock()
		r.Complete(m.peer.Failure())
		return false
	}
	m.ctx.take(m, r)
	ms := m.ctx.taken()
	e.Mu.Unlock()
	e.handAll(ms)
	return true
}

func (m *Message) status() Status {
	return Status{Source: int(m.src), Tag: int(m.tag), Bytes: int(m.length)}
}

// find looks for a message, and for reasons not to wait for one. e.mu is held.
func (c *Comm) find(x *Context, src, tag int) (*Message, error) {
	if m := x.lookup(int32(src), int32(tag)); m != nil {
		return m, nil
	}
	switch {
	case x.dead != nil:
		return nil, x.dead
	case c.Engine.err != nil:
		return nil, c.Engine.err
	}
	return nil, c.sourceGone(x, src)
}

// Probe waits for a message and, if take is set, removes it.
func (c *Comm) Probe(ctx context.Context, src, tag int, take bool) (st Status, m *Message, err error) {
	e, x := c.Engine, c.Contexts[SlotUser]
	found := false
	look := func() bool {
		if !found {
			st, m, err = c.look(src, tag, take)
			found = m != nil || err != nil
		}
		return found
	}
	if look() {
		return st, m, err
	}
	e.Coalescer.FlushBeforeWait()
	start := e.Progress.Begin()
	if e.Progress.Spin(ctx, start, look) {
		e.Progress.End(start)
		return st, m, err
	}
	w := e.Waiters.Get()
	defer w.Recycle()
	e.Mu.Lock()
	x.probers = append(x.probers, prober{w, int32(src), int32(tag)})
	e.Mu.Unlock()
	defer func() {
		e.Mu.Lock()
		if i := slices.IndexFunc(x.probers, func(p prober) bool { return p.w == w }); i >= 0 {
			x.probers = slices.Delete(x.probers, i, i+1)
			x.tellEmpty()
		}
		e.Mu.Unlock()
	}()
	var gap poll.Wait
	for !look() {
		if werr := e.Progress.Rest(ctx, w, &gap, look); werr != nil && !look() {
			return Status{}, nil, werr
		}
	}
	e.Progress.End(start)
	return st, m, err
}
