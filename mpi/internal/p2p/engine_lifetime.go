package p2p

import (
	"slices"
	"time"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Hold keeps the contexts for a collective, until drop. It reports false if they are gone.
func (c *Comm) Hold() bool {
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

// Drop is the opposite of hold, and of making c. Each context is removed once nothing waits in it
// any more; with the last one the rest of c is.
func (c *Comm) Drop() {
	if c.uses.Add(-1) > 0 {
		return
	}
	c.lasting.Store(int32(len(c.Contexts)))
	for _, x := range c.Contexts {
		if c.Engine.IDs.receives(x) {
			go c.dropLater(x)
		} else {
			c.dropContext(x)
		}
	}
}

// dropContext removes x, now or when nothing waits in it any more.
func (c *Comm) dropContext(x *Context) {
	e := c.Engine
	e.Mu.Lock()
	waits := x.waiting() > 0
	if waits {
		x.emptied = func() { go c.dropLater(x) } // e.mu is held when it is called
	}
	e.Mu.Unlock()
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
func (c *Comm) dropLater(x *Context) {
	for c.Engine.IDs.receives(x) && c.Engine.Usable() == nil {
		select {
		case <-time.After(QuietPoll):
		case <-c.Engine.Over:
		}
	}
	c.dropContext(x)
}

// receives reports whether a receive of a context waits for a body.
func (t *idTable) receives(x *Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.slots, func(s idSlot) bool { return s.r != nil && s.r.Context == x })
}

// waiting counts the receives and probes that wait in the context.
func (x *Context) waiting() int {
	return x.exact + x.anyTag + x.anyBoth + len(x.probers)
}

// tellEmpty is called after a receive or a probe has left: it calls emptied if nothing waits any
// more.
func (x *Context) tellEmpty() {
	if x.emptied != nil && x.waiting() == 0 {
		x.emptied()
		x.emptied = nil
	}
}

// Usable returns why no operation of the program may start on c, or nil.
func (c *Comm) Usable() error { return c.open(SlotUser) }

// open returns why nothing may start in a context of c, or nil. Collectives that began
// before Free go on.
func (c *Comm) open(s Slot) error {
	if c.Freed.Load() && (s.context() != SlotColl || c.uses.Load() == 0) {
		return mpierr.ErrFreed
	}
	if c.FT.Revoked.Load() {
		return mpierr.ErrRevoked
	}
	return c.Engine.Usable()
}

// QuietPoll is the pause between two checks for requests that are not done. There are seldom any.
const QuietPoll = time.Millisecond

// Busy reports whether an operation of the program, or a collective, is in progress.
func (c *Comm) Busy() bool {
	e := c.Engine
	e.Mu.Lock()
	defer e.Mu.Unlock()
	found := false
	for _, s := range []Slot{SlotUser, SlotColl} {
		c.Contexts[s].posted.each(func(*matchElem) { found = true })
	}
	return found || e.IDs.uses(func(x *Context) bool { return x == c.Contexts[SlotUser] || x == c.Contexts[SlotColl] })
}

// uses reports whether there is a request of some contexts.
func (t *idTable) uses(of func(*Context) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.slots, func(s idSlot) bool {
		return s.r != nil && (s.r.Context != nil && of(s.r.Context) || s.r.Context == nil && s.r.Sent != nil && of(s.r.Sent))
	})
}
