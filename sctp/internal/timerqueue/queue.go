// Package timerqueue keeps the deadlines of many owners, which move at every packet, behind one timer
// of the runtime.
package timerqueue

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Queue has the deadlines of owners, such as all associations of a transport, and one timer
// of the runtime for the earliest of them. A packet moves the deadline of its
// association, mostly to later, which costs one store: the queue notices when the
// old deadline comes to its top.
//
// A deadline moves to and fro: near while something is in flight, far away when it is
// acknowledged. The far one stays queued meanwhile, in a heap of its own, so that the heap
// of near ones is small and stays in the cache.
type Queue[T any] struct {
	now  func() clock.Time
	fire func(due []*T) // without locks held

	// Goroutines that poll the sockets call Poll. slack is the timer slack meanwhile: how late
	// the runtime's timer may be, because each time that it fires it wakes a thread.
	slack  atomic.Int64 // a clock.Time
	next   atomic.Int64 // the earliest entry, 0 if there is none; written under mu
	polled atomic.Bool  // a goroutine is in Poll

	mu    sync.Mutex
	heaps [2]heap[T]
	fresh []Slot[T] // not given out yet
	timer *time.Timer
	wake  clock.Time // when timer fires, 0 if it does not
	seen  clock.Time // when the clock was read last: recently, unless no deadline is near
	spare []*T       // memory for those that are due
}

// Slot is the deadline of one owner. Slots of many owners are together in
// memory, so the queue reads one without loading the owner into the cache. All but at
// and queued is guarded by [Queue].mu.
type Slot[T any] struct {
	at     atomic.Int64 // the deadline, never if there is none; set by one goroutine at a time
	queued atomic.Int64 // the earlier of its entries in the heaps, 0 if it has none; written under [Queue].mu
	owner  *T           // nil once the slot is not used any more
	place  [2]int32     // of its entry in either heap, plus one; 0 if there is none
}

const (
	// Never is the deadline of a slot that has none.
	Never = clock.Time(math.MaxInt64)
	// soon is how far away a deadline may be to go to the heap of near ones, 250 ms.
	soon = clock.Time(250 * time.Millisecond)
	// slotChunk is how many slots are allocated together.
	slotChunk = 64
	// maxDue bounds how many timers expire in one go.
	maxDue = 64
)

// The heaps.
const near, far = 0, 1

// Init makes the queue ready: now reads the clock, and fire is called with the owners of deadlines that
// have passed, at most 64 at a time, without locks held.
func (q *Queue[T]) Init(now func() clock.Time, fire func(due []*T)) {
	q.now, q.fire = now, fire
	q.heaps[far].which = far
}

// SlotFor returns a slot for a.
func (q *Queue[T]) SlotFor(a *T) *Slot[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.fresh) == 0 {
		q.fresh = make([]Slot[T], slotChunk)
	}
	s := &q.fresh[0]
	q.fresh = q.fresh[1:]
	s.owner = a
	s.at.Store(int64(Never))
	return s
}

// Set moves the deadline of s. Only one goroutine at a time may do so for a slot. When the
// deadline passes it is cleared, and the owner is given to fire.
func (q *Queue[T]) Set(s *Slot[T], at clock.Time) {
	s.at.Store(int64(at))
	// Either the store above is seen by enqueue, after s.queued was changed, or the
	// change is seen here.
	if queued := clock.Time(s.queued.Load()); at == Never || queued != 0 && queued <= at {
		return
	}
	q.mu.Lock()
	if s.owner != nil {
		q.enqueue(s)
		q.rearm()
	}
	q.mu.Unlock()
}

// Drop ends the use of s.
func (q *Queue[T]) Drop(s *Slot[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.at.Store(int64(Never))
	s.owner = nil
	q.remove(s, near)
	q.remove(s, far)
	if q.top() == nil && q.timer != nil {
		q.timer.Stop()
		q.wake = 0
		q.next.Store(0)
	}
}

// enqueue queues s, if its deadline would be missed otherwise. q.mu is held.
func (q *Queue[T]) enqueue(s *Slot[T]) {
	for {
		at, queued := clock.Time(s.at.Load()), clock.Time(s.queued.Load())
		if at == Never || queued != 0 && queued <= at {
			return
		}
		h := near
		if at-q.seen > soon {
			h = far
		}
		s.queued.Store(int64(at))
		q.heaps[h].add(s, at)
	}
}

// remove takes s out of a heap. q.mu is held.
func (q *Queue[T]) remove(s *Slot[T], h int) {
	q.heaps[h].remove(s)
	other := &q.heaps[1-h]
	if i := s.place[1-h]; i > 0 {
		s.queued.Store(int64(other.list[i-1].at))
	} else {
		s.queued.Store(0)
	}
}

// top returns the heap with the earliest entry, nil if there is none. q.mu is held.
func (q *Queue[T]) top() *heap[T] {
	n, f := &q.heaps[near], &q.heaps[far]
	switch {
	case len(f.list) == 0 && len(n.list) == 0:
		return nil
	case len(f.list) == 0 || len(n.list) > 0 && n.list[0].at <= f.list[0].at:
		return n
	}
	return f
}

// prune moves entries to where their deadlines have moved until the earliest one is up to
// date. It returns the heap of that entry, nil if there is none. q.mu is held.
func (q *Queue[T]) prune() *heap[T] {
	for {
		h := q.top()
		if h == nil {
			return nil
		}
		top := h.list[0]
		if clock.Time(top.slot.at.Load()) <= top.at {
			return h
		}
		q.remove(top.slot, h.which)
		q.enqueue(top.slot)
	}
}

// rearm makes the timer fire earlier, if it has to. q.mu is held.
func (q *Queue[T]) rearm() {
	h := q.top()
	if h == nil {
		q.next.Store(0)
		return
	}
	at := h.list[0].at
	q.next.Store(int64(at))
	if q.wake != 0 && q.wake <= at {
		return
	}
	q.seen = q.now()
	d := max(at-q.seen, clock.Time(q.slack.Load()), 0)
	if at = q.seen + d; q.wake != 0 && q.wake <= at {
		return
	}
	q.wake = at
	if q.timer == nil {
		q.timer = time.AfterFunc(time.Duration(d), q.run)
	} else {
		q.timer.Reset(time.Duration(d))
	}
}

// SetSlack sets the timer slack: how late the timer may be while goroutines call Poll.
func (q *Queue[T]) SetSlack(by clock.Time) {
	if by < clock.Time(q.slack.Swap(int64(by))) {
		q.mu.Lock()
		q.rearm()
		q.mu.Unlock()
	}
}

// Slack returns what SetSlack has set.
func (q *Queue[T]) Slack() clock.Time { return clock.Time(q.slack.Load()) }

// Poll is called at now by a goroutine that polls: it runs what is due, as the timer would
// if it were not late.
func (q *Queue[T]) Poll(now clock.Time) {
	next := clock.Time(q.next.Load())
	if next == 0 || now < next || !q.polled.CompareAndSwap(false, true) {
		return
	}
	q.expire()
	q.polled.Store(false)
}

// run is called by the timer.
func (q *Queue[T]) run() {
	q.mu.Lock()
	q.wake = 0
	q.mu.Unlock()
	q.expire()
}

// expire has the owners of deadlines that have passed called.
func (q *Queue[T]) expire() {
	q.mu.Lock()
	due := q.spare[:0]
	q.spare = nil
	now := q.now()
	q.seen = now
	for len(due) < maxDue {
		h := q.prune()
		if h == nil || h.list[0].at > now {
			break
		}
		s := h.list[0].slot
		if at := s.at.Load(); clock.Time(at) <= now && s.at.CompareAndSwap(at, int64(Never)) {
			due = append(due, s.owner)
		}
		q.remove(s, h.which)
		q.enqueue(s)
	}
	// Before fire is called, because an upcall may wait for a timer.
	q.rearm()
	q.mu.Unlock()
	if len(due) > 0 {
		q.fire(due)
	}
	clear(due)
	q.mu.Lock()
	q.spare = due
	q.mu.Unlock()
}
