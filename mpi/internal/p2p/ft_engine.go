package p2p

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
func (x *Context) interrupted() bool {
	s := Slot(x.id % uint64(SlotCount))
	return s == SlotColl || s == SlotComm
}

// TagSubset is the first of the tags in SlotComm of messages that concern only some of the members.
const TagSubset = 1 << 29

// breakComm records that a member has failed. e.mu is held.
func (x *Context) breakComm(err error) {
	if x.comm != nil {
		x.comm.FT.broken.CompareAndSwap(nil, &err)
	}
}

// isBroken reports whether operations of the context fail because a member of the communicator has
// failed.
func (x *Context) isBroken() bool {
	return x.comm != nil && x.interrupted() && x.comm.FT.broken.Load() != nil
}

// interrupts reports whether a posted receive fails because of a failure. Those of CreateGroup and
// IntercommCreate do not: they concern only some of the members.
func (x *Context) interrupts(r *Request) bool {
	return x.isBroken() && !(Slot(x.id%uint64(SlotCount)) == SlotComm && r.tag >= TagSubset)
}

// hasAcked reports whether the program has acknowledged the failure of a member. Engine.Mu is held.
func (c *Comm) hasAcked(rank int) bool { return c.FT.acked != nil && c.FT.acked[rank] }

// AckFailed acknowledges the failures of the members that failed returns.
func (c *Comm) AckFailed(failed func() []int) []int {
	e := c.Engine
	e.Mu.Lock()
	defer e.Mu.Unlock()
	list := failed()
	if c.FT.acked == nil {
		c.FT.acked = make([]bool, len(c.Peers))
	}
	for _, r := range list {
		c.FT.acked[r] = true
	}
	for _, x := range c.Contexts {
		x.unacked = false
	}
	return list
}

// CopyAcked copies which failures of members the program has acknowledged.
func (c *Comm) CopyAcked(to []bool) {
	c.Engine.Mu.Lock()
	defer c.Engine.Mu.Unlock()
	copy(to, c.FT.acked)
}

// Revoke ends all operations on c, and fails later ones, with ErrRevoked.
func (c *Comm) Revoke() {
	c.FT.Revoked.Store(true)
	c.Engine.dropContexts(mpierr.ErrRevoked, c.Contexts[:]...)
	c.Engine.InterruptSends(func(x *Context) bool { return x.comm == c }, mpierr.ErrRevoked)
}

// BrokenBy returns the first failure of a member as an error, or nil.
func (c *Comm) BrokenBy() error {
	if err := c.FT.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// stopped returns why operations on c cannot wait any more, or nil.
func (c *Comm) stopped(x *Context) error {
	if c.FT.Revoked.Load() {
		return mpierr.ErrRevoked
	}
	if x.isBroken() {
		return c.BrokenBy()
	}
	return nil
}

// CheckMembers records members of a new communicator that have failed before.
func (c *Comm) CheckMembers() {
	for _, p := range c.Local {
		if re := p.Failed.Load(); re != nil && !p.Disconnected.Load() {
			c.FT.broken.CompareAndSwap(nil, re)
		}
	}
	for _, p := range c.Peers {
		if re := p.Failed.Load(); re != nil && !p.Disconnected.Load() {
			c.FT.broken.CompareAndSwap(nil, re)
			e := c.Engine
			e.Mu.Lock()
			for _, x := range c.Contexts {
				x.unacked = true
			}
			e.Mu.Unlock()
			return
		}
	}
}

// InterruptSends fails the sends of the contexts for which of reports true that wait for their
// receive, and the receives that wait for a body.
func (e *Engine) InterruptSends(of func(*Context) bool, err error) {
	withdrawn, others := e.IDs.interrupt(of)
	for _, w := range withdrawn {
		r := w.r
		r.Peer.Announced.Add(-1)
		if r.Peer.Failure() == nil {
			r.Peer.control(r.stream, &envelope.Header{Kind: envelope.SendFailed, ID: w.id})
		}
		r.Fail(err)
	}
	for _, r := range others {
		r.abandon(err)
	}
}

// withdrawal is a send that was interrupted before the CTS came, and the id that its RTS carries: the
// receiver is told to drop that. r.id may not say it, since the goroutine that starts the send may
// not have set it yet.
type withdrawal struct {
	r  *Request
	id uint64
}

// interrupt returns the requests of the contexts for which of reports true: the sends that wait for a
// CTS, and others. Sends lose their ids.
func (t *idTable) interrupt(of func(*Context) bool) (withdrawn []withdrawal, others []*Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		r := t.slots[i].r
		switch {
		case r == nil:
		case r.Context != nil && of(r.Context):
			others = append(others, r)
		case r.Context == nil && r.Sent != nil && of(r.Sent) && !r.announced:
			others = append(others, r)
			t.clear(uint32(i))
		case r.Context == nil && r.Sent != nil && of(r.Sent):
			withdrawn = append(withdrawn, withdrawal{r, uint64(t.slots[i].gen)<<32 | uint64(i+1)})
			t.clear(uint32(i))
		}
	}
	return withdrawn, others
}

// wake has the goroutines that wait for r check it again.
func (r *Request) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting != nil {
		r.waiting.signal()
	}
	for _, w := range r.more {
		w.signal()
	}
}

// PendingFailure returns why r, a nonblocking receive from AnySource, cannot complete at present,
// or nil.
func (r *Request) PendingFailure() error {
	if !r.anySource {
		return nil
	}
	e, x := r.Engine, r.Context
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if r.Finished.Load() || !x.unacked || !r.Posted() {
		return nil
	}
	if err := x.comm.sourceGone(x, AnySource); err != nil {
		return fmt.Errorf("%w: %w", mpierr.ErrProcFailedPending, err)
	}
	return nil
}

// failures reports whether any rank of the job is known to have failed.
func (e *Engine) failures() bool {
	for _, p := range e.AllPeers() {
		if p.Failed.Load() != nil && !p.Disconnected.Load() {
			return true
		}
	}
	return false
}
