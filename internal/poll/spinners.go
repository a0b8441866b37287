package poll

import (
	"runtime"
	"sync/atomic"
)

var (
	// spinners counts the goroutines of the process that spin. Each occupies a processor,
	// so there are at most as many as the process has, for all transports and ranks: more
	// would keep the goroutines that they wait for from running.
	spinners atomic.Int32
	// procs is runtime.GOMAXPROCS when it was last read: reading it takes the scheduler's
	// lock.
	procs atomic.Int32
)

func init() { RefreshProcs() }

// RefreshProcs reads GOMAXPROCS, and reports whether it has changed. Enter and a Yielder call
// it, so that a change shows within some milliseconds.
func RefreshProcs() bool {
	n := int32(runtime.GOMAXPROCS(0))
	return procs.Swap(n) != n
}

// Procs returns how many processors the process has, or had a few milliseconds ago.
func Procs() int { return int(procs.Load()) }

// Spinners returns how many goroutines of the process spin.
func Spinners() int { return int(spinners.Load()) }

// Full reports whether each processor of the process has a goroutine that spins. Other
// goroutines run only when one of those yields then.
func Full() bool { return spinners.Load() >= procs.Load() }

// Enter counts a goroutine that is about to spin. It reports false, and has counted nothing,
// if there is no processor for it: the caller parks instead. After a positive answer it has to
// call Leave. It does not block.
func Enter() bool {
	for {
		n := spinners.Load()
		if n >= procs.Load() {
			if RefreshProcs() {
				continue
			}
			return false
		}
		if spinners.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Leave is called after Enter by a goroutine that does not spin any more.
func Leave() { spinners.Add(-1) }

// Spinning counts the goroutines that spin for one transport or one rank: when the last one
// stops it has to resume those that slept because it polled. The zero Spinning is ready for
// use.
type Spinning struct{ n atomic.Int32 }

// Enter is the Enter of the process for a goroutine that is counted here, too.
func (s *Spinning) Enter() bool {
	if !Enter() {
		return false
	}
	s.n.Add(1)
	return true
}

// Leave is called after Enter by a goroutine that does not spin any more.
func (s *Spinning) Leave() {
	s.n.Add(-1)
	Leave()
}

// Any reports whether a goroutine spins here.
func (s *Spinning) Any() bool { return s.n.Load() > 0 }
