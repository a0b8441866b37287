package poll

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// yieldLook is how often a goroutine that goes on polling asks whether others wait for a
	// processor: callbacks may have made some runnable.
	yieldLook = int64(100 * time.Microsecond)
	// maxYield is after how long it yields although none wait, for the sake of timers. The
	// runtime takes the processor of a goroutine that has run for 10 ms without a pause away,
	// and then looks every 20 µs for a while whether it may do so again.
	maxYield = int64(5 * time.Millisecond)
)

// woken is true if a parked goroutine was woken since a polling one yielded.
var woken atomic.Bool

// NoteWoken notes that a goroutine that was parked has been woken: it may need the processor
// of one that polls.
func NoteWoken() {
	if !woken.Load() {
		woken.Store(true)
	}
}

// Yielder tells when a goroutine that goes on polling lets others run. Its times are
// nanoseconds of one clock. The zero Yielder is ready for use, by several goroutines.
type Yielder struct {
	at     atomic.Int64 // when one yielded last
	looked atomic.Int64 // when one asked last whether others wait for a processor
}

// due reports whether to yield without asking who waits.
func (y *Yielder) due(now int64) bool {
	return woken.Load() || now-y.at.Load() >= maxYield
}

// Yield lets other goroutines run, and reports true, if some were woken or wait for a
// processor: they may need the caller's.
func (y *Yielder) Yield(now int64) bool {
	return (y.due(now) || now-y.looked.Load() >= yieldLook) && y.BeforeBlock(now)
}

// BeforeBlock is Yield for a goroutine that is about to block in a system call that the
// runtime does not know of, with its processor: it always asks who waits.
func (y *Yielder) BeforeBlock(now int64) bool {
	y.looked.Store(now)
	if !y.due(now) && !Runnable() {
		return false
	}
	woken.Store(false)
	y.at.Store(now)
	runtime.Gosched()
	RefreshProcs()
	return true
}
