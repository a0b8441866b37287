package mpi

import (
	"context"
	"slices"

	"github.com/weftstack/weft/internal/poll"
)

// lookFor looks for a message of the program without waiting for one; it polls the transport once.
// If take is set it removes the message from the matching.
func (c *comm) lookFor(src, tag int, take bool) (st status, m *message, err error) {
	for try := 0; ; try++ {
		st, m, err = c.look(src, tag, take)
		if m != nil || err != nil || try > 0 || !c.eng.pollOnce() {
			return st, m, err
		}
	}
}

// look is lookFor without polling.
func (c *comm) look(src, tag int, take bool) (st status, m *message, err error) {
	e, x := c.eng, c.ctx[slotUser]
	e.mu.Lock()
	defer e.mu.Unlock()
	if m, err = c.find(x, src, tag); m == nil {
		return st, nil, err
	}
	if take {
		x.removeMessage(m)
		m.probed = true
	}
	return m.status(), m, nil
}

// startProbed receives m, which a probe has taken, into b. It reports false if the rest of m will
// not come.
func (c *comm) startProbed(r *request, s slot, b []byte, m *message) bool {
	e := c.eng
	r.ctx, r.src, r.tag, r.buf, r.probed = m.ctx, m.src, m.tag, b, true
	r.sig = s.sig()
	e.mu.Lock()
	if m.lost {
		e.mu.Unlock()
		r.complete(m.peer.failure())
		return false
	}
	m.ctx.take(m, r)
	ms := m.ctx.taken()
	e.mu.Unlock()
	e.handAll(ms)
	return true
}

func (m *message) status() status {
	return status{Source: int(m.src), Tag: int(m.tag), Bytes: int(m.length)}
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
func (c *comm) probe(ctx context.Context, src, tag int, take bool) (st status, m *message, err error) {
	e, x := c.eng, c.ctx[slotUser]
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
			return status{}, nil, werr
		}
	}
	e.prog.end(start)
	return st, m, err
}
