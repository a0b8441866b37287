package ddpsctp

import "math/rand/v2"

// maxTries bounds how often an Initiate is repeated on another stream because
// both sides chose the same one.
const maxTries = 16

// place gives a session a free SID. s.mu is held, because the upcall may find
// the session before its SID is set.
func (a *Association) place(s *Session) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	for try := range 2 {
		p := (a.parity + try) % 2 // the other half when ours is used up
		for a.fresh[p] < len(a.sessions) {
			sid := a.fresh[p]
			a.fresh[p] += 2
			if a.sessions[sid].CompareAndSwap(nil, s) {
				s.sid.Store(uint32(sid))
				return nil
			}
		}
		for n := len(a.reuse[p]); n > 0; n-- {
			sid := a.reuse[p][0]
			a.reuse[p] = append(a.reuse[p][:0], a.reuse[p][1:]...)
			if a.sessions[sid].CompareAndSwap(nil, s) {
				s.sid.Store(uint32(sid))
				return nil
			}
		}
	}
	return ErrNoStream
}

// free makes the SID of a session available again.
func (a *Association) free(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if sid := s.SID(); a.sessions[sid].CompareAndSwap(s, nil) {
		if p := sid % 2; int(sid) < a.fresh[p] {
			a.reuse[p] = append(a.reuse[p], sid)
		}
	}
}

// initiated takes an Initiate of the peer.
func (a *Association) initiated(sid, ssn uint16, c *Control) {
	s := &Session{a: a, phase: phasePending}
	s.sid.Store(uint32(sid))
	s.next.Store(1)
	for {
		old := a.sessions[sid].Load()
		if old != nil && !a.yield(old, ssn) || ssn != 0 {
			return
		}
		if a.sessions[sid].CompareAndSwap(old, s) {
			break
		}
		// A session of this side was placed there meanwhile.
	}
	if a.onRequest == nil || a.ep != nil && !a.ep.take() {
		// RFC 5043, Section 6.4: over the limit "the passive side MUST respond
		// to the Initiate message with a DDP Stream Terminate Message".
		a.count.refused.Add(1)
		a.sessions[sid].CompareAndSwap(s, nil)
		a.sendControl(sid, 0, &Control{Function: Terminate}, &receipt{})
		return
	}
	a.onRequest(&Request{s: s, Private: append([]byte(nil), c.Private...),
		IsEnhanced: c.Function == EnhancedInitiate, Enhanced: c.Enhanced})
}

// yield decides what becomes of a session when the peer initiates another on
// its stream. It reports whether the new one may take its place.
func (a *Association) yield(old *Session, ssn uint16) bool {
	old.mu.Lock()
	waiting := old.active && old.phase == phaseInitiated
	if waiting && !old.begun && ssn == 0 {
		// The peer was first: ours goes elsewhere.
		err := a.place(old)
		old.mu.Unlock()
		if err != nil {
			old.lost(err)
		}
		return true
	}
	over := old.phase == phaseDone || old.endSent && old.released
	old.mu.Unlock()
	switch {
	case ssn == 0 && waiting:
		a.collide(old)
		return false
	case ssn == 0 && over:
		return true
	}
	old.kill(ErrProtocol)
	return false
}

// collide deals with Initiates of both sides on one stream. Both sides see it;
// neither session can go on there, so both move to another stream, of a parity
// chosen at random. The stream is not used again.
func (a *Association) collide(s *Session) {
	a.count.collided.Add(1)
	dead := &Session{a: a, phase: phaseDone}
	dead.sid.Store(s.sid.Load())
	a.sessions[s.SID()].Store(dead)
	a.mu.Lock()
	a.parity = rand.IntN(2)
	a.mu.Unlock()
	s.mu.Lock()
	s.tries++
	again := s.tries < maxTries && a.place(s) == nil
	s.mu.Unlock()
	if !again || s.begin() != nil {
		s.lost(ErrNoStream)
	}
}
