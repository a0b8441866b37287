package mpi

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// waiter parks one goroutine. Signals may be spurious: who waits looks again.
type waiter struct {
	ch   chan struct{}
	pool *waiterPool
}

// waiterPool keeps waiters for reuse. Each engine has its own, so that channels
// do not leave a testing/synctest bubble.
type waiterPool struct{ pool sync.Pool }

func (p *waiterPool) get() *waiter {
	if w, ok := p.pool.Get().(*waiter); ok {
		return w
	}
	return &waiter{ch: make(chan struct{}, 1), pool: p}
}

// recycle gives w back. Late signals only cause a spurious wake-up.
func (w *waiter) recycle() { w.pool.pool.Put(w) }

// signal wakes the goroutine that waits, or the next to wait. It never blocks.
func (w *waiter) signal() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// wait parks until a signal or the end of ctx.
func (w *waiter) wait(ctx context.Context) error {
	done := ctx.Done()
	if done == nil {
		<-w.ch
		return nil
	}
	select {
	case <-w.ch:
		return nil
	case <-done:
		return ctx.Err()
	}
}

// progress is how waiting goroutines drive the transport themselves before
// they park: a message that arrives within the spin costs no wake-up. The
// time spent is adapted: every spin that ends in vain halves it, down to
// almost nothing, every one that pays doubles it, up to max.
type progress struct {
	poll     func() bool  // one pass over the transport; nil: cannot be polled
	max      int64        // longest spin in ns; 0: never spin
	budget   atomic.Int64 // present length of a spin in ns
	spinners atomic.Int32
}

const (
	// defaultSpin is the default of WithSpin: a little longer than a parked
	// goroutine takes to wake up.
	defaultSpin = 50 * time.Microsecond
	// minSpin is how long a spin that never pays still is: one poll.
	minSpin = 500 * time.Nanosecond
)

// pollOnce transmits what is queued and makes one pass over the transport, if
// it can be polled.
func (e *engine) pollOnce() bool {
	e.pusher.waiting()
	return e.prog.poll != nil && e.prog.poll()
}

// spin polls until done or for the length of a spin, and returns done().
func (p *progress) spin(done func() bool) bool {
	if p.poll == nil || p.max == 0 {
		return false
	}
	if int(p.spinners.Add(1)) > runtime.GOMAXPROCS(0) {
		p.spinners.Add(-1)
		return false
	}
	defer p.spinners.Add(-1)
	budget := p.budget.Load()
	start := time.Now()
	for {
		worked := p.poll()
		if done() {
			if budget < p.max {
				p.budget.Store(min(p.max, 2*budget))
			}
			return true
		}
		if !worked {
			runtime.Gosched()
		}
		if int64(time.Since(start)) > budget {
			p.budget.Store(max(int64(minSpin), budget/2))
			return false
		}
	}
}
