package mpi

import (
	"context"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp"
)

// waiter parks one goroutine. Signals may be spurious: who waits looks again.
type waiter struct {
	ch   chan struct{}
	lead parker // instead of ch, if not nil
	pool *waiterPool

	found func() // called instead of signalling, if not nil
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
	switch {
	case w.found != nil:
		w.found()
	case w.lead != nil:
		w.lead.Wake()
	default:
		w.notify()
	}
}

// notify is signal for a waiter that is only a channel.
func (w *waiter) notify() {
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
// they park: a message that arrives within the spin costs no wake-up.
type progress struct {
	poll     func() bool // one pass over the transport; nil: cannot be polled
	choose   poll.Chooser
	spinning poll.Spinning // goroutines of the rank that spin
	loop     poll.Loop     // how they do
	hook     progressHook
	serving  poll.Chooser  // whether to poll for the next request to a window
	shared   *sharedMemory // nil: none
}

const (
	// defaultSpin is the default of WithSpin: what a few messages of some MiB take
	// that come side by side, every train of which would cost a parked goroutine a
	// wake-up.
	defaultSpin = 5 * time.Millisecond
	// crowdedSpin is that where ranks outnumber processors and all of them share
	// memory: a poll costs next to nothing then, and the processor is offered to the
	// others after each.
	crowdedSpin = time.Millisecond
	// yieldEvery is after how many polls that found nothing a spinning goroutine lets
	// others run.
	yieldEvery = 16
	// offerEvery is after how many polls of shared memory alone, at some nanoseconds, the
	// clock is read and, if they found nothing, other processes may have the processor.
	offerEvery = 256
	// spareEvery is yieldEvery for shared memory while a processor has no goroutine that
	// spins: others can run there, and to yield wakes a thread that looks for them.
	spareEvery = 4096
)

// init sets how the transport is polled; no wait is going on.
func (p *progress) init(pass func() bool, limit time.Duration) {
	p.poll = pass
	p.choose.Init(limit)
	p.loop = poll.Loop{Pass: p.pass, Now: clock, ClockEvery: poll.ClockEvery,
		YieldEvery: yieldEvery, YieldFull: yieldEvery, YieldIdle: true}
	if pass != nil {
		p.serving.Init(min(limit, sctp.DefaultBusyPoll))
	}
}

// spinAlways has all waits spin for up to limit, because all messages come through shared
// memory: a poll costs next to nothing then, and a wait that parks costs both sides more
// than any poll. If ranks outnumber processors, which is crowded, other processes may have
// the processor after each poll that found nothing. No wait is going on.
func (p *progress) spinAlways(limit time.Duration, crowded bool) {
	p.choose.Always(limit)
	l := &p.loop
	l.ClockEvery, l.YieldEvery = offerEvery, spareEvery
	l.Offer, l.OfferEvery = yieldProcessor, offerEvery
	if crowded {
		l.ClockEvery, l.OfferEvery = poll.ClockEvery, 1
	}
}

// begun is when the process started, about: reading the clock relative to it is
// cheaper than time.Now.
var begun = time.Now()

// clock returns nanoseconds of the monotonic clock.
func clock() int64 { return int64(time.Since(begun)) }

// begin notes the begin of a wait and chooses whether to spin.
func (p *progress) begin() (w poll.Wait) {
	if p.poll == nil {
		return w
	}
	if w, ok := p.choose.Start(); ok {
		return w
	}
	return p.choose.Begin(clock())
}

// end notes the end of a wait.
func (p *progress) end(w poll.Wait) {
	if w.Counts() {
		w.End(clock())
	}
}

// pollOnce transmits what is queued and makes one pass over the transport, if
// it can be polled.
func (e *engine) pollOnce() bool {
	e.coalescer.flushBeforeWait()
	p := &e.prog
	worked := p.poll != nil && p.poll()
	if p.shared != nil {
		p.shared.left()
	}
	return worked
}

// pass makes one pass over the transport, performs requests to windows, and reports
// whether there was anything.
func (p *progress) pass() bool {
	worked := p.poll()
	return p.hook.run() || worked
}

// exit ends the spin of a goroutine.
func (p *progress) exit() {
	p.spinning.Leave()
	p.hook.leave()
}

// spin polls until done reports true, the budget of w is used up or ctx is done, and
// reports whether done did. It performs requests to windows meanwhile. It returns at
// once if w has no budget or there is no processor for it.
func (p *progress) spin(ctx context.Context, w poll.Wait, done func() bool) bool {
	if w.Budget == 0 || !p.spinning.Enter() {
		return false
	}
	p.hook.enter()
	ok := p.loop.Spin(&w, done, func() bool { return ctx.Err() != nil })
	p.exit()
	switch {
	case p.shared == nil:
	case ok:
		p.shared.left()
	default:
		p.shared.parks()
	}
	return ok
}

// rest parks at w, until a signal, for a goroutine of the program. Meanwhile it may
// read the sockets, so it is the first to see a request to a window: it performs that, and
// polls for the next one if that comes soon. *gap is the wait for the next one, at first
// the zero Wait, and done reports whether the goroutine need not wait any more.
func (p *progress) rest(ctx context.Context, w *waiter, gap *poll.Wait, done func() bool) error {
	d := &p.hook
	if !d.used.Load() {
		return w.wait(ctx)
	}
	d.park(w)
	err := w.wait(ctx)
	d.enter()
	d.unpark(w)
	// What is left of it leave gives to others.
	for served := d.run(); served && err == nil && ctx.Err() == nil && !done(); {
		now := clock()
		gap.End(now)
		*gap = p.serving.Begin(now)
		n := d.runs.Load()
		served = p.spin(ctx, *gap, func() bool { return d.runs.Load() != n || done() }) && d.runs.Load() != n
	}
	d.leave()
	return err
}
