package sctp

// Waiter is where a goroutine waits for something that an upcall or another
// goroutine will do, in the way Recv waits for a message: the goroutine may take
// the place of the reader of the sockets, so that what it waits for is not
// brought to it by another thread. A Waiter serves one goroutine at a time.
type Waiter struct {
	t *Transport
	w waiter
}

// NewWaiter returns a Waiter.
func (t *Transport) NewWaiter() *Waiter {
	return &Waiter{t: t, w: waiter{ch: make(chan struct{}, 1)}}
}

// Wait blocks until Wake is called, and reports true, or until stop is closed. A
// Wake since the last Wait counts. The calling goroutine may make upcalls
// meanwhile.
func (w *Waiter) Wait(stop <-chan struct{}) bool {
	return w.t.waitOn(&w.w, stop, nil) == nil
}

// Wake ends the Wait that is going on, or the next one. It never blocks and may
// be called from upcalls and with locks held.
func (w *Waiter) Wake() { w.w.wake() }
