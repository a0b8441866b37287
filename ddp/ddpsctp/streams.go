package ddpsctp

import (
	"fmt"
	"math/rand/v2"
	"time"
)

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
	// The last resort: streams on which Initiates collided, or whose peer has not ended
	// the session for long. A session there may have to be tried again.
	now := time.Now()
	for sid := range a.sessions {
		if old := a.sessions[sid].Load(); old != nil && old.reusable(now) && a.sessions[sid].CompareAndSwap(old, s) {
			s.sid.Store(uint32(sid))
			return nil
		}
	}
	return fmt.Errorf("%w: all %d are in use", ErrNoStream, len(a.sessions))
}

// lateAfter is how long the stream of a session is kept that the peer has not ended. What
// the peer has sent in it may be lost, and come with a retransmission: another session
// would take it for its own.
const lateAfter = time.Minute

// reusable reports whether another session may have the stream of one that the peer has
// not ended.
func (s *Session) reusable(now time.Time) bool {
	since := s.idle.Load()
	return since != 0 && (s.collided || now.UnixNano()-since >= int64(lateAfter))
}

// choose decides which streams this side's sessions take: those of one parity first.
// RFC 5043 says nothing about both sides choosing the same stream. Here the side with
// the larger verification tag takes the even ones, the other side the odd ones: that
// both know, even if both have opened the association at once. A collision is dealt
// with nevertheless.
func (a *Association) choose() {
	local, peer := a.link.Tags()
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
	if a.overdue() {
		// RFC 5043, Section 6.4 asks for an answer, but the peer does not read them.
		a.link.Abort("answers to session requests are not acknowledged")
		return
	}
	s := &Session{a: a, phase: phasePending, got: 1}
	s.sid.Store(uint32(sid))
	s.next.Store(1)
	var before *Session
	for {
		old := a.sessions[sid].Load()
		if old != nil && !a.yield(old, ssn) || ssn != 0 {
			return
		}
		if a.sessions[sid].CompareAndSwap(old, s) {
			before = old
			break
		}
		// A session of this side was placed there meanwhile.
	}
	if a.acc.onRequest == nil || !a.acc.take() {
		// RFC 5043, Section 6.4: over the limit "the passive side MUST respond
		// to the Initiate message with a DDP Stream Terminate Message".
		(&Request{s: s}).refuse(Terminate, nil, false)
		return
	}
	a.onProbation(1)
	r := &Request{s: s, Private: append([]byte(nil), c.Private...),
		IsEnhanced: c.Function == EnhancedInitiate, Enhanced: c.Enhanced}
	if before == nil || !before.defers(func() { a.ask(r) }) {
		a.acc.onRequest(r)
	}
}

// defers reports whether the last message of a session may be under way yet: the peer
// would take it for one of the next session on the stream, were that answered. Then f is
// called when the peer has it.
func (s *Session) defers(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.endSent || s.endAcked {
		return false
	}
	s.later = f
	return true
}

// ask has the consumer decide about a request, unless it has been taken back.
func (a *Association) ask(r *Request) {
	if r.Pending() {
		a.acc.onRequest(r)
	}
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
	// A session that is over may wait for acknowledgements that this message of the peer
	// has overtaken.
	over := old.phase == phaseDone || old.endSent && (old.released || old.complete)
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
// random. This one is left for the last resort: nothing follows the Initiates, unless
// the peer has taken its own back before.
func (a *Association) collide(s *Session) {
	a.count.collided.Add(1)
	s.mu.Lock()
	r := s.receipt
	if s.endWant || s.endSent {
		// Taken back: it ends here, and keeps the stream as long as something of it may
		// be on its way.
		if !s.endSent {
			s.endSent, s.endAcked, r.end = true, s.proven, true
		}
		s.phase, s.released, s.got = phaseDone, true, s.got+1
		s.strip()
		s.unlock()
		if sink := s.sink.Swap(nil); sink != nil {
			(*sink).Lost(ErrClosed)
		}
		return
	}
	dead := &Session{a: a, phase: phaseDone, endSent: true, endAcked: s.proven, released: true, got: 1, collided: true}
	dead.sid.Store(s.sid.Load())
	a.sessions[s.SID()].Store(dead)
	r.dead, s.proven = dead, false
	a.scatter()
	s.tries++
	err := ErrNoStream
	if s.tries < maxTries {
		err = a.place(s)
	}
	s.mu.Unlock()
	dead.mu.Lock()
	dead.unlock() // idle at once if the Initiate is acknowledged
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		s.lost(err)
	}
}
