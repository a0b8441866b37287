package poll

import (
	"runtime"
	"sync/atomic"
)

// locked is true if goroutines that spin are locked to threads.
var locked atomic.Bool

// LockedThreads says that goroutines that spin are locked to threads from now on, as those are that C code calls.
// For such a goroutine runtime.Gosched means that the runtime hands its processor to another thread, which finds the
// goroutine and hands it back: some 10 µs, and two wake-ups. So it yields only where others wait for a processor.
// Timers do not wait: the runtime takes the processor of a goroutine that has run for 10 ms away.
func LockedThreads() { locked.Store(true) }

// yield lets other goroutines run, and reports true, unless the caller is locked to a thread and none wait.
func yield() bool {
	if locked.Load() && !Runnable() {
		return false
	}
	runtime.Gosched()
	return true
}
