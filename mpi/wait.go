package mpi

import (
	"context"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/sctp"
)

// waiter parks one goroutine. Signals may be spurious, so the goroutine checks its condition again.
type waiter struct {
	ch   chan struct{}
	lead transport.Parker // used instead of ch, if not nil
	pool *waiterPool

	found func() // called instead of signalling, if not nil
}

// waiterPool keeps waiters for reuse. Each engine has its own, so that channels do not leave a
// testing/synctest bubble.
type waiterPool struct {
	pool sync.Pool
	make func() transport.Parker // may be nil
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

// recycle returns w to its pool. Late signals only cause a spurious wake-up.
func (w *waiter) recycle() { w.pool.pool.Put(w) }

// signal wakes the goroutine that waits, or the next one to wait. It never blocks.
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

// progress is the progress engine for waits: before a waiting goroutine parks, it polls the
// transport (adaptive spinning), so a message that arrives during the spin costs no wake-up.
type progress struct {
	poll     func() bool // makes one pass over the transport; nil if it cannot be polled
	choose   poll.Chooser
	spinning poll.Spinning // goroutines of the rank that spin
	loop     poll.Loop     // the loop that they run
	hook     progressHook
	serving  poll.Chooser // chooses whether to poll for the next request to a window
	observer parkObserver // nil: none
}

// parkObserver is told whether goroutines poll: a transport without sockets, as shared memory is,
// sends a doorbell to ranks that do not.
type parkObserver interface {
	// Left is called by a goroutine that ends to poll without parking.
	Left()
	// Parks is called by a goroutine that is about to park after it has polled.
	Parks()
}

const (
	// defaultSpin is the default of WithSpin. It covers a few messages of several MiB that arrive
	// side by side: each of their receive batches would otherwise cost a parked goroutine a
	// wake-up.
	defaultSpin = 5 * time.Millisecond
	// crowdedSpin is the default of WithSpin if there are more ranks than processors and all share
	// memory: the spin yields the processor to other processes after each poll.
	crowdedSpin = time.Millisecond
	// yieldEvery is the number of polls without a result after which a spinning goroutine yields.
	yieldEvery = 16
	// offerEvery is the number of polls of shared memory after which the loop reads the clock and,
	// if the polls found nothing, yields the processor to other processes. A poll of memory is much
	// cheaper than either.
	offerEvery = 256
	// spareEvery is yieldEvery for shared memory while a processor has no spinning goroutine:
	// others can run there, and a yield would wake a thread to look for work.
	spareEvery = 4096
)

// init sets how the transport is polled. No goroutine waits yet.
func (p *progress) init(pass func() bool, limit time.Duration) {
	p.poll = pass
	p.choose.Init(limit)
	p.loop = poll.Loop{Pass: p.pass, Now: clock, ClockEvery: poll.ClockEvery,
		YieldEvery: yieldEvery, YieldFull: yieldEvery, YieldIdle: true}
	if pass != nil {
		p.serving.Init(min(limit, sctp.DefaultBusyPoll))
	}
}

// spinAlways makes all waits spin for up to limit, for a job that exchanges all messages through
// shared memory: there a poll is cheap, and parking costs both sides more than any poll. crowded
// says that there are more ranks than processors: then the processor is yielded to other processes
// after each poll that found nothing. No goroutine waits yet.
func (p *progress) spinAlways(limit time.Duration, crowded bool) {
	p.choose.Always(limit)
	l := &p.loop
	l.ClockEvery, l.YieldEvery = offerEvery, spareEvery
	l.Offer, l.OfferEvery = yieldProcessor, offerEvery
	if crowded {
		l.ClockEvery, l.OfferEvery = poll.ClockEvery, 1
	}
}

// begun is about when the process started: reading the clock relative to it is cheaper than
// time.Now.
var begun = time.Now()

// clock returns nanoseconds of the monotonic clock.
func clock() int64 { return int64(time.Since(begun)) }

// begin starts a wait and chooses whether to spin.
func (p *progress) begin() (w poll.Wait) {
	if p.poll == nil {
		return w
	}
	if w, ok := p.choose.Start(); ok {
		return w
	}
	return p.choose.Begin(clock())
}

// end ends a wait, which the chooser learns from.
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
	if p.observer != nil {
		p.observer.Left()
	}
	return worked
}

// pass makes one pass over the transport, runs the progress hook, and reports whether either had
// work.
func (p *progress) pass() bool {
	worked := p.poll()
	return p.hook.run() || worked
}

// exit ends the spin of a goroutine.
func (p *progress) exit() {
	p.spinning.Leave()
	p.hook.leave()
}

// spin polls until done reports true, the budget of w is used up or ctx ends, and reports whether
// done did. It runs the progress hook meanwhile. It returns at once if w has no budget or no
// processor is free for it.
func (p *progress) spin(ctx context.Context, w poll.Wait, done func() bool) bool {
	if w.Budget == 0 || !p.spinning.Enter() {
		return false
	}
	p.hook.enter()
	ok := p.loop.Spin(&w, done, func() bool { return ctx.Err() != nil })
	p.exit()
	switch {
	case p.observer == nil:
	case ok:
		p.observer.Left()
	default:
		p.observer.Parks()
	}
	return ok
}

// rest parks a goroutine of the program at w until a signal. While parked it may read the sockets
// (Leader/Followers) and see requests to windows first: it runs the progress hook, and polls for
// the next request if that is expected soon. *gap is the wait for the next request, at first the
// zero Wait. done reports whether the goroutine need not wait any more.
func (p *progress) rest(ctx context.Context, w *waiter, gap *poll.Wait, done func() bool) error {
	d := &p.hook
	if !d.used.Load() {
		return w.wait(ctx)
	}
	d.park(w)
	err := w.wait(ctx)
	d.enter()
	d.unpark(w)
	// leave wakes another goroutine for requests that are left.
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
