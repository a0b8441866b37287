package verbs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/sctp"
)

// CQ is a completion queue. It is safe for concurrent use.
type CQ struct {
	dev *Device
	ch  *CompChannel // nil: none

	n     atomic.Int32  // completions queued, written under mu
	empty atomic.Uint32 // calls of Poll in a row that found nothing
	refs  refs          // queue pairs that use it, once for each direction

	mu      sync.Mutex
	ring    []WC // guarded by mu
	head    int  // guarded by mu: oldest
	waiting int  // guarded by mu: goroutines parked in Wait
	led     bool // guarded by mu: one of them with first
	armed   arm  // guarded by mu
	lost    int  // guarded by mu: the depth when completions were lost that Wait or Err did not tell of, else 0
	full    bool // guarded by mu: completions were lost since some were taken
	closed  bool // guarded by mu
	queued  bool // guarded by ch.mu: waits in ch

	ready  func() bool   // whether Poll would return something
	wake   chan struct{} // one token while there may be something for a waiter
	first  *sctp.Waiter  // where one of them waits; nil without a transport
	events chan struct{}
}

// arm is what an armed queue waits for.
type arm uint8

const (
	armNone arm = iota
	armSolicited
	armAny
)

// NewCQ makes a completion queue with room for depth completions, at most
// MaxCQ. Room for all work requests that may be outstanding on the queue pairs
// that use it avoids an overflow.
//
// An overflow ends the queue pairs whose completions were lost, and only them (RFC
// 5040, Section 8.1.1, item 10), with ErrCQOverflow: the queue has their completions
// up to the first that was lost, and none of those that follow. The other queue pairs
// of the queue go on, as does the queue once there is room, by Poll or Resize. An
// EventCQError tells of it, and Wait or Err does, once.
func (d *Device) NewCQ(depth int) (*CQ, error) {
	return d.newCQ(depth, nil)
}

func (d *Device) newCQ(depth int, ch *CompChannel) (*CQ, error) {
	if err := checkLimit("CQ depth", depth, 1, MaxCQ); err != nil {
		return nil, err
	}
	if err := d.use(); err != nil {
		return nil, err
	}
	cq := &CQ{dev: d, ch: ch, ring: make([]WC, depth),
		wake: make(chan struct{}, 1), events: make(chan struct{}, 1)}
	cq.ready = func() bool { return cq.n.Load() > 0 }
	if t := d.cfg.Transport; t != nil {
		cq.first = t.NewWaiter()
	}
	return cq, nil
}

// push appends a completion. It reports false if there is no room. It is
// called with locks of a stream held.
func (cq *CQ) push(wc WC) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	n := int(cq.n.Load())
	if n == len(cq.ring) {
		if !cq.full {
			cq.dev.events.push(Event{Type: EventCQError, CQ: cq, Err: overflowError(n)})
		}
		cq.lost, cq.full = n, true
		cq.signal()
		cq.fire(true)
		return false
	}
	i := cq.head + n
	if i >= len(cq.ring) {
		i -= len(cq.ring)
	}
	cq.ring[i] = wc
	cq.n.Store(int32(n + 1))
	cq.signal()
	cq.fire(wc.Flags&WasSolicited != 0 || wc.Status != StatusSuccess)
	return true
}

// fire makes the event that an armed queue waits for.
func (cq *CQ) fire(solicited bool) { // mu is held
	if cq.armed == armNone || cq.armed == armSolicited && !solicited {
		return
	}
	cq.armed = armNone
	if cq.ch != nil {
		cq.ch.push(cq)
		return
	}
	select {
	case cq.events <- struct{}{}:
	default:
	}
}

// takeLost returns the error of a queue that lost completions, once, else nil.
func (cq *CQ) takeLost() error { // mu is held
	if cq.lost == 0 {
		return nil
	}
	err := overflowError(cq.lost)
	cq.lost = 0
	return err
}

// overflowError is the error of a queue of a depth.
func overflowError(depth int) error {
	return fmt.Errorf("%w: room for %d completions, none was free", ErrCQOverflow, depth)
}

// Err returns an error that wraps ErrCQOverflow if completions were lost since Err or
// Wait returned one, else nil. It is for programs that Poll; Wait tells by itself. It
// never blocks.
func (cq *CQ) Err() error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.takeLost()
}

// signal lets one parked waiter go.
func (cq *CQ) signal() { // mu is held
	if cq.led {
		cq.first.Wake()
	} else if cq.waiting > 0 {
		select {
		case cq.wake <- struct{}{}:
		default:
		}
	}
}

// Poll moves up to len(wc) completions to wc and returns how many. It does not wait
// for any. Of completions that were lost Err tells.
//
// A program may spin on Poll alone, with any number of processors: calls that find
// nothing again and again read the sockets, as Wait does, and let other goroutines
// run now and then.
func (cq *CQ) Poll(wc []WC) int {
	if cq.n.Load() == 0 && !cq.progress() {
		return 0
	}
	return cq.poll(wc)
}

// poll is Poll for one who does not spin.
func (cq *CQ) poll(wc []WC) int {
	if cq.n.Load() == 0 {
		return 0
	}
	if cq.empty.Load() != 0 {
		cq.empty.Store(0)
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.take(wc)
}

func (cq *CQ) take(wc []WC) int { // mu is held
	n := int(cq.n.Load())
	m := min(n, len(wc))
	for i := range m {
		w := &cq.ring[cq.head]
		wc[i] = *w
		w.QP = nil
		if cq.head++; cq.head == len(cq.ring) {
			cq.head = 0
		}
	}
	cq.n.Store(int32(n - m))
	if m > 0 {
		cq.full = false
	}
	return m
}

// Wait is Poll that blocks until there is at least one completion or ctx is
// done. It first polls the transport itself, as far as
// sctp.TransportConfig.BusyPoll allows. When the queue is drained after completions
// were lost it returns ErrCQOverflow, once: the next call waits for what the queue
// pairs do that go on. It returns ErrClosed when the queue is closed.
func (cq *CQ) Wait(ctx context.Context, wc []WC) (int, error) {
	if len(wc) == 0 {
		return 0, nil
	}
	if n := cq.poll(wc); n > 0 {
		return n, nil
	}
	var wait sctp.Wait
	if t := cq.dev.cfg.Transport; t != nil && ctx.Err() == nil {
		wait = t.BeginWait()
		if wait.Poll(func() bool { return cq.ready() || ctx.Err() != nil }) {
			if n := cq.poll(wc); n > 0 {
				wait.End()
				return n, nil
			}
		}
	}
	cq.mu.Lock()
	cq.waiting++
	for {
		n := cq.take(wc)
		var err error
		switch {
		case n > 0:
		case cq.lost > 0:
			err = cq.takeLost()
		case cq.closed:
			err = ErrClosed
		default:
			err = ctx.Err()
		}
		if n > 0 || err != nil {
			cq.waiting--
			if cq.n.Load() > 0 || cq.lost > 0 || cq.closed {
				cq.signal() // the token may have stood for others' completions too
			}
			cq.mu.Unlock()
			if n > 0 {
				wait.End()
			}
			return n, err
		}
		if !cq.led && cq.first != nil {
			cq.led = true
			cq.mu.Unlock()
			cq.first.Wait(ctx.Done())
			cq.mu.Lock()
			cq.led = false
			continue
		}
		cq.mu.Unlock()
		select {
		case <-cq.wake:
		case <-ctx.Done():
		}
		cq.mu.Lock()
	}
}

// Notify arms the queue: the next completion that is queued (with
// solicitedOnly: the next that is solicited or an error), or lost, makes one value
// appear on C. To miss none, poll after Notify before waiting for C.
func (cq *CQ) Notify(solicitedOnly bool) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	want := armAny
	if solicitedOnly {
		want = armSolicited
	}
	cq.armed = max(cq.armed, want)
}

// Resize changes the depth. It returns ErrLimit for an impossible depth and
// ErrBusy for one below the number of completions queued, and changes nothing
// then. With more room a queue that overflowed takes completions again.
func (cq *CQ) Resize(depth int) error {
	if err := checkLimit("CQ depth", depth, 1, MaxCQ); err != nil {
		return err
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	n := int(cq.n.Load())
	switch {
	case cq.closed:
		return ErrClosed
	case n > depth:
		return explain(ErrBusy, "CQ depth %d: %d completions are queued", depth, n)
	}
	ring := make([]WC, depth)
	for i := range n {
		ring[i] = cq.ring[(cq.head+i)%len(cq.ring)]
	}
	cq.ring, cq.head = ring, 0
	if n < depth {
		cq.full = false
	}
	return nil
}

// Depth returns the number of completions there is room for.
func (cq *CQ) Depth() int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return len(cq.ring)
}

// C returns the channel of events armed with Notify, unless the queue was made
// with a CompChannel. It never closes.
func (cq *CQ) C() <-chan struct{} { return cq.events }

// Len returns the number of completions that Poll would return.
func (cq *CQ) Len() int { return int(cq.n.Load()) }

// Close frees the queue and ends calls of Wait. It returns ErrBusy while queue
// pairs use it.
func (cq *CQ) Close() error {
	if err := cq.refs.close("completion queue", "queue pairs"); err != nil {
		return err
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.closed = true
	cq.signal()
	cq.dev.events.forget(nil, cq, nil)
	if cq.ch != nil {
		cq.ch.forget(cq)
	}
	cq.dev.unuse()
	return nil
}
