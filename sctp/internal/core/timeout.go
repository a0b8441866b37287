package core

import "github.com/weftstack/weft/sctp/internal/core/clock"

// HandleTimeout runs the timers that have expired. Calls that come too early do
// nothing.
func (a *Assoc) HandleTimeout(now clock.Time) {
	if a.state == Closed {
		return
	}
	a.ProcessDeferredSack() // before anything is taken for lost
	if at := a.timers.next(); at != 0 && at <= now {
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
	if t.expired(timerT5, now) {
		a.t5Timeout()
	}
	if t.expired(timerT1, now) {
		a.t1Timeout(now)
	}
	if t.expired(timerT2, now) {
		a.t2Timeout(now)
	}
	if t.expired(timerProbe, now) {
		a.tx.mayProbe = true
	}
	t.expired(timerPace, now) // PollTransmit goes on by itself
	if t.expired(timerReconf, now) {
		a.reconfigTimeout(now)
	}
	if t.expired(timerT4, now) {
		a.t4Timeout()
	}
	for i := 0; i < len(a.paths) && a.state != Closed; i++ {
		if t.expiredPath(timerT3, i, now) {
			a.t3Timeout(now, i)
		}
		if a.state != Closed && t.expiredPath(timerHB, i, now) {
			if !a.heartbeatTimeout(now, i) {
				a.close(ErrUnreachable)
			}
		}
		if a.state != Closed && t.expiredPath(timerMTU, i, now) {
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
	at := earliest(a.timers.next(), a.lossDeadline())
	if a.rx.reasm != nil && a.rx.sack.NextTimeout() != 0 && !a.silent() {
		at = earliest(at, a.rx.sack.NextTimeout())
	}
	return at
}
