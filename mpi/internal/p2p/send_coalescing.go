package p2p

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
)

// SendCoalescer is send coalescing: it decides when queued messages are transmitted. The
// first message after a wait is transmitted at once. Short messages that follow without a
// wait are left to a goroutine: while it transmits some, further ones queue and share
// packets. A goroutine that is about to wait transmits everything first.
type SendCoalescer struct {
	sends   atomic.Int32 // since the last wait
	pending atomic.Bool  // dirty is not empty
	active  atomic.Bool  // the goroutine runs
	runs    func()       // run: a method value is made once, not with each goroutine

	mu    sync.Mutex
	dirty []*Peer // with messages to transmit
	spare []*Peer
}

// coalesceBytes bounds the bytes to one peer that wait for the goroutine.
const coalesceBytes = 16 << 10

// transmit transmits the message of n bytes that was queued for p, now or soon. first says
// that it is the first one since a wait. If deferred is set no goroutine is started, because
// the caller calls FlushBeforeWait before it blocks.
func (e *Engine) transmit(p *Peer, n int, first, deferred bool) {
	u := &e.Coalescer
	if first || !p.Coalesces || int(p.unsent.Add(int32(min(n, coalesceBytes)+envelope.MinLen))) > coalesceBytes {
		p.unsent.Store(0)
		p.Link.Flush()
		return
	}
	if p.dirty.CompareAndSwap(false, true) {
		u.mu.Lock()
		u.dirty = append(u.dirty, p)
		u.mu.Unlock()
		u.pending.Store(true)
	}
	if !deferred && u.active.CompareAndSwap(false, true) {
		go u.runs()
	}
}

// run transmits until nothing is left.
func (u *SendCoalescer) run() {
	for {
		u.flush()
		u.active.Store(false)
		if !u.pending.Load() || !u.active.CompareAndSwap(false, true) {
			return
		}
	}
}

// flush transmits what transmit has left for later.
func (u *SendCoalescer) flush() {
	if !u.pending.Load() {
		return
	}
	u.mu.Lock()
	u.pending.Store(false)
	ps := u.dirty
	u.dirty = u.spare[:0]
	u.spare = nil
	u.mu.Unlock()
	for _, p := range ps {
		p.dirty.Store(false)
		p.unsent.Store(0)
		p.Link.Flush()
	}
	clear(ps)
	u.mu.Lock()
	u.spare = ps[:0]
	u.mu.Unlock()
}

// FlushBeforeWait is called by a goroutine that is about to wait.
func (u *SendCoalescer) FlushBeforeWait() {
	if u.sends.Load() != 0 { // the store costs as much as all else in a poll
		u.sends.Store(0)
	}
	u.flush()
}

// CanCoalesce reports whether leaving transmission to a goroutine makes sense. With one
// processor it would not run before the sender waits; where ranks outnumber processors its thread would
// take one from a rank that computes, which costs more than some packets.
func (e *Engine) CanCoalesce() bool { return runtime.GOMAXPROCS(0) > 1 && !e.Progress.crowded }
