package ddpsctp

import (
	"fmt"

	"github.com/weftstack/weft/ddp"
)

// Request is a peer's Initiate, waiting for a decision.
type Request struct {
	s *Session
	// Private is the private data, the enhanced part excluded.
	Private []byte
	// IsEnhanced tells that Enhanced is valid.
	IsEnhanced bool
	Enhanced   Enhanced
}

// Pending reports whether the request can still be answered: the peer may have
// taken it back.
func (r *Request) Pending() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.phase == phasePending
}

// Association returns the association of the request.
func (r *Request) Association() *Association { return r.s.a }

// Accept accepts the request: bind gives the session to its stream, whose sink
// then gets the segments. e is the enhanced data of the answer, used if the
// request was enhanced.
func (r *Request) Accept(sink ddp.Sink, bind func(*Session) error, e Enhanced, private []byte) error {
	c := Control{Function: Accept, Private: private}
	limit := MaxPrivate
	if r.IsEnhanced {
		c.Function, c.Enhanced = EnhancedAccept, e
		limit -= enhancedLen
		if r.Enhanced.PeerToPeer {
			// RFC 6581, Section 9.2: mirror A, and offer what costs nothing: a
			// zero-length write or read needs no receive buffer.
			c.Enhanced.PeerToPeer, c.Enhanced.RTRWrite, c.Enhanced.RTRRead = true, true, true
		}
	}
	if len(private) > limit {
		return privateError(len(private), limit)
	}
	s := r.s
	s.mu.Lock()
	if s.phase != phasePending {
		s.mu.Unlock()
		return ErrAnswered
	}
	s.phase = phaseOpen
	s.mu.Unlock()
	s.a.count.accepted.Add(1)
	s.a.decided()
	s.a.admit()
	if err := bind(s); err != nil {
		s.mu.Lock()
		s.phase = phasePending
		s.mu.Unlock()
		r.refuse(Terminate, nil, false)
		return err
	}
	s.sink.Store(&sink)
	if err := sink.Skip(0); err != nil {
		return err
	}
	return s.control(0, &c)
}

// Reject rejects the request at the direction of the consumer.
func (r *Request) Reject(private []byte) error {
	if len(private) > MaxPrivate {
		return privateError(len(private), MaxPrivate)
	}
	f := Reject
	if r.IsEnhanced {
		f = EnhancedReject
	}
	return r.refuse(f, private, true)
}

// Refuse refuses the request without a decision of the consumer.
func (r *Request) Refuse() error { return r.refuse(Terminate, nil, true) }

// refuse answers with the only message of a session that never was.
func (r *Request) refuse(f Function, private []byte, pending bool) error {
	s := r.s
	s.mu.Lock()
	if s.phase != phasePending {
		s.mu.Unlock()
		return ErrAnswered
	}
	s.phase, s.endSent, s.released, s.complete = phaseDone, true, true, true
	s.mu.Unlock()
	if pending {
		s.a.decided()
	}
	if f == Terminate {
		s.a.count.refused.Add(1)
	} else {
		s.a.count.rejected.Add(1)
	}
	return s.a.sendControl(s.SID(), 0, &Control{Function: f, Private: private}, &receipt{s: s, end: true})
}

func privateError(n, limit int) error {
	return fmt.Errorf("%w: %d bytes: at most %d", ErrPrivate, n, limit)
}
