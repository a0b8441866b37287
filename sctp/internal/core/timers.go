package core

import "github.com/weftstack/weft/sctp/internal/core/clock"

// timerKind names a timer of an association as a whole.
type timerKind uint8

const (
	timerT1     timerKind = iota // T1-init and T1-cookie: they never run both
	timerT2                      // T2-shutdown
	timerT5                      // T5-shutdown-guard
	timerProbe                   // zero window probe (RFC 9260, Section 6.1, A)
	timerPace                    // the pacer has room for a packet again
	timerReconf                  // re-configuration (RFC 6525, Section 5.1.1)
	timerT4                      // of an ASCONF (RFC 5061, Section 5.1)
	numTimers
)

// pathTimerKind names a timer that every path has.
type pathTimerKind uint8

const (
	timerT3  pathTimerKind = iota // T3-rtx
	timerHB                       // heartbeat: interval or answer
	timerMTU                      // path MTU discovery: PROBE_TIMER or PMTU_RAISE_TIMER
	numPathTimers
)

// timers holds deadlines by kind and path; 0 means not running. The earliest
// one is cached, so that asking for it costs nothing until the timer that holds
// it is stopped or moved.
type timers struct {
	one   [numTimers]clock.Time
	path  [][numPathTimers]clock.Time
	first clock.Time
	stale bool
}

func (t *timers) note(old, at clock.Time) {
	switch {
	case old != 0 && old == t.first:
		t.stale = true
	case at != 0 && (t.first == 0 || at < t.first):
		t.first = at
	}
}

// set makes a timer expire at the given time; 0 stops it.
func (t *timers) set(k timerKind, at clock.Time) {
	old := t.one[k]
	t.one[k] = at
	t.note(old, at)
}

// setPath is set for a path's timer.
func (t *timers) setPath(k pathTimerKind, i int, at clock.Time) {
	old := t.path[i][k]
	t.path[i][k] = at
	t.note(old, at)
}

func (t *timers) running(k timerKind) bool { return t.one[k] != 0 }

func (t *timers) runningPath(k pathTimerKind, i int) bool { return t.path[i][k] != 0 }

// expired reports whether a timer is due, and stops it if so.
func (t *timers) expired(k timerKind, now clock.Time) bool {
	if at := t.one[k]; at == 0 || at > now {
		return false
	}
	t.set(k, 0)
	return true
}

// expiredPath is expired for a path's timer.
func (t *timers) expiredPath(k pathTimerKind, i int, now clock.Time) bool {
	if at := t.path[i][k]; at == 0 || at > now {
		return false
	}
	t.setPath(k, i, 0)
	return true
}

// next returns the earliest deadline, 0 if no timer runs.
func (t *timers) next() clock.Time {
	if !t.stale {
		return t.first
	}
	t.stale = false
	t.first = 0
	for _, at := range t.one {
		t.first = earliest(t.first, at)
	}
	for i := range t.path {
		for _, at := range t.path[i] {
			t.first = earliest(t.first, at)
		}
	}
	return t.first
}

// resize sets the number of paths; timers of new paths are stopped.
func (t *timers) resize(n int) {
	for len(t.path) < n {
		t.path = append(t.path, [numPathTimers]clock.Time{})
	}
	t.path = t.path[:n]
	t.stale = true
}

// stopAll stops every timer.
func (t *timers) stopAll() {
	t.one = [numTimers]clock.Time{}
	clear(t.path)
	t.first, t.stale = 0, false
}

// earliest returns the smaller of two deadlines, of which 0 means never.
func earliest(a, b clock.Time) clock.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
