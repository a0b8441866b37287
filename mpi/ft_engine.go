package mpi

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Effect of a failure on operations that do not wait for the failed rank itself. Operations of
// collectives and of making communicators wait for ranks that may have given up because of the
// failure, so they fail, too.

// interrupted reports whether operations of the context end when any member of the communicator
// fails.
func (x *matchContext) interrupted() bool {
	s := slot(x.id % uint64(slotCount))
	return s == slotColl || s == slotComm
}

// tagSubset is the first of the tags in slotComm of messages that concern only some of the members.
const tagSubset = 1 << 29

// breakComm records that a member has failed. e.mu is held.
func (x *matchContext) breakComm(err error) {
	if x.comm != nil {
		x.comm.ft.broken.CompareAndSwap(nil, &err)
	}
}

// isBroken reports whether operations of the context fail because a member of the communicator has
// failed.
func (x *matchContext) isBroken() bool {
	return x.comm != nil && x.interrupted() && x.comm.ft.broken.Load() != nil
}

// interrupts reports whether a posted receive fails because of a failure. Those of CreateGroup and
// IntercommCreate do not: they concern only some of the members.
func (x *matchContext) interrupts(r *request) bool {
	return x.isBroken() && !(slot(x.id%uint64(slotCount)) == slotComm && r.tag >= tagSubset)
}

// hasAcked reports whether the program has acknowledged the failure of a member. eng.mu is held.
func (c *comm) hasAcked(rank int) bool { return c.ft.acked != nil && c.ft.acked[rank] }

// ackFailed acknowledges the failures of the members that failed returns.
func (c *comm) ackFailed(failed func() []int) []int {
	e := c.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	list := failed()
	if c.ft.acked == nil {
		c.ft.acked = make([]bool, len(c.peers))
	}
	for _, r := range list {
		c.ft.acked[r] = true
	}
	for _, x := range c.ctx {
		x.unacked = false
	}
	return list
}

// copyAcked copies which failures of members the program has acknowledged.
func (c *comm) copyAcked(to []bool) {
	c.eng.mu.Lock()
	defer c.eng.mu.Unlock()
	copy(to, c.ft.acked)
}

// revoke ends all operations on c, and fails later ones, with ErrRevoked.
func (c *comm) revoke() {
	c.ft.revoked.Store(true)
	c.eng.dropContexts(mpierr.ErrRevoked, c.ctx[:]...)
	c.eng.interruptSends(func(x *matchContext) bool { return x.comm == c }, mpierr.ErrRevoked)
}

// brokenBy returns the first failure of a member as an error, or nil.
func (c *comm) brokenBy() error {
	if err := c.ft.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// stopped returns why operations on c cannot wait any more, or nil.
func (c *comm) stopped(x *matchContext) error {
	if c.ft.revoked.Load() {
		return mpierr.ErrRevoked
	}
	if x.isBroken() {
		return c.brokenBy()
	}
	return nil
}

// checkMembers records members of a new communicator that have failed before.
func (c *comm) checkMembers() {
	for _, p := range c.peers {
		if re := p.failed.Load(); re != nil && !p.disconnected.Load() {
			c.ft.broken.CompareAndSwap(nil, re)
			e := c.eng
			e.mu.Lock()
			for _, x := range c.ctx {
				x.unacked = true
			}
			e.mu.Unlock()
			return
		}
	}
}

// interruptSends fails the sends of the contexts for which of reports true that wait for their
// receive, and the receives that wait for a body.
func (e *engine) interruptSends(of func(*matchContext) bool, err error) {
	withdrawn, others := e.ids.interrupt(of)
	for _, w := range withdrawn {
		r := w.r
		r.peer.announced.Add(-1)
		if r.peer.failure() == nil {
			r.peer.control(r.stream, &envelope.Header{Kind: envelope.SendFailed, ID: w.id})
		}
		r.fail(err)
	}
	for _, r := range others { // a late answer finds the request done
		if r.ctx != nil {
			r.fail(err)
		} else {
			r.complete(err)
		}
	}
}

// withdrawal is a send whose RTS was withdrawn, with its former id. r.id may not be set yet by the
// goroutine that starts the send.
type withdrawal struct {
	r  *request
	id uint64
}

// interrupt returns the requests of the contexts for which of reports true. Sends that wait for a
// CTS lose their ids.
func (t *idTable) interrupt(of func(*matchContext) bool) (withdrawn []withdrawal, others []*request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		r := t.slots[i].r
		switch {
		case r == nil:
		case r.ctx != nil && of(r.ctx):
			others = append(others, r)
		case r.ctx == nil && r.sent != nil && of(r.sent) && r.buf == nil:
			others = append(others, r)
		case r.ctx == nil && r.sent != nil && of(r.sent):
			withdrawn = append(withdrawn, withdrawal{r, uint64(t.slots[i].gen)<<32 | uint64(i+1)})
			t.clear(uint32(i))
		}
	}
	return withdrawn, others
}

// wake has the goroutines that wait for r check it again.
func (r *request) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting != nil {
		r.waiting.signal()
	}
	for _, w := range r.more {
		w.signal()
	}
}

// pendingFailure returns why r, a nonblocking receive from AnySource, cannot complete at present,
// or nil.
func (r *request) pendingFailure() error {
	if !r.anySource {
		return nil
	}
	e, x := r.eng, r.ctx
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.done.Load() || !x.unacked || r.elem.q == nil {
		return nil
	}
	if err := x.comm.sourceGone(x, anySource); err != nil {
		return fmt.Errorf("%w: %w", mpierr.ErrProcFailedPending, err)
	}
	return nil
}

// failures reports whether any rank of the job is known to have failed.
func (e *engine) failures() bool {
	for _, p := range e.all() {
		if p.failed.Load() != nil && !p.disconnected.Load() {
			return true
		}
	}
	return false
}
