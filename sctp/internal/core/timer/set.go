// Package timer has the timers of an association and of its paths, as deadlines: nothing in it
// waits, and nothing is called when one expires.
package timer

import "github.com/weftstack/weft/sctp/internal/core/clock"

// Kind names a timer of an association as a whole.
type Kind uint8

// The timers of an association.
const (
	T1       Kind = iota // T1-init and T1-cookie: they never run both
	T2                   // T2-shutdown
	T5                   // T5-shutdown-guard
	Probe                // zero window probe (RFC 9260, Section 6.1, A)
	Pace                 // the pacer has room for a packet again
	Reconfig             // re-configuration (RFC 6525, Section 5.1.1)
	T4                   // of an ASCONF (RFC 5061, Section 5.1)
	// NumKinds is how many there are.
	NumKinds
)

// PathKind names a timer that every path has.
type PathKind uint8

// The timers of a path.
const (
	T3        PathKind = iota // T3-rtx
	Heartbeat                 // heartbeat: interval or answer
	PathMTU                   // path MTU discovery: PROBE_TIMER or PMTU_RAISE_TIMER
	// NumPathKinds is how many a path has.
	NumPathKinds
)

// Set holds deadlines by kind and path; 0 means not running. The earliest
// one is cached, so that asking for it costs nothing until the timer that holds
// it is stopped or moved.
type Set struct {
	One   [NumKinds]clock.Time
	Path  [][NumPathKinds]clock.Time
	first clock.Time
	stale bool
}

func (t *Set) note(old, at clock.Time) {
	switch {
	case old != 0 && old == t.first:
		t.stale = true
	case at != 0 && (t.first == 0 || at < t.first):
		t.first = at
	}
}

// Start makes a timer expire at the given time; 0 stops it.
func (t *Set) Start(k Kind, at clock.Time) {
	old := t.One[k]
	t.One[k] = at
	t.note(old, at)
}

// StartPath is Start for a path's timer.
func (t *Set) StartPath(k PathKind, i int, at clock.Time) {
	old := t.Path[i][k]
	t.Path[i][k] = at
	t.note(old, at)
}

// Running reports whether a timer runs.
func (t *Set) Running(k Kind) bool { return t.One[k] != 0 }

// RunningPath is Running for a path's timer.
func (t *Set) RunningPath(k PathKind, i int) bool { return t.Path[i][k] != 0 }

// Expired reports whether a timer is due, and stops it if so.
func (t *Set) Expired(k Kind, now clock.Time) bool {
	if at := t.One[k]; at == 0 || at > now {
		return false
	}
	t.Start(k, 0)
	return true
}

// ExpiredPath is Expired for a path's timer.
func (t *Set) ExpiredPath(k PathKind, i int, now clock.Time) bool {
	if at := t.Path[i][k]; at == 0 || at > now {
		return false
	}
	t.StartPath(k, i, 0)
	return true
}

// Next returns the earliest deadline, 0 if no timer runs.
func (t *Set) Next() clock.Time {
	if !t.stale {
		return t.first
	}
	t.stale = false
	t.first = 0
	for _, at := range t.One {
		t.first = Earliest(t.first, at)
	}
	for i := range t.Path {
		for _, at := range t.Path[i] {
			t.first = Earliest(t.first, at)
		}
	}
	return t.first
}

// Resize sets the number of paths; timers of new paths are stopped.
func (t *Set) Resize(n int) {
	for len(t.Path) < n {
		t.Path = append(t.Path, [NumPathKinds]clock.Time{})
	}
	t.Path = t.Path[:n]
	t.stale = true
}

// StopAll stops every timer.
func (t *Set) StopAll() {
	t.One = [NumKinds]clock.Time{}
	clear(t.Path)
	t.first, t.stale = 0, false
}

// Earliest returns the smaller of two deadlines, of which 0 means never.
func Earliest(a, b clock.Time) clock.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
