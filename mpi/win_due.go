package mpi

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// dueServices are the services of windows that have something to do. Goroutines of
// the program that poll, or have parked, see to them: they read the sockets, so that
// they know first, and to wake that of the service would take longer than most
// requests do, and a processor that somebody else may need.
type dueServices struct {
	used    atomic.Bool   // there are or were services
	pollers atomic.Int32  // goroutines that will look before long
	some    atomic.Bool   // list is not empty
	seen    atomic.Uint32 // how often see performed something

	mu     sync.Mutex
	list   []*winService // guarded by mu
	was    []*winService // memory for the next list; guarded by mu
	parked []*waiter     // where goroutines of the program wait; guarded by mu
}

// enter is called by who will see to what is due, with see, until it calls leave.
func (d *dueServices) enter() { d.pollers.Add(1) }

// leave is the opposite of enter. What is due then is for the goroutines of the
// services, if nobody else sees to it.
func (d *dueServices) leave() {
	if d.pollers.Add(-1) == 0 && d.some.Load() {
		d.wake()
	}
}

// see performs what is due, and reports whether there was anything. No locks are held.
func (d *dueServices) see() bool {
	if !d.some.Load() {
		return false
	}
	list := d.take()
	for _, s := range list {
		s.run(context.Background(), false)
	}
	d.give(list)
	d.seen.Add(1)
	return true
}

// park notes that a goroutine of the program parks at w: it may be woken to see to
// what is due.
func (d *dueServices) park(w *waiter) {
	d.mu.Lock()
	d.parked = append(d.parked, w)
	d.mu.Unlock()
}

// unpark is the opposite of park. The caller sees to what is due then.
func (d *dueServices) unpark(w *waiter) {
	d.mu.Lock()
	d.parked = slices.DeleteFunc(d.parked, func(v *waiter) bool { return v == w })
	d.mu.Unlock()
}

// add notes that s is due. It reports false if nobody will see to it.
func (d *dueServices) add(s *winService) bool {
	d.mu.Lock()
	if d.pollers.Load() == 0 && len(d.parked) == 0 {
		d.mu.Unlock()
		return false
	}
	d.list = append(d.list, s)
	d.some.Store(true)
	d.mu.Unlock()
	if d.pollers.Load() == 0 { // or the last has left without a look
		d.wake()
	}
	return true
}

// wake has a goroutine that has parked see to what is due, or else those of the services.
func (d *dueServices) wake() {
	d.mu.Lock()
	if n := len(d.parked); n > 0 {
		d.parked[n-1].signal()
		d.mu.Unlock()
		return
	}
	d.mu.Unlock()
	list := d.take()
	for _, s := range list {
		s.wake.notify()
	}
	d.give(list)
}

func (d *dueServices) take() []*winService {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list, d.was = d.was[:0], nil
	d.some.Store(false)
	return list
}

// give returns the memory of a list.
func (d *dueServices) give(list []*winService) {
	clear(list)
	d.mu.Lock()
	d.was = list
	d.mu.Unlock()
}
