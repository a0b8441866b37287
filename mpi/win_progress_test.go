package mpi

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// rung reports whether w holds a signal, and takes it.
func rung(w *waiter) bool {
	select {
	case <-w.ch:
		return true
	default:
		return false
	}
}

// A pending service is for a goroutine that polls, else for one that has parked, else for the
// goroutine of the service.
func TestProgressHook(t *testing.T) {
	newService := func() *winService { return &winService{wake: waiter{ch: make(chan struct{}, 1)}} }
	parked := func() *waiter { return &waiter{ch: make(chan struct{}, 1)} }
	var d progressHook
	s := newService()
	if d.add(s) || d.pending.Load() {
		t.Error("a service was left to no goroutine")
	}

	w := parked()
	d.park(w)
	if !d.add(s) || !rung(w) || rung(&s.wake) {
		t.Error("the goroutine that has parked was not woken, or the service was, too")
	}
	d.enter() // as rest does when it wakes
	d.unpark(w)
	if got := d.take(); len(got) != 1 || got[0] != s || d.pending.Load() {
		t.Errorf("%d services are pending", len(got))
	}

	if !d.add(s) || rung(&s.wake) {
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
	d.add(s)
	if d.leave(); !rung(w) || rung(&s.wake) {
		t.Error("a pending service was not left to the goroutine that has parked")
	}
}

// However goroutines come and go, one of them is told of each service that becomes
// pending.
func TestProgressHookRandom(t *testing.T) {
	var d progressHook
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
			w := &waiter{ch: make(chan struct{}, 1)}
			for !stop.Load() {
				d.enter()
				take()
				d.leave()
				d.park(w)
				select {
				case <-w.ch:
				case <-time.After(time.Microsecond):
				}
				d.enter()
				d.unpark(w)
				take()
				d.leave()
			}
		})
	}
	ss := make([]*winService, 0, services)
	for range services {
		s := &winService{wake: waiter{ch: make(chan struct{}, 1)}}
		ss = append(ss, s)
		adds.Go(func() {
			if !d.add(s) {
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

// TestServedByTheProgram has origins update, put and get while the program of the target
// waits for a message, polling or parked: most requests are performed by the goroutine
// that waits, in order with those that its service has to wait for.
func TestServedByTheProgram(t *testing.T) {
	for _, limit := range []time.Duration{time.Minute, 0} {
		t.Run(fmt.Sprint("spin=", limit), func(t *testing.T) {
			local(t, 3, serveProgram(t), overTransport(TransportSCTP), WithSpin(limit))
		})
	}
}

func serveProgram(t *testing.T) func(ctx context.Context, c *Comm) error {
	const rounds = 200
	return func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[uint64](ctx, c, 2*amInline)
		if err != nil {
			return err
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 0 {
			for range 2 { // what the others say last
				if _, err := Recv(ctx, c, make([]byte, 1), AnySource, 0); err != nil {
					return err
				}
			}
			if seen := c.w.eng.prog.hook.runs.Load(); seen < rounds/10 {
				t.Errorf("the program performed requests %d times", seen)
			}
			w.Sync()
			if got := w.Buf()[0]; got != 2*rounds {
				t.Errorf("%d updates, want %d", got, 2*rounds)
			}
		} else if err := serveOrigin(ctx, w, c.Rank(), rounds); err != nil {
			return err
		} else if err := Send(ctx, c, []byte{1}, 0, 0); err != nil {
			return err
		}
		return w.Free(ctx)
	}
}

// serveOrigin updates a word, and puts and gets a block whose length is below and above
// what a request may hold, and checks that each round sees what the one before it did.
func serveOrigin(ctx context.Context, w *Win[uint64], rank, rounds int) error {
	block, got := make([]uint64, amInline/8+1), make([]uint64, amInline/8+1)
	for i := range rounds {
		n := 1
		if i%7 == 0 {
			n = len(block) // of its own message: for the goroutine of the service
		}
		for k := range block {
			block[k] = uint64(i + k)
		}
		at := 1 + (rank-1)*len(block)
		if err := w.Put(ctx, block[:n], 0, at); err != nil {
			return err
		}
		if err := w.Get(ctx, got[:n], 0, at); err != nil {
			return err
		}
		if err := w.Accumulate(ctx, []uint64{1}, 0, 0, Sum); err != nil {
			return err
		}
		if i%3 > 0 && i%7 > 0 {
			continue // more under way
		}
		if err := w.Flush(ctx, 0); err != nil {
			return err
		}
		if !bytes.Equal(datatype.Bytes(got[:n]), datatype.Bytes(block[:n])) {
			return fmt.Errorf("round %d: a Get after a Put of %d words read something else", i, n)
		}
	}
	return w.Flush(ctx, 0)
}

// Services and the like do not wait where the program does: one that waits there would
// keep the program from reading the sockets itself.
func TestServicesWaitAside(t *testing.T) {
	var inside, most atomic.Int32
	local(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[byte](ctx, c, 8)
		if err != nil {
			return err
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		e := c.w.eng
		park := e.waiters.make
		e.waiters = waiterPool{make: func() parker { return &countedParker{park(), &inside, &most} }}
		if c.Rank() == 0 {
			if err := w.Put(ctx, []byte{1}, 1, 0); err != nil {
				return err
			}
			if err := w.Flush(ctx, 1); err != nil {
				return err
			}
		}
		if _, err := Sendrecv(ctx, c, []byte{1}, 1-c.Rank(), 0, make([]byte, 1), 1-c.Rank(), 0); err != nil {
			return err
		}
		return w.Free(ctx)
	}, overTransport(TransportSCTP), WithSpin(0))
	if n := most.Load(); n > 2 {
		t.Errorf("%d goroutines of 2 ranks wait for the program", n)
	}
}

type countedParker struct {
	parker
	inside, most *atomic.Int32
}

func (p *countedParker) Wait(stop <-chan struct{}) bool {
	if n := p.inside.Add(1); n > p.most.Load() {
		p.most.Store(n)
	}
	defer p.inside.Add(-1)
	return p.parker.Wait(stop)
}

// However many requests come, a goroutine that waits returns when its own wait, or the
// context, is over.
func TestWaitsEndUnderTraffic(t *testing.T) {
	e := &engine{}
	p := &e.prog
	s := &winService{w: &window{c: &Comm{comm: comm{eng: e}, w: &World{eng: e}}}, over: true, wake: waiter{ch: make(chan struct{}, 1)}}
	p.init(func() bool { p.hook.add(s); return true }, 100*time.Millisecond)
	p.hook.used.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	w := &waiter{ch: make(chan struct{}, 1)}
	never := func() bool { return false }
	// rest has a service pending when it wakes, and returns how often it ran.
	rest := func(done func() bool) uint32 {
		t.Helper()
		seen := p.hook.runs.Load()
		p.hook.enter()
		p.hook.add(s)
		w.signal()
		p.hook.pollers.Add(-1)
		var gap poll.Wait
		if err := p.rest(ctx, w, &gap, done); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		if p.hook.pollers.Load() != 0 || len(p.hook.parked) != 0 || p.spinning.Any() {
			t.Errorf("left %d pollers, %d parked; goroutines spin: %v", p.hook.pollers.Load(), len(p.hook.parked), p.spinning.Any())
		}
		p.hook.take()
		return p.hook.runs.Load() - seen
	}
	looks := 0
	if n := rest(func() bool { looks++; return looks > 20 }); n > 21 {
		t.Errorf("performed requests %d times, %d looks whether the wait is over", n, looks)
	}
	stop()
	if n := rest(never); n != 1 {
		t.Errorf("performed requests %d times after the end of the context", n)
	}
	began := clock()
	if p.spin(ctx, p.begin(), never) || clock()-began > int64(10*time.Second) {
		t.Error("a spin went on after the end of its context")
	}
}
