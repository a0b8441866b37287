package sctp

import (
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/timerqueue"
)

// Defaults of Probation.
const (
	// DefaultProbationBuffer is the default of Probation.RecvBuffer: 16 KiB.
	DefaultProbationBuffer = 16 << 10
	// DefaultProbationTimeout is the default of Probation.Timeout.
	DefaultProbationTimeout = 30 * time.Second
	// DefaultProbationMax is the default of Probation.Max.
	DefaultProbationMax = 256
)

// Probation limits an association that a peer has opened until the program has authenticated
// the peer: little memory, and not for long. Association.Admit ends it.
type Probation struct {
	// RecvBuffer takes the place of Config.RecvBuffer, in bytes.
	RecvBuffer int
	// Timeout is how long the association may go on; then it is aborted. Negative
	// means for ever. See also Association.ExtendProbation.
	Timeout time.Duration
	// Max bounds the associations of the endpoint that are on probation. For one more the
	// oldest of them is aborted, so that silent peers do not keep others out.
	Max int
}

// withDefaults returns p with its zero fields replaced.
func (p Probation) withDefaults() Probation {
	if p.RecvBuffer == 0 {
		p.RecvBuffer = DefaultProbationBuffer
	}
	if p.Timeout == 0 {
		p.Timeout = DefaultProbationTimeout
	}
	if p.Max == 0 {
		p.Max = DefaultProbationMax
	}
	return p
}

// Admit ends the probation of an association: its receive buffer is that of the Config
// from now on, and it may go on as long as it likes. A restart of the peer does not begin
// another one. It does not block, and does nothing if the association is not on probation.
func (a *Association) Admit() {
	if !a.ep.unproven.remove(a) {
		return
	}
	a.mu.Lock()
	a.admitBy = 0
	now := a.t.now()
	a.core.SetRecvBuffer(a.ep.core.RecvBuffer)
	a.goCallbacks(a.flushLocked(now))
}

// ExtendProbation lets an association that is on probation go on for d from now, or for
// ever if d is negative: what it has shown so far is worth waiting for, but no proof. It
// does not block, and does nothing if the association is not on probation.
func (a *Association) ExtendProbation(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.admitBy != 0 && !a.dead {
		a.admitBy = probationEnd(a.t.now(), d)
		a.arm()
	}
}

// probationEnd returns when a probation of d ends that begins now.
func probationEnd(now clock.Time, d time.Duration) clock.Time {
	if d < 0 {
		return timerqueue.Never
	}
	return now + clock.Time(d)
}

// beginProbation puts an association that the peer opened on probation, if there is any.
// The caller has just made a known to the demux, and holds a.mu. The association to abort
// for it is returned, if any.
func (a *Association) beginProbation(now clock.Time) (oldest *Association) {
	p := a.ep.probation
	if p == nil {
		return nil
	}
	a.admitBy = probationEnd(now, p.Timeout)
	return a.ep.unproven.add(a, p.Max)
}

// checkProbation aborts an association whose probation has ended. a.mu is held.
func (a *Association) checkProbation(now clock.Time) {
	if a.admitBy != 0 && now >= a.admitBy {
		a.core.Abort(now, []byte("said nothing that admits it"))
	}
}

// unproven is the associations of an endpoint that are on probation, the oldest first.
type unproven struct {
	mu   sync.Mutex
	list []*Association // guarded by mu
}

// add adds a. If there are more than most then, it takes out the oldest and returns it.
func (u *unproven) add(a *Association, most int) (oldest *Association) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, a)
	if len(u.list) <= most {
		return nil
	}
	oldest = u.list[0]
	u.list = slices.Delete(u.list, 0, 1)
	return oldest
}

// remove takes a out and reports whether it was there.
func (u *unproven) remove(a *Association) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.list, a)
	if i < 0 {
		return false
	}
	u.list = slices.Delete(u.list, i, i+1)
	return true
}
