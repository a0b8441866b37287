package p2p

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/poll"
)

// rung reports whether w holds a signal, and takes it.
func rung(w *Waiter) bool {
	select {
	case <-w.woken:
		return true
	default:
		return false
	}
}

// pendingService is a service without requests.
type pendingService struct{ wake Waiter }

func (s *pendingService) Serve() {}
func (s *pendingService) Wake()  { s.wake.notify() }

// A pending service is for a goroutine that polls, else for one that has parked, else for the
// goroutine of the service.
func TestProgressHook(t *testing.T) {
	newService := func() *pendingService { return &pendingService{wake: Waiter{woken: make(chan struct{}, 1)}} }
	parked := func() *Waiter { return &Waiter{woken: make(chan struct{}, 1)} }
	var d Hook
	s := newService()
	if d.Add(s) || d.pending.Load() {
		t.Error("a service was left to no goroutine")
	}

	w := parked()
	d.park(w)
	if !d.Add(s) || !rung(w) || rung(&s.wake) {
		t.Error("the goroutine that has parked was not woken, or the service was, too")
	}
	d.enter() // as rest does when it wakes
	d.unpark(w)
	if got := d.take(); len(got) != 1 || got[0] != s || d.pending.Load() {
		t.Errorf("%d services are pending", len(got))
	}

	if !d.Add(s) || rung(&s.wake) {
		t.Error("a service was woken although a goroutine polls")
	}
	d.enter()
	if d.leave(); rung(&s.wake) {
		t.Error("a service was woken although somebody still polls")
	}
	if d.leave(); !rung(&s.wake) || d.pending.Load() {
		t.Error("what nobody has seen was not left to the service")
	}

	d.park(w)
	d.enter()
	d.Add(s)
	if d.leave(); !rung(w) || rung(&s.wake) {
		t.Error("a pending service was not left to the goroutine that has parked")
	}
}

// However goroutines come and go, one of them is told of each service that becomes
// pending.
func TestProgressHookRandom(t *testing.T) {
	var d Hook
	var mu sync.Mutex // of counts
	told := 0
	const services, pollers = 2000, 3
	var stop atomic.Bool
	var polls, adds sync.WaitGroup
	take := func() {
		list := d.take()
		mu.Lock()
		told += len(list)
		mu.Unlock()
		d.give(list)
	}
	for range pollers {
		polls.Go(func() {
			w := &Waiter{woken: make(chan struct{}, 1)}
			for !stop.Load() {
				d.enter()
				take()
				d.leave()
				d.park(w)
				select {
				case <-w.woken:
				case <-time.After(time.Microsecond):
				}
				d.enter()
				d.unpark(w)
				take()
				d.leave()
			}
		})
	}
	ss := make([]*pendingService, 0, services)
	for range services {
		s := &pendingService{wake: Waiter{woken: make(chan struct{}, 1)}}
		ss = append(ss, s)
		adds.Go(func() {
			if !d.Add(s) {
				s.wake.notify()
			}
		})
	}
	adds.Wait()
	stop.Store(true)
	polls.Wait()
	for _, s := range ss {
		if rung(&s.wake) {
			told++
		}
	}
	if told < services {
		t.Errorf("of %d services %d were seen to or woken", services, told)
	}
}

// However many requests come, a goroutine that waits returns when its own wait, or the
// context, is over.
func TestWaitsEndUnderTraffic(t *testing.T) {
	e := &Engine{}
	p := &e.Progress
	s := &pendingService{wake: Waiter{woken: make(chan struct{}, 1)}}
	p.Init(func() bool { p.Hook.Add(s); return true }, 100*time.Millisecond)
	p.Hook.Used.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	w := &Waiter{woken: make(chan struct{}, 1)}
	never := func() bool { return false }
	// rest has a service pending when it wakes, and returns how often it ran.
	rest := func(done func() bool) uint32 {
		t.Helper()
		seen := p.Hook.Runs.Load()
		p.Hook.enter()
		p.Hook.Add(s)
		w.signal()
		p.Hook.pollers.Add(-1)
		var gap poll.Wait
		if err := p.Rest(ctx, w, &gap, done); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		if p.Hook.pollers.Load() != 0 || len(p.Hook.parked) != 0 || p.Spinning.Any() {
			t.Errorf("left %d pollers, %d parked; goroutines spin: %v", p.Hook.pollers.Load(), len(p.Hook.parked), p.Spinning.Any())
		}
		p.Hook.take()
		return p.Hook.Runs.Load() - seen
	}
	looks := 0
	if n := rest(func() bool { looks++; return looks > 20 }); n > 21 {
		t.Errorf("performed requests %d times, %d looks whether the wait is over", n, looks)
	}
	stop()
	if n := rest(never); n != 1 {
		t.Errorf("performed requests %d times after the end of the context", n)
	}
	began := Clock()
	if p.Spin(ctx, p.Begin(), never) || Clock()-began > int64(10*time.Second) {
		t.Error("a spin went on after the end of its context")
	}
}
