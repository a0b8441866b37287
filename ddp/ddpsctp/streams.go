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
		for range a.half(p) {
			sid := a.turn[p]
			if a.turn[p] += 2; a.turn[p] >= len(a.sessions) {
				a.turn[p] = p
			}
			if a.sessions[sid].CompareAndSwap(nil, s) {
				s.sid.Store(uint32(sid))
				return nil
			}
		}
	}
	return ErrNoStream
}

// choose decides which streams this side's sessions take: those of one parity first.
// RFC 5043 says nothing about both sides choosing the same stream. Here the side with
// the larger verification tag takes the even ones, the other side the odd ones: that
// both know, even if both have opened the association at once. A collision is dealt
// with nevertheless.
func (a *Association) choose() {
	local, peer := a.link.tags()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parity = 1
	if local > peer {
		a.parity = 0
	}
}

// scatter has the choice go on at a random place: the peer's is not of our kind and
// may make the same steps, or one of both has used up its half.
func (a *Association) scatter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parity = rand.IntN(2)
	for p := range a.turn {
		a.turn[p] = p + 2*rand.IntN(max(a.half(p), 1))
	}
}

// half returns how many streams have the parity p.
func (a *Association) half(p int) int { return (len(a.sessions) + 1 - p) / 2 }

// free makes the SID of a session available again.
func (a *Association) free(s *Session) { a.sessions[s.SID()].CompareAndSwap(s, nil) }

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
		(&Request{s: s}).refuse(Terminate, nil, false)
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
// neither session can go on there, so both move to another stream, chosen at
// random. The stream is not used again.
func (a *Association) collide(s *Session) {
	a.count.collided.Add(1)
	dead := &Session{a: a, phase: phaseDone}
	dead.sid.Store(s.sid.Load())
	a.sessions[s.SID()].Store(dead)
	a.scatter()
	s.mu.Lock()
	s.tries++
	err := ErrNoStream
	if s.tries < maxTries {
		err = a.place(s)
	}
	s.mu.Unlock()
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		s.lost(err)
	}
}
