package sctp

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/spin"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

const (
	// yieldLook is how often a goroutine that goes on reading looks whether others wait
	// for a processor: upcalls may have woken some.
	yieldLook = clock.Time(100 * time.Microsecond)
	// yieldMost is after how long it lets others run although none wait, so that timers
	// are seen to. The runtime takes a goroutine that does not for one that does not end
	// otherwise, and its processor away, after 10 ms, and then looks every 20 µs for a
	// while whether it may do so again.
	yieldMost = clock.Time(5 * time.Millisecond)
)

// someWoken tells that a goroutine was woken that was parked, since one that reads let
// others run.
var someWoken atomic.Bool

// yielder tells when a goroutine of a transport that goes on reading lets others run.
type yielder struct {
	at     atomic.Int64 // a clock.Time: when one did so last
	looked atomic.Int64 // a clock.Time: when it was looked last whether any wait
}

// due reports whether it is time to let others run, whoever waits.
func (y *yielder) due(now clock.Time) bool {
	return someWoken.Load() || now-clock.Time(y.at.Load()) >= yieldMost
}

// yield lets others run, and reports true, if some were woken or wait: they may for the
// processor of the caller, who goes on.
func (y *yielder) yield(now clock.Time) bool {
	return (y.due(now) || now-clock.Time(y.looked.Load()) >= yieldLook) && y.park(now)
}

// park is yield for one who is about to sleep in the system, with its processor.
func (y *yielder) park(now clock.Time) bool {
	y.looked.Store(int64(now))
	if !y.due(now) && !spin.Runnable() {
		return false
	}
	someWoken.Store(false)
	y.at.Store(int64(now))
	runtime.Gosched()
	return true
}
