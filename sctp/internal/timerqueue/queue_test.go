package timerqueue

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// owner is what has a deadline.
type owner struct{ _ int }

// firing is what a Queue of a test had called, and when.
type firing struct {
	mu  sync.Mutex
	all []fired
}

type fired struct {
	at clock.Time
	a  *owner
}

func (f *firing) take() []fired {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all
	f.all = nil
	return all
}

// newTimerQueue returns a queue with a clock that begins at 0 now.
func newTimerQueue() (*Queue[owner], *firing) {
	q, f, epoch := new(Queue[owner]), new(firing), time.Now()
	now := func() clock.Time { return clock.Time(time.Since(epoch)) }
	q.Init(now, func(due []*owner) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, a := range due {
			f.all = append(f.all, fired{now(), a})
		}
	})
	return q, f
}

// check fails the test unless the heaps are such, and know their slots.
func (q *Queue[owner]) check(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	for which := range q.heaps {
		h := &q.heaps[which]
		for i, e := range h.list {
			if e.slot.place[which] != int32(i+1) || e.slot.queued.Load() == 0 || clock.Time(e.slot.queued.Load()) > e.at {
				t.Fatalf("entry %d of heap %d at %d: its slot has place %d, time %d", i, which, e.at, e.slot.place[which], e.slot.queued.Load())
			}
			if i > 0 && h.list[(i-1)/4].at > e.at {
				t.Fatalf("entry %d of heap %d is earlier than the one above it", i, which)
			}
			if at := clock.Time(e.slot.at.Load()); at < clock.Time(e.slot.queued.Load()) {
				t.Fatalf("entry %d of heap %d: the deadline %d is before the queue looks", i, which, at)
			}
		}
	}
}

// TestTimerQueueFiresInTime moves many deadlines at random, in virtual time, and
// wants every one to be noticed at that very time.
func TestTimerQueueFiresInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		q, f := newTimerQueue()
		slots, want := make([]*Slot[owner], n), make(map[*owner]clock.Time, n)
		for i := range slots {
			slots[i] = q.SlotFor(new(owner))
		}
		step := func() {
			synctest.Wait()
			for _, x := range f.take() {
				if want[x.a] != x.at {
					t.Fatalf("seed %d: fired at %d, want %d (0 is Never)", seed, x.at, want[x.a])
				}
				delete(want, x.a)
			}
			now := q.now()
			for _, at := range want {
				if at <= now {
					t.Fatalf("seed %d: nothing fired at %d, it is %d", seed, at, now)
				}
			}
			q.check(t)
		}
		for range 5000 {
			s := slots[rnd.IntN(n)]
			switch rnd.IntN(20) {
			case 0:
				q.Set(s, Never)
				delete(want, s.owner)
			case 1:
				a := s.owner
				q.Drop(s)
				q.Set(s, q.now()+1) // of no effect
				delete(want, a)
				slots[slices.Index(slots, s)] = q.SlotFor(new(owner))
			default:
				at := q.now() + 1 + clock.Time(rnd.IntN(1<<rnd.IntN(30)))
				q.Set(s, at)
				want[s.owner] = at
			}
			time.Sleep(time.Duration(rnd.IntN(1 << rnd.IntN(20))))
			step()
		}
		for _, s := range slots {
			if at := clock.Time(s.at.Load()); at != Never && at != want[s.owner] {
				t.Fatalf("seed %d: deadline %d, want %d", seed, at, want[s.owner])
			}
		}
		time.Sleep(2 * time.Second)
		step()
		if len(want) > 0 {
			t.Fatalf("seed %d: %d deadlines were forgotten", seed, len(want))
		}
		for _, s := range slots {
			q.Set(s, q.now()+1)
			q.Drop(s)
		}
		if q.top() != nil || q.wake != 0 {
			t.Fatalf("entries are left, wake %d", q.wake)
		}
	})
}

// An entry that moves down is compared with its children, and not with those of
// the entry beside it, which come next in memory.
func TestTimerQueueLooksAtItsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newTimerQueue()
		h := &q.heaps[far]
		at := make([]int, 39)
		for i := range at {
			at[i] = 60
		}
		// Of the children of 8 the last is the earliest; 37 is a child of 9, and
		// earlier than 1, which is above 8.
		at[0], at[1], at[2], at[8], at[9], at[36], at[37] = 1, 20, 11, 21, 12, 39, 13
		for i, s := range at {
			q.Set(q.SlotFor(new(owner)), clock.Time(s)*clock.Time(time.Second))
			if got := h.list[i].at; got != clock.Time(s)*clock.Time(time.Second) {
				t.Fatalf("entry %d of the heap is at %d", i, got)
			}
		}
		q.Drop(h.list[8].slot)
		q.check(t)
		for len(h.list) > 0 {
			q.Drop(h.list[0].slot)
			q.check(t)
		}
	})
}

// TestTimerQueueMovesLazily checks that packets which put off deadlines neither
// touch the heap nor wake a goroutine, which is the point of the queue.
func TestTimerQueueMovesLazily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, probe, idle = 1000, 10 * time.Millisecond, 30 * time.Second
		q, f := newTimerQueue()
		inner := q.now
		slots := make([]*Slot[owner], n)
		for i := range slots {
			slots[i] = q.SlotFor(new(owner))
			q.Set(slots[i], inner()+clock.Time(idle))
		}
		runs, wake := 0, clock.Time(0)
		for range 10 {
			for _, s := range slots { // a message is sent, and acknowledged soon after
				q.Set(s, inner()+clock.Time(probe))
				time.Sleep(10 * time.Microsecond)
				q.Set(s, inner()+clock.Time(idle))
				q.mu.Lock()
				if q.wake != wake {
					runs, wake = runs+1, q.wake
				}
				q.mu.Unlock()
			}
		}
		synctest.Wait()
		// 10000 messages in 100 ms, of which a deadline that was set after the last
		// look may be found once per probe.
		if runs > 100 {
			t.Errorf("the timer was set %d times for deadlines that were all put off", runs)
		}
		if got := f.take(); len(got) > 0 {
			t.Errorf("%d deadlines passed, though all were put off", len(got))
		}
		q.check(t)
		for _, s := range slots {
			q.Drop(s)
		}
	})
}

// While others poll the timer is late, and they are not.
func TestTimerQueuePolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lax, d = clock.Time(4 * time.Millisecond), clock.Time(time.Millisecond)
		q, f := newTimerQueue()
		s := q.SlotFor(new(owner))
		wait := func(d clock.Time) {
			time.Sleep(time.Duration(d))
			synctest.Wait()
		}
		want := func(at clock.Time) {
			t.Helper()
			if all := f.take(); len(all) != 1 || all[0].at != at {
				t.Errorf("at %d: fired %v, want once at %d", q.now(), all, at)
			}
		}
		none := func() {
			t.Helper()
			if all := f.take(); len(all) > 0 {
				t.Errorf("at %d: fired %v", q.now(), all)
			}
		}
		q.SetSlack(lax)
		q.Set(s, q.now()+d)
		wait(d - 1)
		q.Poll(q.now())
		none()
		wait(1)
		q.Poll(q.now())
		want(q.now())
		q.Poll(q.now())
		none()

		set := q.now()
		q.Set(s, set+d) // no goroutine polls
		wait(2 * lax)
		if all := f.take(); len(all) != 1 || all[0].at < set+d || all[0].at > set+lax {
			t.Errorf("fired %v, want once from %d to %d", all, set+d, set+lax)
		}

		set = q.now()
		q.Set(s, set+d)
		q.SetSlack(0)
		wait(d)
		want(set + d)

		q.SetSlack(lax)
		set = q.now()
		q.Set(s, set+3*lax) // far enough not to be late
		wait(3 * lax)
		want(set + 3*lax)
		q.Drop(s)
		q.Poll(q.now())
		none()
	})
}

// TestTimerQueueFiresMany has more deadlines pass at once than fit one call.
func TestTimerQueueFiresMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3*maxDue + 1
		q, f := newTimerQueue()
		for range n {
			q.Set(q.SlotFor(new(owner)), clock.Time(time.Millisecond))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		all := f.take()
		if len(all) != n {
			t.Fatalf("%d of %d fired", len(all), n)
		}
		for _, x := range all {
			if x.at != clock.Time(time.Millisecond) {
				t.Fatalf("fired at %d", x.at)
			}
		}
	})
}

// TestTimerQueueLosesNone has several goroutines move deadlines, each its own, to
// earlier and later while they pass.
func TestTimerQueueLosesNone(t *testing.T) {
	const goroutines, slots, moves = 4, 50, 2000
	q, epoch := new(Queue[owner]), time.Now()
	last := make(map[*owner]*atomic.Int64) // when it fired last
	now := func() clock.Time { return clock.Time(time.Since(epoch)) + 1 }
	q.Init(now, func(due []*owner) {
		at := int64(now())
		for _, a := range due {
			for old := last[a].Load(); old < at && !last[a].CompareAndSwap(old, at); old = last[a].Load() {
			}
		}
	})
	var list [goroutines][slots]*Slot[owner]
	for g := range list {
		for i := range list[g] {
			a := new(owner)
			last[a] = new(atomic.Int64)
			list[g][i] = q.SlotFor(a)
		}
	}
	var wg sync.WaitGroup
	for g := range list {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 2))
			for range moves {
				q.Set(list[g][rnd.IntN(slots)], q.now()+clock.Time(rnd.IntN(200_000)))
			}
		})
	}
	wg.Wait()
	for g := range list {
		for _, s := range list[g] {
			for limit := time.Now().Add(5 * time.Minute); s.at.Load() != int64(Never) || last[s.owner].Load() == 0; runtime.Gosched() {
				if time.Now().After(limit) {
					t.Fatalf("the last deadline of slot %d of goroutine %d was lost", slices.Index(list[g][:], s), g)
				}
			}
		}
	}
	q.check(t)
}
