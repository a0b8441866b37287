package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
)

// HandleTimeout runs the timers that have expired. Calls that come too early do
// nothing.
func (a *Assoc) HandleTimeout(now clock.Time) {
	if a.state == Closed {
		return
	}
	a.ProcessDeferredSack() // before anything is taken for lost
	if at := a.timers.Next(); at != 0 && at <= now {
		a.runTimers(now)
	}
	if a.state != Closed {
		a.lossTimeout(now)
	}
	a.slow = a.findSlowReasons()
}

// runTimers runs what has expired in the array of timers. Any of them may end
// the association, which stops all.
func (a *Assoc) runTimers(now clock.Time) {
	t := &a.timers
	if t.Expired(timer.T5, now) {
		a.t5Timeout()
	}
	if t.Expired(timer.T1, now) {
		a.t1Timeout(now)
	}
	if t.Expired(timer.T2, now) {
		a.t2Timeout(now)
	}
	if t.Expired(timer.Probe, now) {
		a.tx.mayProbe = true
	}
	t.Expired(timer.Pace, now) // PollTransmit goes on by itself
	if t.Expired(timer.Reconfig, now) {
		a.reconfigTimeout(now)
	}
	if t.Expired(timer.T4, now) {
		a.t4Timeout()
	}
	for i := 0; i < len(a.paths) && a.state != Closed; i++ {
		if t.ExpiredPath(timer.T3, i, now) {
			a.t3Timeout(now, i)
		}
		if a.state != Closed && t.ExpiredPath(timer.Heartbeat, i, now) {
			if !a.heartbeatTimeout(now, i) {
				a.close(ErrUnreachable)
			}
		}
		if a.state != Closed && t.ExpiredPath(timer.PathMTU, i, now) {
			a.pmtuTimeout(now, i)
		}
	}
}

// timedOut counts an unanswered timeout of path i, which ends the association if it is one too
// many. It reports whether the association survived.
func (a *Assoc) timedOut(i int) bool {
	if !a.pathError(i, true) {
		a.close(ErrUnreachable)
		return false
	}
	return true
}

// NextTimeout returns when HandleTimeout is due next, 0 for never. After
// HandleTimeout PollTransmit is due.
func (a *Assoc) NextTimeout() clock.Time {
	if a.state == Closed {
		return 0
	}
	at := timer.Earliest(a.timers.Next(), a.lossDeadline())
	if a.rx.reasm != nil && a.rx.sack.NextTimeout() != 0 && !a.silent() {
		at = timer.Earliest(at, a.rx.sack.NextTimeout())
	}
	return at
}
