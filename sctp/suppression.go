package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

const (
	// pollsBeforeSuppression is how many polls in a row, at most pollGap apart on average,
	// turn suppression on. Turning it on and off takes a system call for each socket, as
	// much as a few polls.
	pollsBeforeSuppression = 16
	pollGap                = 50 * time.Microsecond
	// readsBeforeSuppression is how many reads in a row turn it on for a reader that spins:
	// each datagram would wake a thread although the reader looks itself.
	// busyReadsBeforeSuppression is that for a reader that does not spin but finds
	// datagrams each time: it sleeps sooner, so suppression pays later.
	readsBeforeSuppression     = 2
	busyReadsBeforeSuppression = 16
	// minTick is how often the timer checks whether goroutines still poll, 200 µs: if they
	// have stopped without a word, because they compute, datagrams wait for two ticks.
	minTick = 200 * time.Microsecond
	// Where polling lasts, the interval between ticks grows to a tickShare-th of the time
	// that it has lasted, at most maxTick: each tick wakes a thread, which competes with the
	// polling goroutines for the processors. 4 ms bound the delay of a datagram after it.
	maxTick   = 4 * time.Millisecond
	tickShare = 16
)

// suppression keeps the readers of the sockets asleep while goroutines poll the sockets
// themselves, as NAPI suppresses interrupts while the kernel polls a network card: a datagram
// that wakes a reader costs more than a poll, and may be handled on another thread for
// nothing. A timer checks whether polling goes on, and resumes the readers if it does not.
type suppression struct {
	polls       atomic.Uint32 // passes over the sockets
	recent      atomic.Uint32 // passes since mark
	mark        atomic.Int64  // a clock.Time: when recent was 0
	on          atomic.Bool   // the readers are not woken
	readerPolls atomic.Bool   // it is on for the only reader, which spins; see startReader

	mu       sync.Mutex
	seen     uint32        // polls at the last tick; guarded by mu
	timer    *time.Timer   // guarded by mu
	since    clock.Time    // when polling began; guarded by mu
	interval time.Duration // between ticks; guarded by mu. Above minTick the timer queue has slack
	shortest time.Duration // the least interval, if above minTick; guarded by mu
	prompt   atomic.Bool   // the first poll turns it on, because shortest is above minTick
	closed   bool          // the transport was closed; guarded by mu
}

// notePoll counts a pass over the sockets, which found something or not. While the timer
// queue has slack, it runs the timers that are due.
func (p *suppression) notePoll(t *Transport, came bool) {
	if n := p.polls.Add(1); (came || n%poll.ClockEvery == 0) && t.timers.Slack() != 0 {
		t.timers.Poll(t.now())
	}
	if !p.on.Load() && p.frequent(t) {
		p.set(t, true)
	}
}

// frequent counts a pass, and reports whether passes are frequent enough for suppression.
func (p *suppression) frequent(t *Transport) bool {
	if p.recent.Add(1) < pollsBeforeSuppression {
		return false
	}
	p.recent.Store(0)
	now := int64(t.now())
	return now-p.mark.Swap(now) <= pollsBeforeSuppression*int64(pollGap)
}

// set turns suppression on or off, unless it is so already or must stay as it is: on while a
// goroutine leads, off after the end of the transport.
func (p *suppression) set(t *Transport, on bool) {
	p.mu.Lock()
	// A leader needs the tick, by which it learns that its context is done. It sets taken
	// before it calls set.
	changed := p.on.Load() != on && !(on && p.closed) && (on || !t.leader.taken.Load())
	if changed {
		p.apply(t, on)
	}
	p.mu.Unlock()
	if changed && !on {
		t.pass() // datagrams that came before the readers could be woken
	}
}

// startReader turns suppression on for a reader that goes on polling, until stopReader, or
// until another goroutine polls and replaceReader makes readerPolls false. It reports
// false, and does nothing, with several sockets: each has a reader, and only a goroutine that
// polls all of them may suppress wake-ups.
func (p *suppression) startReader(t *Transport) bool {
	if p.on.Load() || len(t.sockets().list) != 1 || !p.readerPolls.CompareAndSwap(false, true) {
		return false
	}
	p.set(t, true)
	return true
}

// stopReader is called after startReader by the reader when it is about to sleep.
func (p *suppression) stopReader(t *Transport) {
	if p.readerPolls.CompareAndSwap(true, false) {
		t.resumeReaders()
	}
}

// replaceReader is called by a goroutine that polls: if it does so often enough, the
// reader stops.
func (p *suppression) replaceReader(t *Transport) {
	if p.readerPolls.Load() && p.frequent(t) {
		p.readerPolls.Store(false)
	}
}

// apply turns suppression on or off in the sockets, and starts or stops the timer. mu is
// held.
func (p *suppression) apply(t *Transport, on bool) {
	p.recent.Store(0)
	p.on.Store(on)
	done := true
	for _, s := range t.sockets().list {
		done = s.conn.Polled(on) && done
	}
	p.resetTicks(t)
	switch {
	case !on && !done: // a socket refused: the next tick reads, and tries again
		p.on.Store(true)
		p.timer.Reset(minTick)
	case !on:
		p.timer.Stop()
	case p.timer == nil:
		p.timer = time.AfterFunc(p.interval, func() { p.tick(t) })
	default:
		p.timer.Reset(p.interval)
	}
}

// resetTicks makes the interval the shortest one again. mu is held.
func (p *suppression) resetTicks(t *Transport) {
	p.seen, p.since, p.interval = p.polls.Load(), t.now(), max(p.shortest, minTick)
	t.timers.SetSlack(0)
}

// setShortest sets the least interval between ticks.
func (p *suppression) setShortest(d time.Duration) {
	p.mu.Lock()
	p.shortest = d
	p.prompt.Store(d > minTick)
	p.mu.Unlock()
}

// begin is called by a goroutine that polls, before its pass. Where the interval between ticks is long the
// first poll turns suppression on, unless goroutines are parked that want what comes soon.
func (p *suppression) begin(t *Transport) {
	p.replaceReader(t)
	if p.prompt.Load() && !p.on.Load() && t.leader.parked.Load() == 0 && t.sockets().canPoll {
		p.set(t, true)
	}
}

// restartTicks is resetTicks for a caller without mu, and restarts the timer.
func (p *suppression) restartTicks(t *Transport) {
	if t.timers.Slack() == 0 {
		return
	}
	p.mu.Lock()
	if p.interval > max(p.shortest, minTick) && !p.closed {
		p.resetTicks(t)
		p.timer.Reset(p.interval)
	}
	p.mu.Unlock()
}

// schedule sets the interval to the next tick when the sockets were polled n times since
// the last one. mu is held.
func (p *suppression) schedule(t *Transport, n uint32) {
	if t.leader.taken.Load() || time.Duration(n)*minTick < p.interval {
		p.resetTicks(t)
		return
	}
	p.seen += n
	lasted := time.Duration(t.now() - p.since)
	p.interval = max(min(max(lasted/tickShare, minTick), maxTick), p.shortest)
	if p.interval > minTick {
		t.timers.SetSlack(clock.Time(p.interval))
	}
}

// tick turns suppression off if no goroutine has polled since the last tick.
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
			s.conn.Unwatch() // polling lasts
		}
		p.mu.Unlock()
		return
	}
	p.apply(t, false)
	p.mu.Unlock()
	t.pass()
}

// resumeReaders turns suppression off, unless a goroutine leads or spins. A goroutine
// that polled calls it before it parks.
func (t *Transport) resumeReaders() {
	if t.suppression.on.Load() && !t.leader.taken.Load() && !t.spinning.Any() {
		t.suppression.set(t, false)
	}
}

// stop ends suppression for good when the transport is closed.
func (p *suppression) stop(t *Transport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	t.timers.SetSlack(0)
}
