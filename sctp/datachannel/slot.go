package datachannel

import "fmt"

// slot is a pair of streams with one number, of which at least one is in use (RFC 8831, Section
// 6.4). It is guarded by Session.mu.
type slot struct {
	id uint16
	// ch is the channel. It is nil while the number is only reserved, and on a stream on which
	// the peer sent what it should not have.
	ch *Channel
	// out and in are the states of the outgoing and the incoming stream.
	out outState
	in  inState
	// again is true if the outgoing stream is in use again since its reset was requested.
	again    bool
	unopened bool // there is no channel: the peer is yet to reset its stream
	gone     bool // not in Session.slots any more
}

// outState is what has become of an outgoing stream.
type outState uint8

const (
	outUsed   outState = iota // by the channel
	outWanted                 // it is in Session.resets
	outAsked                  // its reset has been requested
	outReset                  // it has been reset
	outLost                   // the reset failed: the number cannot be used again
)

// inState is what has become of an incoming stream.
type inState uint8

const (
	inUsed    inState = iota // by the channel
	inDiscard                // what comes is discarded until the peer resets it
	inReset                  // it has been reset
)

// maxUnopened bounds the streams without a channel that are kept because the peer has sent on them
// what it should not have. Further ones are not reset before there is room again; what comes on
// them is discarded all the same.
const maxUnopened = 1024

// reserve takes the number of a new channel. mu is held.
func (s *Session) reserve(o *Options) (*slot, error) {
	if s.ended {
		return nil, s.endError()
	}
	id := int(o.ID)
	if !o.Negotiated {
		for id = s.low; id < numStreams && s.slots[uint16(id)] != nil; id += 2 {
		}
		s.low = id
	}
	switch {
	case id >= numStreams:
		return nil, fmt.Errorf("%w: number %d of at most %d", ErrNoStream, id, numStreams-1)
	case s.slots[uint16(id)] != nil:
		return nil, fmt.Errorf("%w: %d", ErrInUse, id)
	}
	sl := &slot{id: uint16(id)}
	s.slots[sl.id] = sl
	return sl, nil
}

// release gives the number of sl back. mu is held.
func (s *Session) release(sl *slot) {
	if sl.gone {
		return
	}
	sl.gone = true
	delete(s.slots, sl.id)
	if s.ours(sl.id) {
		s.low = min(s.low, int(sl.id))
	}
	if sl.unopened {
		s.unopened--
	}
}

// ours reports whether this side opens channels with the number (RFC 8832, Section 6).
func (s *Session) ours(id uint16) bool { return id&1 == uint16(s.cfg.Role-Client) }
