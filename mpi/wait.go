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
// they park: a message that arrives within the spin costs no wake-up. Spins
// that end in vain take processor time from whom the message is awaited from,
// so each one makes more of the following waits park at once, up to maxSkip. A
// spin that pays, or a park so short that a spin would have paid, ends that.
type progress struct {
	poll     func() bool  // one pass over the transport; nil: cannot be polled
	handOver func()       // called when polling ends in vain; may be nil
	max      int64        // length of a spin in ns; 0: never spin
	skip     atomic.Int32 // waits to come that do not spin
	vain     atomic.Int32 // spins in vain in a row
	spinners atomic.Int32
}

const (
	// defaultSpin is the default of WithSpin: a little longer than a parked
	// goroutine takes to wake up.
	defaultSpin = 50 * time.Microsecond
	// maxSkip is the largest number of waits without a spin, as a power of two.
	maxSkip = 6
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
	if p.skip.Load() > 0 {
		p.skip.Add(-1)
		return false
	}
	if int(p.spinners.Add(1)) > runtime.GOMAXPROCS(0) {
		p.spinners.Add(-1)
		return false
	}
	defer p.spinners.Add(-1)
	start := time.Now()
	for {
		worked := p.poll()
		if done() {
			p.vain.Store(0)
			return true
		}
		if !worked {
			runtime.Gosched()
		}
		if int64(time.Since(start)) > p.max {
			if p.handOver != nil {
				p.handOver()
			}
			p.skip.Store(1 << min(p.vain.Add(1), maxSkip))
			return false
		}
	}
}

// park waits for a signal or the end of ctx.
func (p *progress) park(ctx context.Context, w *waiter) error {
	if p.poll == nil || p.max == 0 {
		return w.wait(ctx)
	}
	start := time.Now()
	err := w.wait(ctx)
	if int64(time.Since(start)) < p.max {
		p.skip.Store(0)
		p.vain.Store(0)
	}
	return err
}
