package p2p

import "context"

// ServiceContext is a matching context of a service of the library that belongs to no communicator:
// a rank exchanges messages in it with any peer.
type ServiceContext struct {
	eng *Engine
	x   *Context
}

// NewServiceContext makes the context with an id, the same on all ranks. It exists before the first
// message can arrive.
func NewServiceContext(e *Engine, id uint64) *ServiceContext {
	x := NewContext(id | uint64(SlotColl))
	x.internal = true
	e.Contexts[x.id] = x
	return &ServiceContext{eng: e, x: x}
}

// Receive calls f, on the goroutine of the caller, for each message of up to size bytes, until the
// rank ends. f must not keep b.
func (s *ServiceContext) Receive(size int, f func(from *Peer, b []byte)) {
	e := s.eng
	buf := make([]byte, size)
	w := e.internalWaiters.Get()
	defer w.Recycle()
	for {
		r := GetRequest(e)
		r.Context, r.src, r.tag, r.Buf = s.x, AnySource, AnyTag, buf
		e.Mu.Lock()
		if e.err != nil {
			e.Mu.Unlock()
			return
		}
		s.x.post(r)
		ms := s.x.taken()
		e.Mu.Unlock()
		e.handAll(ms)
		if r.AddWaiter(w) {
			for !r.Finished.Load() {
				_ = w.wait(context.Background())
			}
		}
		if r.Err != nil {
			continue // the sender died, or the rank has ended
		}
		f(r.Peer, buf[:r.Status.Bytes])
		r.Recycle()
	}
}

// Send sends b to p. It does not wait, and b must not be changed afterwards. A failure of p is not
// reported.
func (s *ServiceContext) Send(p *Peer, b []byte) {
	c := &Comm{Engine: s.eng, Peers: []*Peer{p}, seq: make([]uint32, 1)}
	c.Contexts[SlotColl] = s.x
	h := s.eng.DefaultHints()
	c.Hints.Store(&h)
	_, _ = c.Isend(SlotColl, SendStandard, b, 0, 0)
}
