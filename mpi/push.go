package mpi

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// pusher decides when queued messages are transmitted. The first message after
// a wait goes out at once. Short ones that follow it closely are a burst: they
// are left to a goroutine, so that while it transmits some the next ones
// gather and share packets. Whoever waits transmits first.
type pusher struct {
	sends   atomic.Int32 // since the last wait
	pending atomic.Bool  // dirty is not empty
	active  atomic.Bool  // the goroutine runs
	runs    func()       // run: a method value is made once, not with each goroutine

	mu    sync.Mutex
	dirty []*peer // with messages to transmit
	spare []*peer
}

// burstBytes is how many bytes to one peer are left for later at most.
const burstBytes = 16 << 10

// push transmits the message of n bytes that was queued for p, now or soon. It is
// the first since a wait if it is lone. If it is held the caller calls waiting before
// it blocks, and needs no goroutine.
func (e *engine) push(p *peer, n int, lone, held bool) {
	u := &e.pusher
	if lone || !p.bursts || int(p.unsent.Add(int32(min(n, burstBytes)+envelopeLen))) > burstBytes {
		p.unsent.Store(0)
		p.link.flush()
		return
	}
	if p.dirty.CompareAndSwap(false, true) {
		u.mu.Lock()
		u.dirty = append(u.dirty, p)
		u.mu.Unlock()
		u.pending.Store(true)
	}
	if !held && u.active.CompareAndSwap(false, true) {
		go u.runs()
	}
}

// run transmits until nothing is left.
func (u *pusher) run() {
	for {
		u.flush()
		u.active.Store(false)
		if !u.pending.Load() || !u.active.CompareAndSwap(false, true) {
			return
		}
	}
}

// flush transmits what push left for later.
func (u *pusher) flush() {
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
		p.link.flush()
	}
	clear(ps)
	u.mu.Lock()
	u.spare = ps[:0]
	u.mu.Unlock()
}

// waiting is called by who is about to wait.
func (u *pusher) waiting() {
	u.sends.Store(0)
	u.flush()
}

// canBurst reports whether leaving transmission to a goroutine makes sense: it
// may not get to run before the sender waits if there is only one processor.
func canBurst() bool { return runtime.GOMAXPROCS(0) > 1 }
