package relay

import (
	"sync/atomic"

	"github.com/weftstack/weft/sctp"
)

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

// tell has OnProgress called. mu is held; the caller calls runUpcalls after it has released it.
func (s *Sender) tell() {
	if s.upcalls.OnProgress != nil && !s.told {
		s.told = true
		s.n.told.Push(s)
	}
}

// released is a message that its owner is to be told about.
type released struct {
	owner sctp.SendOwner
	err   error
}

// runUpcalls tells the owners of messages, calls OnFragment for the flows of others that have ended, and OnProgress
// for those of this process that have made progress. No lock is held.
func (n *Node) runUpcalls() {
	var batch [32]released
	for {
		k := 0
		var s *Sender
		var call func(*Sender)
		n.mu.Lock()
		if n.ended.Len() > 0 {
			n.ended.Pop().deliver()
			n.mu.Unlock()
			continue
		}
		for ; k < len(batch) && n.released.Len() > 0; k++ {
			batch[k] = n.released.Pop()
		}
		if k == 0 && n.told.Len() > 0 {
			s = n.told.Pop()
			s.told = false
			call = s.upcalls.OnProgress
		}
		n.mu.Unlock()
		for i, r := range batch[:k] {
			batch[i] = released{}
			r.owner.Released(r.err)
		}
		if call != nil {
			call(s)
		}
		if k == 0 && s == nil {
			return
		}
	}
}

// Close ends the flow with ErrClosed: what the target has not confirmed may be lost. The owners of messages are told soon after, not
// within this call. Node.Sender begins the flow again.
func (s *Sender) Close() {
	s.n.mu.Lock()
	s.fail(ErrClosed)
	s.n.mu.Unlock()
}

// Disown tells the owners of the messages of a group (SendOptions.Group) that are not confirmed, with err, as if the flow had ended.
// The messages arrive nevertheless.
func (s *Sender) Disown(group uint32, err error) {
	n := s.n
	n.mu.Lock()
	for _, q := range [...]*sequence{&s.data, &s.single} {
		for i := range q.kept.Len() {
			if p := *q.kept.At(i); p.owner != nil && p.group == group {
				n.released.Push(released{p.owner, err})
				p.owner = nil
			}
		}
	}
	n.mu.Unlock()
	n.runUpcalls()
}
