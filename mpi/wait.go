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
	lead parker // instead of ch, if not nil
	pool *waiterPool
}

// parker is how a transport lets a goroutine wait: as [sctp.Waiter] does.
type parker interface {
	// Wait blocks until Wake is called, and reports true, or until stop is closed.
	Wait(stop <-chan struct{}) bool
	Wake()
}

// waiterPool keeps waiters for reuse. Each engine has its own, so that channels
// do not leave a testing/synctest bubble.
type waiterPool struct {
	pool sync.Pool
	make func() parker // may be nil
}

func (p *waiterPool) get() *waiter {
	if w, ok := p.pool.Get().(*waiter); ok {
		return w
	}
	w := &waiter{pool: p}
	if p.make != nil {
		w.lead = p.make()
	} else {
		w.ch = make(chan struct{}, 1)
	}
	return w
}

// recycle gives w back. Late signals only cause a spurious wake-up.
func (w *waiter) recycle() { w.pool.pool.Put(w) }

// signal wakes the goroutine that waits, or the next to wait. It never blocks.
func (w *waiter) signal() {
	if w.lead != nil {
		w.lead.Wake()
		return
	}
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// wait parks until a signal or the end of ctx.
func (w *waiter) wait(ctx context.Context) error {
	done := ctx.Done()
	if w.lead != nil {
		if !w.lead.Wait(done) {
			return ctx.Err()
		}
		return nil
	}
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
// they park: a message that arrives within the spin costs no wake-up. On a
// machine with other work to do spinning loses: the scheduler favours who
// sleeps. So both ways are tried, and the one whose waits turn out shorter is
// taken for most of them.
type progress struct {
	poll     func() bool // one pass over the transport; nil: cannot be polled
	max      int64       // length of a spin in ns; 0: never spin
	waits    atomic.Uint32
	explore  atomic.Uint32 // which wait tries the other way
	gap      atomic.Uint32 // waits between those that do
	spinCost atomic.Int64  // how long waits take that begin with a spin, in ns
	parkCost atomic.Int64  // how long those take that do not
	spinners atomic.Int32
}

const (
	// defaultSpin is the default of WithSpin: what a few messages of some MiB take
	// that come side by side, every train of which would cost a parked goroutine a
	// wake-up.
	defaultSpin = 5 * time.Millisecond
	// exploreSpin bounds the spins that try whether spinning pays: where it does not,
	// they take the processor from others.
	exploreSpin = time.Millisecond
	// minExplore is how many waits there are to one that tries the other way. While
	// most spin, the number doubles up to maxExplore with each that takes longer;
	// while most park, spinRun in a row try after twice as many, because they are
	// short only if the other side spins meanwhile, too.
	minExplore = 16
	maxExplore = 512
	spinRun    = 3
	// firstPark is what parking is taken to cost before it was tried.
	firstPark = 50 * time.Microsecond
	// steadyWait bounds what one wait adds to a cost: twice the cost and this count
	// most, so that the way of waiting does not change with a single long wait.
	steadyWait = 20 * time.Microsecond
	// yieldEvery is after how many polls that found nothing others may run.
	yieldEvery = 16
	// clockEvery is after how many polls the clock is looked at.
	clockEvery = 4
	// costShare is the share of the latest wait in spinCost and parkCost.
	costShare = 8
	// longWait, in multiples of the longest spin, is what longer waits count
	// as: they tell nothing.
	longWait = 4
)

// init sets how the transport is polled; no wait is going on.
func (p *progress) init(poll func() bool, spin time.Duration) {
	p.poll, p.max = poll, int64(spin)
	p.parkCost.Store(min(p.max, int64(firstPark)))
	p.explore.Store(minExplore)
	p.gap.Store(minExplore)
}

// begun is when the process started, about: reading the clock relative to it is
// cheaper than time.Now.
var begun = time.Now()

// clock returns nanoseconds of the monotonic clock, which are never 0.
func clock() int64 { return int64(time.Since(begun)) | 1 }

// waitStart is a wait that has begun.
type waitStart struct {
	at    int64 // by clock; 0 if there is nothing to choose
	spin  bool
	other bool // it is not the way that most waits take
}

// begin notes the begin of a wait and chooses whether to spin.
func (p *progress) begin() (s waitStart) {
	if p.poll == nil || p.max == 0 {
		return s
	}
	s.spin = p.spinCost.Load() < p.parkCost.Load()
	if n := p.waits.Add(1); int32(n-p.explore.Load()) >= 0 {
		if s.spin || int32(n-p.explore.Load()) >= spinRun-1 {
			p.explore.Store(n + p.gap.Load())
		}
		s.spin, s.other = !s.spin, true
	}
	s.at = clock()
	return s
}

// end notes the end of a wait.
func (p *progress) end(s waitStart) {
	if s.at == 0 {
		return
	}
	cost, rival := &p.parkCost, &p.spinCost
	if s.spin {
		cost, rival = rival, cost
	}
	// Waits at the same time may overwrite each other's share: no matter.
	old, took := cost.Load(), min(clock()-s.at, longWait*p.max)
	cost.Store(old + (min(took, 2*old+int64(steadyWait))-old)/costShare)
	if s.other {
		gap := uint32(minExplore)
		switch {
		case s.spin:
			gap = 2 * minExplore
		case took > rival.Load():
			gap = min(2*p.gap.Load(), maxExplore)
			p.explore.Store(p.waits.Load() + gap)
		}
		p.gap.Store(gap)
	}
}

// pollOnce transmits what is queued and makes one pass over the transport, if
// it can be polled.
func (e *engine) pollOnce() bool {
	e.pusher.waiting()
	return e.prog.poll != nil && e.prog.poll()
}

// spin polls until done or for the length of a spin, if s says so, and returns
// done().
func (p *progress) spin(s waitStart, done func() bool) bool {
	if !s.spin {
		return false
	}
	if int(p.spinners.Add(1)) > runtime.GOMAXPROCS(0) {
		p.spinners.Add(-1)
		return false
	}
	defer p.spinners.Add(-1)
	limit := p.max
	if s.other {
		limit = min(limit, int64(exploreSpin))
	}
	for i := 1; ; i++ {
		worked := p.poll()
		if done() {
			p.end(s)
			return true
		}
		if !worked && i%yieldEvery == 0 {
			runtime.Gosched()
		}
		if i%clockEvery == 0 && clock()-s.at > limit {
			return false
		}
	}
}
