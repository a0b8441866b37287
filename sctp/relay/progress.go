package relay

import "sync/atomic"

// value is what a program attaches to a flow.
type value struct{ p atomic.Pointer[any] }

func (v *value) load() any {
	if p := v.p.Load(); p != nil {
		return *p
	}
	return nil
}

// SetValue attaches v to the flow, for the program's own use.
func (s *Sender) SetValue(v any) { s.value.p.Store(&v) }

// Value returns what SetValue attached last.
func (s *Sender) Value() any { return s.value.load() }

// SetValue attaches v to the flow, for the program's own use.
func (r *Receiver) SetValue(v any) { r.value.p.Store(&v) }

// Value returns what SetValue attached last.
func (r *Receiver) Value() any { return r.value.load() }

// Progress returns how many bytes of messages and headers the target has confirmed since the flow began, and why the
// flow has ended, nil while it has not. It does not block. The bytes of unordered messages of one frame may be counted
// before those of messages sent earlier.
func (s *Sender) Progress() (confirmed uint64, err error) {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	return s.done, s.state()
}

// tell has OnProgress called. mu is held; the caller calls upcalls after it has released it.
func (s *Sender) tell() {
	if s.n.cfg.OnProgress != nil && !s.told {
		s.told = true
		s.n.told.push(s)
	}
}

// upcalls calls OnProgress for the flows that have made progress. No lock is held.
func (n *Node) upcalls() {
	if n.cfg.OnProgress == nil {
		return
	}
	for {
		n.mu.Lock()
		if n.told.len() == 0 {
			n.mu.Unlock()
			return
		}
		s := n.told.pop()
		s.told = false
		n.mu.Unlock()
		n.cfg.OnProgress(s)
	}
}
