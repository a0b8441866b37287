package p2p

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Hook makes progress for one-sided communication by messages (active-message RMA): it
// lists the services of windows that have received requests. Goroutines of the program that poll,
// or have parked, call it and perform the requests, because they read the sockets and see a
// request first. Waking the goroutine of the service would take longer than most requests do,
// and a processor that another goroutine may need.
type Hook struct {
	Used    atomic.Bool   // true from the first service on
	pollers atomic.Int32  // number of goroutines between enter and leave
	pending atomic.Bool   // true while list is not empty
	Runs    atomic.Uint32 // counts runs that performed something

	mu     sync.Mutex
	list   []Service // with requests to perform; guarded by mu
	was    []Service // memory for the next list; guarded by mu
	parked []*Waiter // where goroutines of the program park; guarded by mu
}

// Service is a service that has received requests.
type Service interface {
	// Serve performs the requests that take no time.
	Serve()
	// Wake leaves the requests to the goroutine of the service.
	Wake()
}

// enter is called by a goroutine that will call run again and again until it calls leave.
func (h *Hook) enter() { h.pollers.Add(1) }

// leave is the opposite of enter. After the last goroutine has left, pending services are woken,
// or a parked goroutine.
func (h *Hook) leave() {
	if h.pollers.Add(-1) == 0 && h.pending.Load() {
		h.wake()
	}
}

// run performs the requests of pending services, and reports whether there were any. The caller
// holds no locks.
func (h *Hook) run() bool {
	if !h.pending.Load() {
		return false
	}
	list := h.take()
	for _, s := range list {
		s.Serve()
	}
	h.give(list)
	h.Runs.Add(1)
	return true
}

// park notes that a goroutine of the program parks at w: it may be woken to call run.
func (h *Hook) park(w *Waiter) {
	h.mu.Lock()
	h.parked = append(h.parked, w)
	h.mu.Unlock()
}

// unpark is the opposite of park. The caller calls run then.
func (h *Hook) unpark(w *Waiter) {
	h.mu.Lock()
	h.parked = slices.DeleteFunc(h.parked, func(v *Waiter) bool { return v == w })
	h.mu.Unlock()
}

// Add makes s pending. It reports false if no goroutine polls or has parked: the service performs its
// requests itself.
func (h *Hook) Add(s Service) bool {
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
func (h *Hook) wake() {
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
func (h *Hook) take() []Service {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list, h.was = h.was[:0], nil
	h.pending.Store(false)
	return list
}

// give returns the memory of a list.
func (h *Hook) give(list []Service) {
	clear(list)
	h.mu.Lock()
	h.was = list
	h.mu.Unlock()
}
