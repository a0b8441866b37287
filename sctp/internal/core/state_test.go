package core

import (
	"slices"
	"testing"
	"time"
)

// Config.OnState hears of every transition, in the order of RFC 9260, Figure 3, with a
// reason.
func TestTransitionsHaveReasons(t *testing.T) {
	var states [2][]State
	note := func(k int) *Config {
		return &Config{OnState: func(from, to State, reason string) {
			list := &states[k]
			if len(*list) == 0 && from != Closed || len(*list) > 0 && (*list)[len(*list)-1] != from || reason == "" {
				t.Errorf("%v to %v (%s), after %v", from, to, reason, *list)
			}
			*list = append(*list, to)
		}}
	}
	p := newPair(t, 40, note(0), note(1))
	p.connect()
	p.a.send(0, 1000)
	p.a.assoc.Shutdown(p.now)
	p.a.flush()
	p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed })
	want := [2][]State{{CookieWait, CookieEchoed, Established, ShutdownPending, ShutdownSent, Closed},
		{Established, ShutdownReceived, ShutdownAckSent, Closed}}
	for k := range states {
		if !slices.Equal(states[k], want[k]) {
			t.Errorf("end %d: %v, want %v", k, states[k], want[k])
		}
	}
}
