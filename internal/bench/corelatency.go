package bench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/affinity"
)

const (
	// hopBatches batches of hopRounds round trips make a measurement, of which the
	// fastest counts: the others were interrupted.
	hopBatches = 5
	hopRounds  = 1000
	// hopLimit ends a measurement while the processors have other things to do.
	hopLimit = time.Second
	// farHop is how many times the near time a cache line takes where processors are
	// far from each other.
	farHop = 2.5
	// hopLooks measurements at distances of hopPause tell the near time.
	hopLooks = 20
	hopPause = 50 * time.Millisecond
	// nearHops is the part of the measurements, of the shortest, that ends with the near
	// time. The shortest of all says little: two processors may for once share a core.
	nearHops = 0.25
)

// Hop returns how many nanoseconds a cache line takes from one processor to
// another; 0 if there is only one, or they have other things to do.
func Hop() float64 {
	if runtime.NumCPU() < 2 || runtime.GOMAXPROCS(0) < 2 {
		return 0
	}
	var ball atomic.Int64
	var late atomic.Bool // the time is up
	var wg sync.WaitGroup
	until := time.Now().Add(hopLimit)
	best := math.Inf(1)
	wait := func(v int64) bool {
		for i := 1; ball.Load() != v; i++ {
			if i&0xffff == 0 && (late.Load() || time.Now().After(until)) {
				late.Store(true)
				return false
			}
		}
		return true
	}
	wg.Go(func() {
		apart(0)
		for b := range int64(hopBatches) {
			start := time.Now()
			for i := range int64(hopRounds) {
				v := 2 * (b*hopRounds + i)
				ball.Store(v + 1)
				if !wait(v + 2) {
					return
				}
			}
			best = min(best, float64(time.Since(start))/(2*hopRounds))
		}
	})
	wg.Go(func() {
		apart(1)
		for i := range int64(hopBatches * hopRounds) {
			if !wait(2*i + 1) {
				return
			}
			ball.Store(2*i + 2)
		}
	})
	wg.Wait()
	if math.IsInf(best, 1) {
		return 0
	}
	return best
}

// Hops tells when processors are far from each other. In a virtual machine that
// changes as the host moves them, and then all that two of them hand over to each
// other takes several times as long.
type Hops struct {
	seen []float64 // by Hop, in order of size
	far  int
}

// Learn looks for a while how near they usually are.
func (h *Hops) Learn() {
	for range hopLooks {
		h.note(Hop())
		time.Sleep(hopPause)
	}
}

// note takes in a measurement and reports whether it shows them far from each other.
func (h *Hops) note(d float64) (far bool) {
	if d <= 0 {
		return false
	}
	i, _ := slices.BinarySearch(h.seen, d)
	h.seen = slices.Insert(h.seen, i, d)
	return d > farHop*h.near()
}

// near returns what a cache line takes at most in the nearest quarter of the
// measurements.
func (h *Hops) near() float64 { return h.seen[int(nearHops*float64(len(h.seen)-1))] }

// Run runs f at most so many times: until it fails, or does not want to run again and
// they were near each other before and after it.
func (h *Hops) Run(times int, f func() (again bool, err error)) error {
	for range times {
		before := h.note(Hop())
		again, err := f()
		near := h.count(before, h.note(Hop()))
		if err != nil {
			return err
		}
		if near && !again {
			break
		}
	}
	return nil
}

// count counts a run before or after which they were far from each other.
func (h *Hops) count(before, after bool) (near bool) {
	if before || after {
		h.far++
		return false
	}
	return true
}

// String tells what was seen; it is empty if that was nothing.
func (h *Hops) String() string {
	if len(h.seen) == 0 {
		return ""
	}
	s := fmt.Sprintf("A cache line took %.0f to %.0f ns between processors", h.seen[0], h.seen[len(h.seen)-1])
	if h.far > 0 {
		s += fmt.Sprintf("; before or after %d runs, which were repeated if possible, more than %v times the %.0f ns that the nearest quarter takes", h.far, farHop, h.near())
	}
	return s + "."
}

// apart gives the calling goroutine the kth of the processors that this process may
// use, for good, where that can be done.
func apart(k int) {
	runtime.LockOSThread() // the thread ends with the goroutine
	if may := affinity.Allowed(); len(may) >= 2 {
		_ = affinity.Set(may[k])
	}
}
