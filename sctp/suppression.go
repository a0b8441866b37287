package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

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
	if n := p.polls.Add(1); (came || n%poll.ClockEvery == 0) && t.timers.slack.Load() != 0 {
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
	if t.suppression.on.Load() && !t.leader.taken.Load() && !t.spinning.Any() {
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
