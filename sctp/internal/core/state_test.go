package core

import (
	"slices"
	"testing"
	"time"
)

// There is an event for every transition, in the order of RFC 9260, Figure 3, with its
// reason.
func TestTransitionsHaveReasons(t *testing.T) {
	p := newPair(t, 40, &Config{TellStates: true}, &Config{TellStates: true})
	p.connect()
	p.a.send(0, 1000)
	p.a.assoc.Shutdown(p.now)
	p.a.flush()
	p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed })
	p.z.flush()
	want := [2][]State{{CookieWait, CookieEchoed, Established, ShutdownPending, ShutdownSent, Closed},
		{Established, ShutdownReceived, ShutdownAckSent, Closed}}
	for k, h := range []*host{p.a, p.z} {
		var states []State
		for _, e := range h.events {
			if e.Kind != EventState {
				continue
			}
			last := Closed
			if len(states) > 0 {
				last = states[len(states)-1]
			}
			if c := e.Change; c.From != last || c.Reason == "" {
				t.Errorf("end %d: %v to %v (%s), after %v", k, c.From, c.To, c.Reason, states)
			}
			states = append(states, e.Change.To)
		}
		if !slices.Equal(states, want[k]) {
			t.Errorf("end %d: %v, want %v", k, states, want[k])
		}
	}
}
