package mpi

import (
	"slices"
	"sync"
	"sync/atomic"
)

// progressHook makes progress for one-sided communication by messages (active-message RMA): it
// lists the services of windows that have received requests. Goroutines of the program that poll,
// or have parked, call it and perform the requests, because they read the sockets and see a
// request first. Waking the goroutine of the service would take longer than most requests do,
// and a processor that another goroutine may need.
type progressHook struct {
	used    atomic.Bool   // true from the first service on
	pollers atomic.Int32  // number of goroutines between enter and leave
	pending atomic.Bool   // true while list is not empty
	runs    atomic.Uint32 // counts runs that performed something

	mu     sync.Mutex
	list   []hookService // with requests to perform; guarded by mu
	was    []hookService // memory for the next list; guarded by mu
	parked []*waiter     // where goroutines of the program park; guarded by mu
}

// hookService is a service that has received requests.
type hookService interface {
	// Serve performs the requests that take no time.
	Serve()
	// Wake leaves the requests to the goroutine of the service.
	Wake()
}

// enter is called by a goroutine that will call run again and again until it calls leave.
func (h *progressHook) enter() { h.pollers.Add(1) }

// leave is the opposite of enter. After the last goroutine has left, pending services are woken,
// or a parked goroutine.
func (h *progressHook) leave() {
	if h.pollers.Add(-1) == 0 && h.pending.Load() {
		h.wake()
	}
}

// run performs the requests of pending services, and reports whether there were any. The caller
// holds no locks.
func (h *progressHook) run() bool {
	if !h.pending.Load() {
		return false
	}
	list := h.take()
	for _, s := range list {
		s.Serve()
	}
	h.give(list)
	h.runs.Add(1)
	return true
}

// park notes that a goroutine of the program parks at w: it may be woken to call run.
func (h *progressHook) park(w *waiter) {
	h.mu.Lock()
	h.parked = append(h.parked, w)
	h.mu.Unlock()
}

// unpark is the opposite of park. The caller calls run then.
func (h *progressHook) unpark(w *waiter) {
	h.mu.Lock()
	h.parked = slices.DeleteFunc(h.parked, func(v *waiter) bool { return v == w })
	h.mu.Unlock()
}

// add makes s pending. It reports false if no goroutine polls or has parked: the service performs its
// requests itself.
func (h *progressHook) add(s hookService) bool {
	h.mu.Lock()
	if h.pollers.Load() == 0 && len(h.parked) == 0 {
		h.mu.Unlock()
		return false
	}
	h.list = append(h.list, s)
	h.pending.Store(true)
	h.mu.Unlock()
	if h.pollers.Load() == 0 { // or the last has left without calling run
		h.wake()
	}
	return true
}

// wake wakes a parked goroutine, which calls run, or if none has parked the goroutines of the services.
func (h *progressHook) wake() {
	h.mu.Lock()
	if n := len(h.parked); n > 0 {
		h.parked[n-1].signal()
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	list := h.take()
	for _, s := range list {
		s.Wake()
	}
	h.give(list)
}

// take returns the pending services and empties the list.
func (h *progressHook) take() []hookService {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list, h.was = h.was[:0], nil
	h.pending.Store(false)
	return list
}

// give returns the memory of a list.
func (h *progressHook) give(list []hookService) {
	clear(list)
	h.mu.Lock()
	h.was = list
	h.mu.Unlock()
}
