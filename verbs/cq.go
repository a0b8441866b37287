package verbs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/sctp"
)

// CQ is a completion queue (ibv_create_cq). It is safe for concurrent use.
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
// An overflow ends, with [ErrCQOverflow], the queue pairs that lost a completion, and only
// those (RFC 5040, Section 8.1.1, item 10). Of each the queue holds the completions before
// the lost one and none after it. Other queue pairs continue, and so does the queue once
// Poll or Resize has made room. The overflow is reported once by an EventCQError, and once
// by [CQ.Wait] or [CQ.Err].
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

// Err returns an error that wraps [ErrCQOverflow] if completions were lost since Err or
// Wait last returned such an error, and nil otherwise. Programs that use [CQ.Poll] call
// it; [CQ.Wait] returns the error itself. It does not block.
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

// Poll moves up to len(wc) completions to wc and returns their number (ibv_poll_cq). It
// does not block. Lost completions are reported by [CQ.Err].
//
// A program may busy-poll with Poll alone, on any number of processors: repeated calls
// that find nothing read the sockets, as Wait does, and yield to other goroutines from
// time to time.
func (cq *CQ) Poll(wc []WC) int {
	if cq.n.Load() == 0 && !cq.progress() {
		return 0
	}
	return cq.poll(wc)
}

// poll is Poll for callers that do not busy-poll.
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

// Wait blocks until there is at least one completion, or ctx is done, moves up to len(wc)
// completions to wc and returns their number. It busy-polls the transport first, within
// the spin budget of sctp.TransportConfig.BusyPoll. After completions were lost, it returns
// those that remain, then [ErrCQOverflow] once; later calls wait for the queue pairs that
// continue. It returns [ErrClosed] when the queue is closed.
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

// Notify arms the queue for one event on [CQ.C] (ibv_req_notify_cq): at the next
// completion, with solicitedOnly at the next solicited one or error, or when a completion
// is lost. Poll between Notify and waiting for C, or a completion that came before Notify
// is missed.
func (cq *CQ) Notify(solicitedOnly bool) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	want := armAny
	if solicitedOnly {
		want = armSolicited
	}
	cq.armed = max(cq.armed, want)
}

// Resize changes the depth (ibv_resize_cq). It changes nothing and returns [ErrLimit] if
// depth is out of range, and [ErrBusy] if more completions are queued. A queue that
// overflowed takes completions again once it has room.
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

// Close frees the queue (ibv_destroy_cq); calls of Wait return [ErrClosed]. It returns
// [ErrBusy] while queue pairs use the queue.
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
