package p2p

import (
	"context"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/sctp"
)

// Waiter parks one goroutine. Signals may be spurious, so the goroutine checks its condition again.
type Waiter struct {
	woken chan struct{}
	lead  transport.Parker // used instead of ch, if not nil
	pool  *WaiterPool

	Found func() // called instead of signalling, if not nil
}

// WaiterPool keeps waiters for reuse. Each engine has its own, so that channels do not leave a
// testing/synctest bubble.
type WaiterPool struct {
	pool sync.Pool
	Make func() transport.Parker // may be nil
}

// Get returns a waiter, which goes back by Recycle.
func (p *WaiterPool) Get() *Waiter {
	if w, ok := p.pool.Get().(*Waiter); ok {
		return w
	}
	w := &Waiter{pool: p}
	if p.Make != nil {
		w.lead = p.Make()
	} else {
		w.woken = make(chan struct{}, 1)
	}
	return w
}

// Recycle returns w to its pool. Late signals only cause a spurious wake-up.
func (w *Waiter) Recycle() { w.pool.pool.Put(w) }

// Signal wakes the goroutine that waits, or the next one to wait. It never blocks.
func (w *Waiter) signal() {
	switch {
	case w.Found != nil:
		w.Found()
	case w.lead != nil:
		w.lead.Wake()
	default:
		w.notify()
	}
}

// notify is signal for a waiter that is only a channel.
func (w *Waiter) notify() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Wait parks until a signal or the end of ctx.
func (w *Waiter) wait(ctx context.Context) error {
	done := ctx.Done()
	if w.lead != nil {
		if !w.lead.Wait(done) {
			return ctx.Err()
		}
		return nil
	}
	if done == nil {
		<-w.woken
		return nil
	}
	select {
	case <-w.woken:
		return nil
	case <-done:
		return ctx.Err()
	}
}

// Progress is the progress engine for waits: before a waiting goroutine parks, it polls the
// transport (adaptive spinning), so a message that arrives during the spin costs no wake-up.
type Progress struct {
	poll     func() bool // makes one pass over the transport; nil if it cannot be polled
	BacksOff bool        // each poll is a system call: see idlePoll
	idle     idlePoll
	crowded  bool // ranks outnumber processors: see SpinAlways
	Choose   poll.Chooser
	Spinning poll.Spinning // goroutines of the rank that spin
	loop     poll.Loop     // the loop that they run
	Hook     Hook
	serving  poll.Chooser // chooses whether to poll for the next request to a window
	Observer ParkObserver // nil: none
}

// ParkObserver is told whether goroutines poll: a transport without sockets, as shared memory is,
// sends a doorbell to ranks that do not.
type ParkObserver interface {
	// Left is called by a goroutine that ends to poll without parking.
	Left()
	// Parks is called by a goroutine that is about to park after it has polled.
	Parks()
}

const (
	// DefaultSpin is the default of WithSpin. It covers a few messages of several MiB that arrive
	// side by side: each of their receive batches would otherwise cost a parked goroutine a
	// wake-up.
	DefaultSpin = 5 * time.Millisecond
	// CrowdedSpin is the default of WithSpin if there are more ranks than processors: the spin yields
	// the processor to other processes after each poll, and one that computes may keep it for 3 ms.
	CrowdedSpin = 5 * time.Millisecond
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

// Init sets how the transport is polled. No goroutine waits yet.
func (p *Progress) Init(pass func() bool, limit time.Duration) {
	p.poll = pass
	p.Choose.Init(limit)
	p.loop = poll.Loop{Pass: p.pass, Now: Clock, ClockEvery: poll.ClockEvery,
		YieldEvery: yieldEvery, YieldFull: yieldEvery, YieldIdle: true}
	if pass != nil {
		p.serving.Init(min(limit, sctp.DefaultBusyPoll))
	}
}

// SpinAlways makes all waits spin for up to limit. It is for a job that exchanges all messages through
// shared memory: there a poll is cheap, and parking costs both sides more than any poll. And crowded
// says that there are more ranks than processors: then the processor is yielded to other processes
// after each poll that found nothing, and parking would wake threads that take it from a rank that
// computes. No goroutine waits yet.
func (p *Progress) SpinAlways(limit time.Duration, crowded bool) {
	p.Choose.Always(limit)
	p.crowded = crowded
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

// Clock returns nanoseconds of the monotonic clock.
func Clock() int64 { return int64(time.Since(begun)) }

// Begin starts a wait and chooses whether to spin.
func (p *Progress) Begin() (w poll.Wait) {
	if p.poll == nil {
		return w
	}
	if w, ok := p.Choose.Start(); ok {
		return w
	}
	return p.Choose.Begin(Clock())
}

// End ends a wait, which the chooser learns from.
func (p *Progress) End(w poll.Wait) {
	if w.Counts() {
		w.End(Clock())
	}
}

// PollOnce transmits what is queued, makes one pass over the transport, if
// it can be polled, and runs the progress hook. Calls in a row that find nothing make fewer passes: see idlePoll.
func (e *Engine) PollOnce() bool {
	e.Coalescer.FlushBeforeWait()
	p := &e.Progress
	if p.poll == nil || p.BacksOff && !p.idle.due() {
		return false
	}
	hooked := p.Hook.Used.Load()
	if hooked {
		p.Hook.enter()
	}
	worked := p.poll()
	if worked {
		p.idle.found()
	}
	if hooked {
		worked = p.Hook.run() || worked
		p.Hook.leave()
	}
	if p.Observer != nil {
		p.Observer.Left()
	}
	return worked
}

// pass makes one pass over the transport, runs the progress hook, and reports whether either had
// work.
func (p *Progress) pass() bool {
	worked := p.poll()
	return p.Hook.run() || worked
}

// exit ends the spin of a goroutine.
func (p *Progress) exit() {
	p.Spinning.Leave()
	p.Hook.leave()
}

// Spin polls until done reports true, the budget of w is used up or ctx ends, and reports whether
// done did. It runs the progress hook meanwhile. It returns at once if w has no budget or no
// processor is free for it.
func (p *Progress) Spin(ctx context.Context, w poll.Wait, done func() bool) bool {
	if w.Budget == 0 || !p.Spinning.Enter() {
		return false
	}
	p.Hook.enter()
	ok := p.loop.Spin(&w, done, func() bool { return ctx.Err() != nil })
	p.exit()
	switch {
	case p.Observer == nil:
	case ok:
		p.Observer.Left()
	default:
		p.Observer.Parks()
	}
	return ok
}

// Rest parks a goroutine of the program at w until a signal. While parked it may read the sockets
// (Leader/Followers) and see requests to windows first: it runs the progress hook, and polls for
// the next request if that is expected soon. *gap is the wait for the next request, at first the
// zero Wait. done reports whether the goroutine need not wait any more.
func (p *Progress) Rest(ctx context.Context, w *Waiter, gap *poll.Wait, done func() bool) error {
	d := &p.Hook
	if !d.Used.Load() {
		return w.wait(ctx)
	}
	d.park(w)
	err := w.wait(ctx)
	d.enter()
	d.unpark(w)
	// leave wakes another goroutine for requests that are left.
	for served := d.run(); served && err == nil && ctx.Err() == nil && !done(); {
		now := Clock()
		gap.End(now)
		*gap = p.serving.Begin(now)
		n := d.Runs.Load()
		served = p.Spin(ctx, *gap, func() bool { return d.Runs.Load() != n || done() }) && d.Runs.Load() != n
	}
	d.leave()
	return err
}
