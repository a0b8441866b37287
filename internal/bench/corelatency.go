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
	// A measurement is latencyBatches batches of latencyRounds round trips. The fastest
	// batch counts: the others may have been interrupted.
	latencyBatches = 5
	latencyRounds  = 1000
	// latencyLimit ends a measurement on processors that are busy with other work.
	latencyLimit = time.Second
	// farFactor: processors are far apart if their latency is more than farFactor times
	// the near latency.
	farFactor = 2.5
	// calibrationRuns measurements, calibrationPause apart, give the near latency.
	calibrationRuns  = 20
	calibrationPause = 50 * time.Millisecond
	// nearQuantile is the quantile of all measurements that is the near latency. The minimum
	// would mislead: two virtual processors may share a core for a while.
	nearQuantile = 0.25
)

// CoreLatency measures the core-to-core latency: the time in nanoseconds that a cache line
// takes from one processor to another. It returns 0 if there is only one processor, or if
// they are busy for a second.
func CoreLatency() float64 {
	if runtime.NumCPU() < 2 || runtime.GOMAXPROCS(0) < 2 {
		return 0
	}
	var ball atomic.Int64
	var late atomic.Bool // latencyLimit has passed
	var wg sync.WaitGroup
	until := time.Now().Add(latencyLimit)
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
		for b := range int64(latencyBatches) {
			start := time.Now()
			for i := range int64(latencyRounds) {
				v := 2 * (b*latencyRounds + i)
				ball.Store(v + 1)
				if !wait(v + 2) {
					return
				}
			}
			best = min(best, float64(time.Since(start))/(2*latencyRounds))
		}
	})
	wg.Go(func() {
		apart(1)
		for i := range int64(latencyBatches * latencyRounds) {
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

// CoreLatencies detects phases in which processors are far apart. In a virtual machine
// that changes when the host moves virtual processors, and communication between two of
// them then takes several times as long.
type CoreLatencies struct {
	seen []float64 // results of CoreLatency, sorted
	far  int       // runs before or after which processors were far apart
}

// Calibrate measures the usual latency. It takes about a second.
func (h *CoreLatencies) Calibrate() {
	for range calibrationRuns {
		h.note(CoreLatency())
		time.Sleep(calibrationPause)
	}
}

// note adds a measurement and reports whether it shows processors that are far apart.
func (h *CoreLatencies) note(d float64) (far bool) {
	if d <= 0 {
		return false
	}
	i, _ := slices.BinarySearch(h.seen, d)
	h.seen = slices.Insert(h.seen, i, d)
	return d > farFactor*h.near()
}

// near returns the near latency: a quarter of the measurements are not above it.
func (h *CoreLatencies) near() float64 { return h.seen[int(nearQuantile*float64(len(h.seen)-1))] }

// Run calls f up to times times. It stops when f fails, or when f does not ask for another
// run and the processors were near each other before and after it.
func (h *CoreLatencies) Run(times int, f func() (again bool, err error)) error {
	for range times {
		before := h.note(CoreLatency())
		again, err := f()
		near := h.count(before, h.note(CoreLatency()))
		if err != nil {
			return err
		}
		if near && !again {
			break
		}
	}
	return nil
}

// count counts the run if processors were far apart before or after it.
func (h *CoreLatencies) count(before, after bool) (near bool) {
	if before || after {
		h.far++
		return false
	}
	return true
}

// String summarizes the measurements in a sentence; it is empty if there were none.
func (h *CoreLatencies) String() string {
	if len(h.seen) == 0 {
		return ""
	}
	s := fmt.Sprintf("A cache line took %.0f to %.0f ns between processors", h.seen[0], h.seen[len(h.seen)-1])
	if h.far > 0 {
		s += fmt.Sprintf("; before or after %d runs, which were repeated if possible, more than %v times the %.0f ns that the nearest quarter takes", h.far, farFactor, h.near())
	}
	return s + "."
}

// apart binds the calling goroutine for good to the kth processor that this process may
// use, on systems that support it.
func apart(k int) {
	runtime.LockOSThread() // the thread ends with the goroutine
	if may := affinity.Allowed(); len(may) >= 2 {
		_ = affinity.Set(may[k])
	}
}
