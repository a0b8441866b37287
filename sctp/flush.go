package sctp

import (
	"sync"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/internal/timerqueue"
	"github.com/weftstack/weft/sctp/internal/udpio"
	"github.com/weftstack/weft/sctp/wire"
)

// minIOVec is the least part of a message that is sent by scatter-gather I/O, 4 KiB: the
// kernel's work for each part exceeds the copy of a shorter one among the headers.
const minIOVec = 4096

// batchOffset is where a GSO batch begins in its memory: at an MTU of 1,500 bytes it aligns
// the user data of full packets, the first one included, to cache lines of 64 bytes.
const batchOffset = 64 - wire.HeaderLen - wire.IDataHeaderLen

// batchBuf is the memory in which the packets of a GSO batch are built.
type batchBuf struct {
	mem  [batchOffset + udpio.MaxBatchBytes + 29]byte
	tx   core.Transmit
	meta udpio.Meta

	iovecs []slab.IOVec // the parts of the batch that are sent from where they are
}

// space is the empty slice to which PollTransmit appends packets.
func (b *batchBuf) space() []byte {
	return b.mem[batchOffset : batchOffset : batchOffset+udpio.MaxBatchBytes]
}

var batchBufs = sync.Pool{New: func() any { return &batchBuf{iovecs: make([]slab.IOVec, 0, udpio.MaxIOVecs)} }}

// flush transmits what may be sent now. Transmission is combined: one goroutine at a time
// transmits for an association, and looks again before it leaves whether others have called
// flush meanwhile. No lock is held. The result goes to runCallbacks.
func (a *Association) flush() deferred {
	if !a.startFlush() {
		return 0
	}
	a.mu.Lock()
	return a.transmitAll(a.t.now())
}

// startFlush reports whether the caller is the goroutine that transmits. If not, the one
// that does looks again, and is counted in Transport.flushes, which Close waits for.
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
	long := false // much was sent: the next long message may be borrowed
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
				w |= deferredEvents // the callbacks of its end waited for this
			}
		}
		if last {
			return w | a.drainAndUnlock()
		}
		now = a.t.now()
	}
}

// poll takes packets from the core: in memory that the core retains for retransmissions if a
// send buffer is borrowed, otherwise in that of b. a.mu is held.
func (a *Association) poll(b *batchBuf, now clock.Time) (out []byte, tx core.Transmit, ok bool) {
	if a.t.full() {
		return nil, tx, false
	}
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

// minBorrow is the shortest message that is sent from a borrowed buffer, 32 KiB: packets of a
// shorter one may hold as much memory as its copy.
const minBorrow = 32 << 10

// endBorrow copies the part of a borrowed send buffer that is not in packets yet, before its
// caller gets it back, and notes whether the next long message may be borrowed. a.mu is held.
func (a *Association) endBorrow() {
	a.core.EndBorrow(duplicate)
	if can := a.core.CanBorrow(); can != a.canBorrow.Load() {
		a.canBorrow.Store(can)
	}
}

func duplicate(body []byte) ([]byte, tx.Owner) {
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
		next = timerqueue.Never
	} else if a.t.full() {
		next = max(next, a.t.now()+fullRetry)
	}
	if a.deadline == nil {
		a.deadline = a.t.timers.SlotFor(a)
	} else if a.armed == next {
		return
	}
	a.armed = next
	a.t.timers.Set(a.deadline, next)
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
