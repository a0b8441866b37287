package sctp

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/spin"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// quietly runs f with one processor for the process, on which nobody else waits.
func quietly(t *testing.T, f func()) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for end := time.Now().Add(time.Minute); spin.Runnable(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("others wait for the processor all the time")
		}
	}
	f()
}

// Others run where some were woken, or wait, or have not for long.
func TestYield(t *testing.T) {
	const begin = clock.Time(time.Hour)
	fresh := func() *yielder {
		someWoken.Store(false)
		y := new(yielder)
		y.at.Store(int64(begin))
		y.looked.Store(int64(begin))
		return y
	}
	// What is left of other tests may want the processor, too, but not each time.
	always := func(f func() bool) bool {
		for range 100 {
			if !f() {
				return false
			}
		}
		return true
	}
	quietly(t, func() {
		if always(func() bool { return fresh().yield(begin + yieldLook - 1) }) {
			t.Error("before the time")
		}
		y := fresh()
		if always(func() bool { return y.yield(begin + yieldLook) }) {
			t.Error("for nobody")
		} else if y.looked.Load() != int64(begin+yieldLook) {
			t.Error("it was not looked for any")
		}
		y = fresh()
		someWoken.Store(true)
		if !y.yield(begin+1) || someWoken.Load() || y.at.Load() != int64(begin+1) {
			t.Error("not for who was woken")
		}
		if always(func() bool { return fresh().yield(begin + yieldMost - 1) }) || !fresh().yield(begin+yieldMost) {
			t.Error("not after its time")
		}
		if y := fresh(); always(func() bool { return y.park(begin + 1) }) || y.looked.Load() != int64(begin+1) {
			t.Error("before it sleeps: for nobody, or it was not looked for any")
		}
		var ran atomic.Bool
		go ran.Store(true)
		y = fresh()
		if y.yield(begin + yieldLook - 1); ran.Load() {
			t.Error("it was looked before the time")
		}
		if !fresh().park(begin + 1) {
			t.Error("before it sleeps: not for one who waits")
		}
		var second atomic.Bool
		go second.Store(true)
		for n := clock.Time(1); !second.Load(); n++ { // once in 61 times the runtime prefers the caller
			if !y.yield(begin+n*yieldLook) || n > 3 {
				t.Fatal("not for one who waits")
			}
		}
	})
}

// Who is woken is told of if it is parked, and does not lead.
func TestWakingTells(t *testing.T) {
	for _, leads := range []bool{false, true} {
		w := &waiter{ch: make(chan struct{}, 1)}
		w.leading.Store(leads)
		someWoken.Store(false)
		if w.wake(); someWoken.Load() == leads {
			t.Errorf("leads %v: told %v", leads, someWoken.Load())
		}
	}
}
