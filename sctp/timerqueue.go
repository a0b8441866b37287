package sctp

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
)

// timerQueue has the deadlines of all associations of a transport, and one timer
// of the runtime for the earliest of them. A packet moves the deadline of its
// association, mostly to later, which costs one store: the queue notices when the
// old deadline comes to its top.
type timerQueue struct {
	now  func() core.Time
	fire func(due []*Association) // on a goroutine of its own, without locks held

	mu    sync.Mutex
	heap  []timerEntry // four children each, the earliest at the top
	fresh []timerSlot  // not given out yet
	timer *time.Timer
	wake  core.Time      // when timer fires, 0 if it does not
	spare []*Association // memory for those that are due
}

// timerEntry is one deadline in the heap, which may have become a later one.
type timerEntry struct {
	at   core.Time // slot.queued
	slot *timerSlot
}

// timerSlot is the deadline of one association. Slots of many associations are
// together in memory, so that looking at one does not bring the association into
// the cache.
type timerSlot struct {
	at     atomic.Int64 // the deadline, never if there is none; written under Association.mu
	queued atomic.Int64 // at in the heap, 0 if it is not there; written under timerQueue.mu
	owner  *Association // guarded by timerQueue.mu
	place  int          // in the heap; guarded by timerQueue.mu
}

const (
	// never is the deadline of a slot that has none.
	never = core.Time(math.MaxInt64)
	// slotChunk is how many slots are allocated together.
	slotChunk = 64
	// maxDue bounds how many timers expire in one go.
	maxDue = 64
)

func (q *timerQueue) init(now func() core.Time, fire func(due []*Association)) {
	q.now, q.fire = now, fire
}

// slotFor returns a slot for a.
func (q *timerQueue) slotFor(a *Association) *timerSlot {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.fresh) == 0 {
		q.fresh = make([]timerSlot, slotChunk)
	}
	s := &q.fresh[0]
	q.fresh = q.fresh[1:]
	s.owner = a
	return s
}

// set moves the deadline of s, at most one goroutine at a time. Until it is moved
// again its owner is given to fire once it has passed.
func (q *timerQueue) set(s *timerSlot, at core.Time) {
	s.at.Store(int64(at))
	// Either the store above is seen by whoever changes s.queued at this moment, or
	// the change is seen here: see settle.
	if queued := core.Time(s.queued.Load()); at == never || queued != 0 && queued <= at {
		return
	}
	q.mu.Lock()
	if s.owner != nil {
		q.place(s)
		q.rewind()
	}
	q.mu.Unlock()
}

// drop ends the use of s.
func (q *timerQueue) drop(s *timerSlot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.at.Store(int64(never))
	s.owner = nil
	if s.queued.Load() != 0 {
		q.remove(s)
	}
	if len(q.heap) == 0 && q.timer != nil {
		q.timer.Stop()
		q.wake = 0
	}
}

// place puts s into the heap, or moves it there, as its deadline says. q.mu is held.
func (q *timerQueue) place(s *timerSlot) {
	for {
		at := core.Time(s.at.Load())
		switch queued := core.Time(s.queued.Load()); {
		case at == queued:
			return
		case at == never:
			if queued == 0 {
				return
			}
			q.remove(s)
		case queued == 0:
			s.queued.Store(int64(at))
			q.heap = append(q.heap, timerEntry{})
			q.up(len(q.heap)-1, timerEntry{at, s})
		case at < queued:
			s.queued.Store(int64(at))
			q.up(s.place, timerEntry{at, s})
		default:
			s.queued.Store(int64(at))
			q.down(s.place, timerEntry{at, s})
		}
		// A deadline that set stored meanwhile, having seen the old s.queued, is
		// earlier than the new one.
	}
}

// settle brings the heap up to date until its top is a deadline that was not
// moved. q.mu is held.
func (q *timerQueue) settle() {
	for len(q.heap) > 0 {
		top := q.heap[0]
		if core.Time(top.slot.at.Load()) <= top.at {
			return
		}
		q.place(top.slot)
	}
}

// rewind has the timer fire earlier, if it has to. q.mu is held.
func (q *timerQueue) rewind() {
	if len(q.heap) == 0 {
		return
	}
	at := q.heap[0].at
	if q.wake != 0 && q.wake <= at {
		return
	}
	q.wake = at
	d := time.Duration(max(at-q.now(), 0))
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.run)
	} else {
		q.timer.Reset(d)
	}
}

// run has the owners of deadlines that have passed called.
func (q *timerQueue) run() {
	q.mu.Lock()
	due := q.spare[:0]
	q.spare = nil
	q.wake = 0
	now := q.now()
	for q.settle(); len(due) < maxDue && len(q.heap) > 0 && q.heap[0].at <= now; q.settle() {
		s := q.heap[0].slot
		due = append(due, s.owner)
		q.remove(s)
	}
	// Before they are called: what a call waits for may be a timer.
	q.rewind()
	q.mu.Unlock()
	if len(due) > 0 {
		q.fire(due)
	}
	clear(due)
	q.mu.Lock()
	q.spare = due
	q.mu.Unlock()
}

// remove takes s out of the heap. q.mu is held.
func (q *timerQueue) remove(s *timerSlot) {
	s.queued.Store(0)
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap[last] = timerEntry{}
	q.heap = q.heap[:last]
	if s.place == last {
		return
	}
	if i := s.place; i > 0 && e.at < q.heap[(i-1)/4].at {
		q.up(i, e)
	} else {
		q.down(i, e)
	}
}

// up puts e at i or above.
func (q *timerQueue) up(i int, e timerEntry) {
	for i > 0 {
		p := (i - 1) / 4
		if q.heap[p].at <= e.at {
			break
		}
		q.put(i, q.heap[p])
		i = p
	}
	q.put(i, e)
}

// down puts e at i or below.
func (q *timerQueue) down(i int, e timerEntry) {
	for {
		c := 4*i + 1
		if c >= len(q.heap) {
			break
		}
		for k, end := c+1, min(c+4, len(q.heap)); k < end; k++ {
			if q.heap[k].at < q.heap[c].at {
				c = k
			}
		}
		if e.at <= q.heap[c].at {
			break
		}
		q.put(i, q.heap[c])
		i = c
	}
	q.put(i, e)
}

func (q *timerQueue) put(i int, e timerEntry) {
	q.heap[i] = e
	e.slot.place = i
}
