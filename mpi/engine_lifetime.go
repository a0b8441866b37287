package mpi

import (
	"slices"
	"time"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// hold keeps the contexts for a collective, until drop. It reports false if they are gone.
func (c *comm) hold() bool {
	for {
		n := c.uses.Load()
		if n == 0 {
			return false
		}
		if c.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// drop is the opposite of hold, and of making c. Each context is removed once nothing waits in it
// any more; with the last one the rest of c is.
func (c *comm) drop() {
	if c.uses.Add(-1) > 0 {
		return
	}
	c.lasting.Store(int32(len(c.ctx)))
	for _, x := range c.ctx {
		if c.eng.ids.receives(x) {
			go c.dropLater(x)
		} else {
			c.dropContext(x)
		}
	}
}

// dropContext removes x, now or when nothing waits in it any more.
func (c *comm) dropContext(x *matchContext) {
	e := c.eng
	e.mu.Lock()
	waits := x.waits()
	if waits {
		x.emptied = func() { go c.dropLater(x) } // e.mu is held when it is called
	}
	e.mu.Unlock()
	if waits {
		return
	}
	e.dropContexts(mpierr.ErrFreed, x)
	if c.lasting.Add(-1) == 0 {
		c.gone()
	}
}

// dropLater is dropContext that first waits for receives with a body in flight: such a receive is
// posted again if the body does not come.
func (c *comm) dropLater(x *matchContext) {
	for c.eng.ids.receives(x) && c.eng.usable() == nil {
		select {
		case <-time.After(quietPoll):
		case <-c.eng.over:
		}
	}
	c.dropContext(x)
}

// receives reports whether a receive of a context waits for a body.
func (t *idTable) receives(x *matchContext) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.slots, func(s idSlot) bool { return s.r != nil && s.r.ctx == x })
}

// waits reports whether a receive or a probe waits in the context.
func (x *matchContext) waits() bool {
	return x.exact+x.anyTag+x.anyBoth+len(x.probers) > 0
}

// tellEmpty is called after a receive or a probe has left: it calls emptied if nothing waits any
// more.
func (x *matchContext) tellEmpty() {
	if x.emptied != nil && !x.waits() {
		x.emptied()
		x.emptied = nil
	}
}

// usable returns why no operation of the program may start on c, or nil.
func (c *comm) usable() error { return c.open(slotUser) }

// open returns why nothing may start in a context of c, or nil. Collectives that began
// before Free go on.
func (c *comm) open(s slot) error {
	if c.freed.Load() && (s.context() != slotColl || c.uses.Load() == 0) {
		return mpierr.ErrFreed
	}
	if c.ft.revoked.Load() {
		return mpierr.ErrRevoked
	}
	return c.eng.usable()
}

// quietPoll is the pause between two checks for requests that are not done. There are seldom any.
const quietPoll = time.Millisecond

// busy reports whether an operation of the program, or a collective, is in progress.
func (c *comm) busy() bool {
	e := c.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	for _, s := range []slot{slotUser, slotColl} {
		c.ctx[s].posted.each(func(*elem) { found = true })
	}
	return found || e.ids.uses(func(x *matchContext) bool { return x == c.ctx[slotUser] || x == c.ctx[slotColl] })
}

// uses reports whether there is a request of some contexts.
func (t *idTable) uses(of func(*matchContext) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.slots, func(s idSlot) bool {
		return s.r != nil && (s.r.ctx != nil && of(s.r.ctx) || s.r.ctx == nil && s.r.sent != nil && of(s.r.sent))
	})
}
