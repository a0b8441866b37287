package sctp

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/spin"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Poll makes one pass over the sockets without blocking: it receives what is
// there, dispatches and answers it, and reports whether there was anything.
// Goroutines that wait for something an upcall will do call it in a loop
// before they park. It always reports false where sockets cannot be polled.
func (t *Transport) Poll() bool {
	t.suppression.replaceReader(t)
	return t.pass()
}

// CanPoll reports whether Poll reads sockets: not where all are the caller's, or the
// system has no call that does not wait.
func (t *Transport) CanPoll() bool { return t.sockets().canPoll }

// pass is Poll for those who do not go on with it, too.
func (t *Transport) pass() (came bool) {
	set := t.sockets()
	for _, s := range set.list {
		if s.conn.CanPoll() && s.poll(false) {
			came = true
		}
	}
	if set.canPoll {
		t.suppression.notePoll(t, came)
	}
	return came
}

// look is a pass over the sockets by one that will be back soon: the readers stay
// asleep. One goroutine at a time makes it, which bounds how deep those nest that
// upcalls make.
func (t *Transport) pollAsSender() {
	if !t.sockets().canPoll || !t.senderPolls.CompareAndSwap(false, true) {
		return
	}
	if !t.suppression.on.Load() {
		t.suppression.set(t, true)
	}
	t.pass()
	t.senderPolls.Store(false)
}

// readAll is one pass over the sockets that says nothing about whether polling
// goes on.
func (t *Transport) readAll() {
	for _, s := range t.sockets().list {
		if s.conn.CanPoll() {
			s.poll(true)
		}
	}
}

const (
	// pollsBeforeSuppression is how many polls have to follow one another at an average
	// distance of at most pollGap before the readers of the sockets are no longer
	// woken for datagrams: a wake-up that comes to nothing, or takes a datagram
	// to another thread, costs more than a poll.
	pollsBeforeSuppression = 16
	pollGap                = 50 * time.Microsecond
	// readsBeforeSuppression is how many reads in a row make a reader that lingers one of those
	// who poll: while it looks itself, each datagram would wake a thread. One that does
	// not linger, but finds something each time, is after busyReadsBeforeSuppression: it costs as
	// much as some reads to begin and to end.
	readsBeforeSuppression     = 2
	busyReadsBeforeSuppression = 16
	// minTick is how often it is looked whether polling goes on. It bounds how
	// long datagrams wait after it ended, together with the constants below.
	minTick = 200 * time.Microsecond
	// Polling that goes on is looked at more seldom, after a tickShare-th of the time
	// that it lasted, at most maxTick: each look wakes a thread, which those who poll
	// share the processors with. Its end shows at the second look after it.
	maxTick   = 4 * time.Millisecond
	tickShare = 16
)

// polling keeps the readers asleep while other goroutines, or the only one of them, poll
// the sockets.
type suppression struct {
	polls       atomic.Uint32
	recent      atomic.Uint32 // calls since mark
	mark        atomic.Int64  // a clock.Time
	on          atomic.Bool   // the readers are not woken
	readerPolls atomic.Bool   // as the reader lingers: see take

	mu       sync.Mutex
	seen     uint32        // calls at the last tick; guarded by mu
	timer    *time.Timer   // guarded by mu
	since    clock.Time    // since when polling goes on; guarded by mu
	interval time.Duration // from one tick to the next; guarded by mu. If it is more than minTick the timers are lax
	closed   bool          // the transport was closed; guarded by mu
}

// note takes in one call of Poll, and whether anything came.
func (p *suppression) notePoll(t *Transport, came bool) {
	if n := p.polls.Add(1); (came || n%clockEvery == 0) && t.timers.slack.Load() != 0 {
		t.timers.poll(t.now())
	}
	if !p.on.Load() && p.frequent(t) {
		p.set(t, true)
	}
}

// often takes in one call of Poll, and reports whether they follow one another.
func (p *suppression) frequent(t *Transport) bool {
	if p.recent.Add(1) < pollsBeforeSuppression {
		return false
	}
	p.recent.Store(0)
	now := int64(t.now())
	return now-p.mark.Swap(now) <= pollsBeforeSuppression*int64(pollGap)
}

func (p *suppression) set(t *Transport, on bool) {
	p.mu.Lock()
	// A leader has busy before it gets here, and wants the tick.
	changed := p.on.Load() != on && !(on && p.closed) && (on || !t.leader.taken.Load())
	if changed {
		p.apply(t, on)
	}
	p.mu.Unlock()
	if changed && !on {
		t.pass() // what came before the readers were told to look again
	}
}

// take makes the only reader, which lingers, one of those who poll, until reader is
// false: then others do. It reports whether it is; with several sockets each reader is
// on its own.
func (p *suppression) startReader(t *Transport) bool {
	if p.on.Load() || len(t.sockets().list) != 1 || !p.readerPolls.CompareAndSwap(false, true) {
		return false
	}
	p.set(t, true)
	return true
}

// give ends what take began, for the reader that is about to sleep.
func (p *suppression) stopReader(t *Transport) {
	if p.readerPolls.CompareAndSwap(true, false) {
		t.resumeReaders()
	}
}

// relieve is for one who polls: if polls follow one another the reader need not.
func (p *suppression) replaceReader(t *Transport) {
	if p.readerPolls.Load() && p.frequent(t) {
		p.readerPolls.Store(false)
	}
}

// change is called with mu held.
func (p *suppression) apply(t *Transport, on bool) {
	p.recent.Store(0)
	p.on.Store(on)
	done := true
	for _, s := range t.sockets().list {
		done = s.conn.Polled(on) && done
	}
	switch {
	case !on && !done: // the next tick tries again, after it has read
		p.on.Store(true)
		p.timer.Reset(minTick)
	case !on:
		p.timer.Stop()
	case p.timer == nil:
		p.timer = time.AfterFunc(minTick, func() { p.tick(t) })
	default:
		p.timer.Reset(minTick)
	}
	p.resetTicks(t)
}

// begin makes the tick that comes the first one. mu is held.
func (p *suppression) resetTicks(t *Transport) {
	p.seen, p.since, p.interval = p.polls.Load(), t.now(), minTick
	t.timers.setSlack(0)
}

// hurry has ticks come as often as in the beginning again.
func (p *suppression) restartTicks(t *Transport) {
	if t.timers.slack.Load() == 0 {
		return
	}
	p.mu.Lock()
	if p.interval > minTick && !p.closed {
		p.resetTicks(t)
		p.timer.Reset(minTick)
	}
	p.mu.Unlock()
}

// next is called by a tick, with mu held, when the sockets were polled n times since
// the one before. The next one comes after p.wait.
func (p *suppression) schedule(t *Transport, n uint32) {
	if t.leader.taken.Load() || time.Duration(n)*minTick < p.interval {
		p.resetTicks(t)
		return
	}
	p.seen += n
	lasted := time.Duration(t.now() - p.since)
	p.interval = min(max(lasted/tickShare, minTick), maxTick)
	if p.interval > minTick {
		t.timers.setSlack(clock.Time(p.interval))
	}
}

// tick lets the readers be woken again if nobody polled since the last one.
func (p *suppression) tick(t *Transport) {
	p.mu.Lock()
	if !p.on.Load() || p.closed {
		p.mu.Unlock()
		return
	}
	n := p.polls.Load()
	t.leader.tick(n == p.seen)
	if n != p.seen {
		p.schedule(t, n-p.seen)
		p.timer.Reset(p.interval)
		for _, s := range t.sockets().list {
			s.conn.Unwatch() // it goes on
		}
		p.mu.Unlock()
		return
	}
	p.apply(t, false)
	p.mu.Unlock()
	t.pass()
}

// resumeReaders is called before the caller parks: a reader has to take over,
// unless somebody leads.
func (t *Transport) resumeReaders() {
	if t.suppression.on.Load() && !t.leader.taken.Load() && t.pollers.Load() == 0 {
		t.suppression.set(t, false)
	}
}

// stop ends it with the transport.
func (p *suppression) stop(t *Transport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	t.timers.setSlack(0)
}

// DefaultBusyPoll is the default of TransportConfig.BusyPoll: about what it takes
// to wake a goroutine up on another processor.
const DefaultBusyPoll = 50 * time.Microsecond

// SetBusyRead bounds how long the goroutines that read the sockets poll for more
// datagrams before they sleep, which is TransportConfig.BusyPoll if it is not called;
// if limit is not positive they do not poll. They do where datagrams come sooner than
// they wake up for them, as those do that nobody waits for: of a peer that reads memory
// here, or that an upcall answers. It may be called at any time.
func (t *Transport) SetBusyRead(limit time.Duration) {
	c := new(spin.Chooser)
	c.Init(limit)
	t.serving.Store(c)
}

// A Wait is a wait for something that an upcall will do, which begins with polling
// where that makes waits shorter.
type Wait struct {
	t *Transport
	w spin.Wait
}

// BeginWait notes the begin of a wait.
func (t *Transport) BeginWait() (w Wait) {
	w.t = t
	if t.sockets().canPoll {
		var ok bool
		if w.w, ok = t.spinning.Start(); !ok {
			w.w = t.spinning.Begin(int64(t.now()))
		}
	}
	return w
}

// End notes that what was waited for is there. A wait that ends otherwise tells
// nothing, and is just left.
func (w Wait) End() {
	if w.w.Counts() {
		w.w.End(int64(w.t.now()))
	}
}

// Poll makes the calling goroutine read the sockets itself until ready reports
// true, or the time is up that TransportConfig.BusyPoll allows, which is more while
// datagrams come: ready should tell of a context that is done, too. It returns at once
// where polling is off or does not pay, or enough goroutines do it already. It
// reports whether ready did. A goroutine calls it once before it parks.
func (w Wait) Poll(ready func() bool) bool {
	ok := w.poll(ready)
	if !ok && w.w.Budget > 0 {
		w.t.resumeReaders()
	}
	return ok
}

// poll is Poll for a caller that wakes the readers itself before it parks.
func (w Wait) poll(ready func() bool) bool {
	t := w.t
	if w.w.Budget == 0 || !t.startSpin() {
		return false
	}
	defer t.endSpin()
	for i := 0; ; i++ {
		came := t.spinOnce(i)
		if ready() {
			return true
		}
		if (came || i%clockEvery == 0) && w.over(came) {
			return false
		}
	}
}

// startSpin reports whether the caller may poll; after a positive answer it must
// call endSpin.
func (t *Transport) startSpin() bool {
	t.pollers.Add(1)
	if !t.enterSpin() {
		t.pollers.Add(-1)
		return false
	}
	return true
}

// enterSpin counts a goroutine that spins. It reports false if there is no processor
// for it.
func (t *Transport) enterSpin() bool {
	if spinners.Add(1) > t.procs.Load() {
		t.procs.Store(int32(runtime.GOMAXPROCS(0))) // for the next one
		spinners.Add(-1)
		return false
	}
	return true
}

// endSpin is called by who stops polling. If it is going to park it calls
// resumeReaders then.
func (t *Transport) endSpin() {
	spinners.Add(-1)
	t.pollers.Add(-1)
}

// linger is called by a goroutine that reads the sockets when it has read something,
// which gap was the wait for. It looks for more until nothing comes for some time, where
// that is shorter than to wake up, or over, and returns the wait for what comes next.
// began is when it read something. look is told whether the caller spins, or just has
// another look.
func (t *Transport) pollForMore(gap spin.Wait, began clock.Time, look func(spins bool) (came, over bool)) spin.Wait {
	choose := t.serving.Load()
	if choose.Max() <= 0 {
		return spin.Wait{}
	}
	for {
		now := int64(t.now())
		gap.End(now)
		gap = choose.Begin(now)
		var came, over bool
		if gap.Budget == 0 || !t.enterSpin() {
			if clock.Time(now)-began < longRead {
				return gap
			}
			began = clock.Time(now)
			if came, over = look(false); over {
				return spin.Wait{}
			} else if !came {
				return gap
			}
			continue
		}
		for i := 0; ; i++ {
			if i%yieldBusy == 0 && spinners.Load() >= t.procs.Load() {
				runtime.Gosched()
			} else {
				t.others.yield(clock.Time(now))
			}
			if came, over = look(true); came || over {
				break
			}
			if i%clockEvery == 0 {
				if now = int64(t.now()); gap.Over(now) {
					break
				}
			}
		}
		spinners.Add(-1)
		if over {
			return spin.Wait{}
		}
		if !came {
			return gap
		}
	}
}

// spinners counts the goroutines of the process that spin: each takes a
// processor.
var spinners atomic.Int32

// yieldEvery is after how many polls a spinning goroutine lets others run, and
// yieldBusy if each processor has one that spins. With a processor free it is no
// more than a precaution, and wakes another thread for nothing: see yielder.
const yieldEvery, yieldBusy = 64, 8

// longRead is how long it takes to handle what was read for more to be there at once, so
// that a reader need not linger to be one of those who poll.
const longRead = clock.Time(10 * time.Microsecond)

// clockEvery is after how many polls a spinning goroutine looks at the clock.
const clockEvery = 4

// over reports whether the time of a spin is up. What came, if not all that is waited
// for, gives it more.
func (w *Wait) over(came bool) bool {
	now := int64(w.t.now())
	if came {
		w.w.Renew(now)
	}
	return w.w.Over(now)
}

// spinOnce is one turn of a goroutine that spins, the ith. It reports whether anything
// came.
func (t *Transport) spinOnce(i int) bool {
	came := t.Poll()
	if i%yieldBusy == yieldBusy-1 && (i%yieldEvery == yieldEvery-1 || spinners.Load() >= t.procs.Load()) {
		runtime.Gosched()
	}
	return came
}
