package sctp

// Waiter lets a goroutine wait for something that an upcall or another goroutine will do, in
// the way in which [Association.Recv] waits for a message. Leader/Followers: the waiting
// goroutine may read the sockets itself, so that a datagram wakes it directly. A Waiter serves
// one goroutine at a time.
type Waiter struct {
	t *Transport
	w waiter
}

// NewWaiter returns a [Waiter] for upcalls of the transport.
func (t *Transport) NewWaiter() *Waiter {
	return &Waiter{t: t, w: waiter{ch: make(chan struct{}, 1)}}
}

// Wait blocks until [Waiter.Wake] is called, and reports true, or until stop is closed, and
// reports false. A Wake since the last Wait counts. The calling goroutine may make upcalls
// meanwhile, so it must not hold locks that those take.
func (w *Waiter) Wait(stop <-chan struct{}) bool {
	return w.t.waitOn(&w.w, stop, nil) == nil
}

// Wake ends the current [Waiter.Wait], or the next one. It never blocks and may be called from
// upcalls and with locks held.
func (w *Waiter) Wake() { w.w.wake() }
