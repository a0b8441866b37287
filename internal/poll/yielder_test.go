package poll

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// quietly runs f with one processor for the process, on which no other goroutine waits.
func quietly(t *testing.T, f func()) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for end := time.Now().Add(time.Minute); Runnable(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("others wait for the processor all the time")
		}
	}
	f()
}

// Others run where some were woken, or wait, or have not for long.
func TestYield(t *testing.T) {
	const begin = int64(time.Hour)
	fresh := func() *Yielder {
		woken.Store(false)
		y := new(Yielder)
		y.at.Store(begin)
		y.looked.Store(begin)
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
		if always(func() bool { return fresh().Yield(begin + yieldLook - 1) }) {
			t.Error("before the time")
		}
		y := fresh()
		if always(func() bool { return y.Yield(begin + yieldLook) }) {
			t.Error("yields although none waits")
		} else if y.looked.Load() != begin+yieldLook {
			t.Error("it was not looked for any")
		}
		y = fresh()
		woken.Store(true)
		if !y.Yield(begin+1) || woken.Load() || y.at.Load() != begin+1 {
			t.Error("not for who was woken")
		}
		if always(func() bool { return fresh().Yield(begin + maxYield - 1) }) || !fresh().Yield(begin+maxYield) {
			t.Error("not after its time")
		}
		if y := fresh(); always(func() bool { return y.BeforeBlock(begin + 1) }) || y.looked.Load() != begin+1 {
			t.Error("before it blocks: yields although none waits, or did not ask")
		}
		var ran atomic.Bool
		go ran.Store(true)
		y = fresh()
		if y.Yield(begin + yieldLook - 1); ran.Load() {
			t.Error("it was looked before the time")
		}
		if !fresh().BeforeBlock(begin + 1) {
			t.Error("before it blocks: does not yield although one waits")
		}
		var second atomic.Bool
		go second.Store(true)
		for n := int64(1); !second.Load(); n++ { // once in 61 times the runtime prefers the caller
			if !y.Yield(begin+n*yieldLook) || n > 3 {
				t.Fatal("does not yield although one waits")
			}
		}
	})
}
