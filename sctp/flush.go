package sctp

import (
	"sync"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/internal/udpio"
	"github.com/weftstack/weft/sctp/wire"
)

// minIOVec is the least part of a message that the kernel takes from where it is:
// for a short one it is faster to copy it among the headers.
const minIOVec = 4096

// batchOffset is where a train begins in its memory: with it the data of full packets of a
// path with an MTU of 1,500 bytes lies at multiples of 64 bytes, as do the lines of the
// cache, that of the first one too.
const batchOffset = 64 - wire.HeaderLen - wire.IDataHeaderLen

// train is the memory in which packets are built.
type batchBuf struct {
	mem  [batchOffset + udpio.MaxBatchBytes + 29]byte
	tx   core.Transmit
	meta udpio.Meta

	iovecs []slab.IOVec // parts of mem that are elsewhere
}

// space is where PollTransmit appends.
func (b *batchBuf) space() []byte {
	return b.mem[batchOffset : batchOffset : batchOffset+udpio.MaxBatchBytes]
}

var batchBufs = sync.Pool{New: func() any { return &batchBuf{iovecs: make([]slab.IOVec, 0, udpio.MaxIOVecs)} }}

// flush transmits what may be sent. One goroutine at a time does, for all: if
// one is at it already, it looks again before it leaves. No lock is held. The
// result is what is left to settle.
func (a *Association) flush() deferred {
	if !a.startFlush() {
		return 0
	}
	a.mu.Lock()
	return a.transmitAll(a.t.now())
}

// startFlush reports whether it is the caller who transmits. Whoever leaves it to
// another goroutine finds that one among those that Close waits for.
func (a *Association) startFlush() bool {
	a.t.flushes.Add(1)
	if a.flushing.Add(1) == 1 {
		return true
	}
	a.t.flushes.Add(-1)
	return false
}

// flushLocked is flush called with a.mu held, which it unlocks.
func (a *Association) flushLocked(now clock.Time) deferred {
	if !a.startFlush() {
		if a.core.Borrowing() {
			a.endBorrow()
		}
		return a.drainAndUnlock()
	}
	return a.transmitAll(now)
}

// transmitAll is called with a.mu held, and unlocks it, by the one goroutine that
// transmits.
func (a *Association) transmitAll(now clock.Time) (w deferred) {
	defer a.t.flushes.Add(-1)
	b := batchBufs.Get().(*batchBuf)
	for {
		n := a.flushing.Load()
		w |= a.transmit(b, now)
		if a.flushing.CompareAndSwap(n, 0) {
			break
		}
		a.mu.Lock()
		now = a.t.now()
	}
	batchBufs.Put(b)
	return w
}

// transmit sends until there is nothing to send, then sets the timer. It is called
// with a.mu held and unlocks it.
func (a *Association) transmit(b *batchBuf, now clock.Time) (w deferred) {
	long := false // much was sent: messages may be lent next time
	for {
		out, tx, ok := a.poll(b, now)
		last := !ok || tx.Last
		long = long || tx.Segs >= core.MinBorrowPackets
		if last {
			if a.core.Borrowing() || long {
				a.endBorrow()
			}
			a.arm()
		}
		a.kernelReads = len(b.iovecs) > 0 || tx.Retained
		w |= a.drainAndUnlock()
		if ok {
			b.tx = tx
			a.t.send(out, b)
		}
		if last && len(b.iovecs) == 0 && !tx.Retained {
			return w
		}
		a.mu.Lock()
		if len(b.iovecs) > 0 || tx.Retained {
			clear(b.iovecs)
			b.iovecs, a.kernelReads = b.iovecs[:0], false
			if a.dead {
				w |= deferredEvents // its end was kept back
			}
		}
		if last {
			return w | a.drainAndUnlock()
		}
		now = a.t.now()
	}
}

// poll takes packets from the core: in memory that it keeps if a message was lent, else in
// that of b. a.mu is held.
func (a *Association) poll(b *batchBuf, now clock.Time) (out []byte, tx core.Transmit, ok bool) {
	segs := a.t.sockets().maxSegs
	if a.core.Borrowing() && !a.core.BatchOpen() {
		if a.core.CanBorrow() {
			img := batchBufs.Get().(*batchBuf)
			var kept bool
			if out, tx, ok, kept = a.core.PollTransmitRetained(now, img.space(), segs, img); !kept {
				out = append(b.mem[:0], out...)
				batchBufs.Put(img)
			}
			return out, tx, ok
		}
		a.endBorrow()
	}
	return a.core.PollTransmitGather(now, b.space(), segs, &b.iovecs, minIOVec)
}

// minBorrow is the least message that is lent: a train with less may take as much memory.
const minBorrow = 32 << 10

// keep copies what was lent and is not in packets yet, before its caller wants it back, and
// notes whether the next long message may be lent. a.mu is held.
func (a *Association) endBorrow() {
	a.core.EndBorrow(duplicate)
	if can := a.core.CanBorrow(); can != a.canBorrow.Load() {
		a.canBorrow.Store(can)
	}
}

func duplicate(body []byte) ([]byte, core.Owner) {
	return copyMessage(body)
}

// Released implements core.Owner; the memory is recycled without a call to it.
func (b *batchBuf) Released(error) { batchBufs.Put(b) }

// arm moves the deadline of the association to when the core or AutoClose wants
// it to be woken. a.mu is held.
func (a *Association) arm() {
	if a.dead {
		return
	}
	next := a.core.NextTimeout()
	if d := a.autoClose; d > 0 && a.up {
		if at := a.idle + d; next == 0 || at < next {
			next = at
		}
	}
	if a.admitBy != 0 && (next == 0 || a.admitBy < next) {
		next = a.admitBy
	}
	if at := a.closeAt; at != 0 && (next == 0 || at < next) {
		next = at
	}
	if next == 0 {
		next = never
	}
	if a.deadline == nil {
		a.deadline = a.t.timers.slotFor(a)
	} else if a.armed == next {
		return
	}
	a.armed = next
	a.t.timers.set(a.deadline, next)
}

// onTimers runs the timers of the cores of associations whose deadline has passed.
func (t *Transport) onTimers(due []*Association) {
	// What has come in time must not count as late because it was not read yet.
	t.drain()
	for _, a := range due {
		w := a.onTimer()
		if len(due) == 1 {
			a.runCallbacks(w)
		} else if w != 0 {
			go a.runCallbacks(w) // an upcall that waits must not delay the others
		}
	}
}

// onTimer runs the timers of the core.
func (a *Association) onTimer() deferred {
	a.mu.Lock()
	a.armed = 0
	now := a.t.now()
	a.core.HandleTimeout(now)
	var k wakeList
	if d := a.autoClose; d > 0 && a.up && now-a.idle >= d {
		a.shutDown(now, &k)
		a.goOnClosing(now)
		a.idle = now
	}
	a.checkProbation(now)
	if a.closeAt != 0 && now >= a.closeAt {
		a.lookAtClosing(now)
	}
	w := a.flushLocked(now)
	k.wake()
	return w
}

// active notes that user data moved. a.mu is held.
func (a *Association) active() {
	if a.autoClose > 0 {
		a.idle = a.t.now()
	}
}
