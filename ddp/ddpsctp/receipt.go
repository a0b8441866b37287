package ddpsctp

// receipt is the ddp.Owner of a control message.
type receipt struct {
	s    *Session
	cost int64
	end  bool     // guarded by s.mu: nothing follows the message in its session
	dead *Session // guarded by s.mu: has the place of s on the stream since a collision
}

// Released implements ddp.Owner.
func (r *receipt) Released(err error) {
	s := r.s
	s.a.unacked.Add(-r.cost)
	if err != nil {
		return
	}
	s.mu.Lock()
	if d := r.dead; d != nil {
		s.mu.Unlock()
		d.mu.Lock()
		d.endIsAcked()
		return
	}
	if r.end {
		s.endIsAcked()
		return
	}
	s.proved()
}

// endIsAcked notes that the peer has the last message of this side. mu is held, and is
// unlocked.
func (s *Session) endIsAcked() {
	s.endAcked = true
	later := s.later
	s.later = nil
	s.unlock()
	if later != nil {
		later()
	}
}
