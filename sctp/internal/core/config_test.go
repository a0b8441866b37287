package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
)

// RFC 9260, Section 16, and the bounds of Sections 3.3.2 and 6.2.
func TestConfigDefaults(t *testing.T) {
	c := (*Config)(nil).withDefaults()
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"RTO.Initial", c.RTOInitial, time.Second},
		{"RTO.Min", c.RTOMin, time.Second},
		{"RTO.Max", c.RTOMax, 60 * time.Second},
		{"Valid.Cookie.Life", c.CookieLife, 60 * time.Second},
		{"Association.Max.Retrans", c.AssocMaxRetrans, 10},
		{"Path.Max.Retrans", c.PathMaxRetrans, 5},
		{"Max.Init.Retransmits", c.MaxInitRetrans, 8},
		{"HB.interval", c.HBInterval, 30 * time.Second},
		{"SACK.Delay", c.SackDelay, 200 * time.Millisecond},
		{"T5-shutdown-guard", c.ShutdownGuard, 300 * time.Second},
	} {
		if x.got != x.want {
			t.Errorf("%s = %v, want %v", x.name, x.got, x.want)
		}
	}
	c = (&Config{SackDelay: time.Hour, RecvBuffer: 1, MTU: 1 << 20, RTOMin: 2 * time.Second, RTOInitial: time.Millisecond}).withDefaults()
	if c.SackDelay != MaxSackDelay || c.RecvBuffer != MinRecvBuffer || c.MTU != MaxPacket || c.RTOInitial != 2*time.Second {
		t.Errorf("beyond the bounds: %+v", c)
	}
	for in, want := range map[int]int{0: pmtu.MinMTU, 1453: 1452, 1452: 1452, 70000: MaxPacket} {
		if got := clampMTU(in); got != want || got%4 != 0 {
			t.Errorf("clampMTU(%d) = %d, want %d", in, got, want)
		}
	}
}

// The earliest deadline is right whatever is set, moved and stopped.
func TestTimersNext(t *testing.T) {
	p := newPair(t, 94)
	var tm timers
	tm.resize(3)
	for range 20_000 {
		at := clock.Time(p.rng.IntN(50))
		if p.rng.IntN(3) == 0 {
			at = 0
		}
		switch p.rng.IntN(3) {
		case 0:
			tm.set(timerKind(p.rng.IntN(int(numTimers))), at)
		case 1:
			tm.setPath(pathTimerKind(p.rng.IntN(int(numPathTimers))), p.rng.IntN(3), at)
		case 2:
			now := clock.Time(p.rng.IntN(60))
			k := timerKind(p.rng.IntN(int(numTimers)))
			due := tm.one[k] != 0 && tm.one[k] <= now
			if got := tm.expired(k, now); got != due || got && tm.running(k) {
				t.Fatalf("expired = %v, want %v", got, due)
			}
		}
		want := clock.Time(0)
		for _, x := range tm.one {
			want = earliest(want, x)
		}
		for _, x := range tm.path {
			for _, y := range x {
				want = earliest(want, y)
			}
		}
		if got := tm.next(); got != want {
			t.Fatalf("next = %d, want %d", got, want)
		}
	}
}
