package p2p

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// waits makes n waits that end after spun if the waiter polls, and after parked
// if it does not, and returns how many began with a spin.
func waits(p *Progress, n int, spun, parked time.Duration) (spins int) {
	var pool WaiterPool
	for range n {
		s, began := p.Begin(), Clock()
		if s.Budget > 0 {
			spins++
		}
		if p.Spin(context.Background(), s, func() bool { return time.Duration(Clock()-began) >= spun }) {
			p.End(s)
			continue
		}
		w := pool.Get()
		took := parked
		if s.Budget > 0 {
			took = max(parked, spun)
		}
		time.AfterFunc(took-time.Duration(Clock()-began), w.signal)
		_ = w.wait(context.Background())
		w.Recycle()
		p.End(s)
	}
	return spins
}

// Whichever way of waiting is shorter is taken for most waits, also after a
// change.
func TestProgressAdapts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Progress
		p.Init(func() bool { time.Sleep(time.Microsecond); return false }, 50*time.Microsecond)
		const n = 1600
		for _, tt := range []struct {
			name         string
			spun, parked time.Duration
			spins        bool
		}{
			{"a wake-up costs 20 us", 10 * time.Microsecond, 30 * time.Microsecond, true},
			{"spinning delays the answer", 45 * time.Microsecond, 25 * time.Microsecond, false},
			{"the answer comes late", time.Millisecond, time.Millisecond, false},
			{"a wake-up costs 20 us again", 10 * time.Microsecond, 30 * time.Microsecond, true},
		} {
			waits(&p, n, tt.spun, tt.parked)
			if got := waits(&p, n, tt.spun, tt.parked); (got > n*9/10) != tt.spins || (got < n/10) == tt.spins {
				t.Errorf("%s: %d of %d waits spin", tt.name, got, n)
			}
		}
	})
}

// Where all messages come through memory every wait polls, however long the last
// ones took.
func TestProgressLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Progress
		p.Init(func() bool { time.Sleep(time.Microsecond); return false }, 0)
		p.SpinAlways(50*time.Microsecond, false)
		if got := waits(&p, 200, time.Millisecond, 25*time.Microsecond); got != 200 {
			t.Errorf("%d of 200 waits spin", got)
		}
	})
}

// A wait that cannot poll, or may not, does not.
func TestProgressOff(t *testing.T) {
	var p Progress
	if s := p.Begin(); s.Budget > 0 || p.Spin(context.Background(), s, func() bool { return true }) {
		t.Error("spin without a transport to poll")
	}
	p.Init(func() bool { t.Error("polled"); return false }, 0)
	if s := p.Begin(); s.Budget > 0 || p.Spin(context.Background(), s, func() bool { return true }) {
		t.Error("spin of no length")
	}
}

// Where ranks outnumber processors no thread is woken to transmit what is queued.
func TestCoalescingNeedsProcessors(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		e := New(&Config{Size: 1, Streams: 1})
		e.Progress.Init(func() bool { return false }, 0)
		e.Progress.SpinAlways(CrowdedSpin, crowded)
		if got, want := e.CanCoalesce(), !crowded && runtime.GOMAXPROCS(0) > 1; got != want {
			t.Errorf("crowded %v: coalesces %v, want %v", crowded, got, want)
		}
	}
}
