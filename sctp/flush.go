package sctp

import (
	"sync"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// train is the memory in which packets are built.
type train struct {
	mem  [udpio.MaxTrain + 29]byte
	tx   core.Transmit
	meta udpio.Meta
}

var trains = sync.Pool{New: func() any { return new(train) }}

// flush transmits what may be sent. One goroutine at a time does, for all: if
// one is at it already, it looks again before it leaves. No lock is held. The
// result is what is left to settle.
func (a *Association) flush() work {
	if a.flushing.Add(1) != 1 {
		return 0
	}
	a.t.flushes.Add(1)
	a.mu.Lock()
	return a.transmitAll(a.t.now())
}

// flushLocked is flush called with a.mu held, which it unlocks.
func (a *Association) flushLocked(now core.Time) work {
	if a.flushing.Add(1) != 1 {
		return a.unlock()
	}
	a.t.flushes.Add(1)
	return a.transmitAll(now)
}

// transmitAll is called with a.mu held, and unlocks it, by the one goroutine that
// transmits.
func (a *Association) transmitAll(now core.Time) (w work) {
	defer a.t.flushes.Add(-1)
	b := trains.Get().(*train)
	for {
		n := a.flushing.Load()
		w |= a.transmit(b, now)
		if a.flushing.CompareAndSwap(n, 0) {
			break
		}
		a.mu.Lock()
		now = a.t.now()
	}
	trains.Put(b)
	return w
}

// transmit sends until there is nothing to send, then sets the timer. It is called
// with a.mu held and unlocks it.
func (a *Association) transmit(b *train, now core.Time) (w work) {
	for {
		out, tx, ok := a.core.PollTransmit(now, b.mem[:0:udpio.MaxTrain], a.t.sockets().maxSegs)
		if !ok || tx.Last {
			a.arm(now)
		}
		w |= a.unlock()
		if ok {
			b.tx = tx
			a.t.send(out, b)
		}
		if !ok || tx.Last {
			return w
		}
		a.mu.Lock()
		now = a.t.now()
	}
}

// arm sets the timer, if it has to fire earlier than it will. Firing early is
// harmless and rarer than moving the timer with every packet. a.mu is held.
func (a *Association) arm(now core.Time) {
	next := a.core.NextTimeout()
	if d := a.ep.cfg.AutoClose; d > 0 && a.up && !a.dead {
		if at := a.idle + core.Time(d); next == 0 || at < next {
			next = at
		}
	}
	if a.dead {
		if a.timer != nil {
			a.timer.Stop()
		}
		return
	}
	if next == 0 || a.armed != 0 && a.armed <= next {
		return
	}
	a.armed = next
	d := time.Duration(max(next-now, 0))
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.onTimer)
	} else {
		a.timer.Reset(d)
	}
}

// onTimer runs the timers of the core.
func (a *Association) onTimer() {
	a.mu.Lock()
	a.armed = 0
	now := a.t.now()
	if next := a.core.NextTimeout(); next != 0 && next <= now {
		// What has come in time must not count as late because it was not read yet.
		a.mu.Unlock()
		a.t.drain()
		a.mu.Lock()
		now = a.t.now()
	}
	a.core.HandleTimeout(now)
	if d := a.ep.cfg.AutoClose; d > 0 && a.up && now-a.idle >= core.Time(d) {
		a.core.Shutdown(now)
		a.idle = now
	}
	a.settle(a.flushLocked(now))
}

// active notes that user data moved. a.mu is held.
func (a *Association) active() {
	if a.ep.cfg.AutoClose > 0 {
		a.idle = a.t.now()
	}
}
