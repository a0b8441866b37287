package mpi

import "context"

// serviceContext is a matching context of a service of the library that belongs to no communicator:
// a rank exchanges messages in it with any peer.
type serviceContext struct {
	eng *engine
	x   *matchContext
}

// newServiceContext makes the context with an id, the same on all ranks. It exists before the first
// message can arrive.
func newServiceContext(e *engine, id uint64) *serviceContext {
	x := newContext(id | uint64(slotColl))
	x.internal = true
	e.contexts[x.id] = x
	return &serviceContext{eng: e, x: x}
}

// receive calls f, on the goroutine of the caller, for each message of up to size bytes, until the
// rank ends. f must not keep b.
func (s *serviceContext) receive(size int, f func(from *peer, b []byte)) {
	e := s.eng
	buf := make([]byte, size)
	w := e.internalWaiters.get()
	defer w.recycle()
	for {
		r := getRequest(e)
		r.ctx, r.src, r.tag, r.buf = s.x, anySource, anyTag, buf
		e.mu.Lock()
		if e.err != nil {
			e.mu.Unlock()
			return
		}
		s.x.post(r)
		ms := s.x.taken()
		e.mu.Unlock()
		e.handAll(ms)
		if r.addWaiter(w) {
			for !r.done.Load() {
				_ = w.wait(context.Background())
			}
		}
		if r.err != nil {
			continue // the sender died, or the rank has ended
		}
		f(r.peer, buf[:r.status.Bytes])
		r.recycle()
	}
}

// send sends b to p. It does not wait, and b must not be changed afterwards. A failure of p is not
// reported.
func (s *serviceContext) send(p *peer, b []byte) {
	c := &comm{eng: s.eng, peers: []*peer{p}, seq: make([]uint32, 1)}
	c.ctx[slotColl] = s.x
	h := s.eng.defaultHints()
	c.hints.Store(&h)
	_, _ = c.isend(slotColl, sendStandard, b, 0, 0)
}
