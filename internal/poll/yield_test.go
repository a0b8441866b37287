package poll

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestYieldOfLockedThreads(t *testing.T) {
	quietly(t, func() {
		if !yield() {
			t.Error("a goroutine that is not locked did not yield")
		}
		LockedThreads()
		defer locked.Store(false)
		yielded := 0
		for range 100 { // what is left of other tests may want the processor, too, but not each time
			if yield() {
				yielded++
			}
		}
		if yielded == 100 {
			t.Error("yielded although no other goroutine waits")
		}
		var ran atomic.Bool
		go ran.Store(true)
		yields := yield()
		for range 3 { // once in 61 times the runtime prefers the caller
			runtime.Gosched()
		}
		if !yields || !ran.Load() {
			t.Errorf("a goroutine that waits for the processor: it ran: %v", ran.Load())
		}
	})
}
