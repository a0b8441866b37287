package datachannel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weftstack/weft/sctp"
)

const (
	// maxResets is how many streams one reset request names.
	maxResets = 200
	// busyDelay is how long a reset request waits when too many requests of the program's
	// own wait for the peer's answer.
	busyDelay = 50 * time.Millisecond
)

// unlock unlocks mu and does what has to wait for that: it requests resets, and tells the
// association how much is held of what was received.
func (s *Session) unlock() {
	var batch []*slot
	if len(s.resets) > 0 && !s.resetting && !s.ended {
		n := min(len(s.resets), maxResets)
		batch, s.resets = s.resets[:n:n], s.resets[n:]
		s.resetting = true
		for _, sl := range batch {
			sl.out = outAsked
		}
	}
	held := 0
	if s.held >= s.slack || s.held <= -s.slack {
		held, s.held = s.held, 0
	}
	s.mu.Unlock()
	if held != 0 {
		s.assoc.KeepReceived(held)
	}
	if batch != nil {
		go s.reset(batch)
	}
}

// reset resets the outgoing streams of a batch (RFC 6525). It ends with the answer of the peer,
// or with the association.
func (s *Session) reset(batch []*slot) {
	ids := make([]uint16, len(batch))
	for i, sl := range batch {
		ids[i] = sl.id
	}
	err := s.assoc.ResetStreams(context.Background(), ids...)
	for errors.Is(err, sctp.ErrBusy) {
		t := time.NewTimer(busyDelay)
		select {
		case <-t.C:
			err = s.assoc.ResetStreams(context.Background(), ids...)
		case <-s.done:
			t.Stop()
			return
		}
	}
	s.mu.Lock()
	s.resetting = false
	for _, sl := range batch {
		s.wasReset(sl, err)
	}
	s.unlock()
}

// wantReset has the outgoing stream of sl reset. mu is held.
func (s *Session) wantReset(sl *slot) {
	sl.out = outWanted
	s.resets = append(s.resets, sl)
}

// mayReset has the outgoing stream of c reset if c is to be closed and all that was sent has been
// acknowledged or abandoned. RFC 6525 would have the request wait for that, and with it those for
// other streams. mu is held.
func (s *Session) mayReset(c *Channel) {
	if c.state == Closing && c.outstanding == 0 && c.slot.ch == c && c.slot.out == outUsed {
		s.wantReset(c.slot)
	}
}

// wasReset notes the outcome of a reset of an outgoing stream. mu is held.
func (s *Session) wasReset(sl *slot, err error) {
	if sl.gone || sl.out != outAsked {
		return
	}
	c := sl.ch
	switch {
	case errors.Is(err, sctp.ErrDenied), errors.Is(err, sctp.ErrNotSupported), errors.Is(err, sctp.ErrNoStream):
		// The peer has not been told, or has refused: the number stays taken.
		if c != nil {
			s.dropParts(sl.id)
			s.finish(c, fmt.Errorf("datachannel: reset of stream %d: %w", sl.id, err))
		}
		s.detach(sl)
		sl.out, sl.in, sl.again = outLost, inDiscard, false
	case err != nil: // the end of the association, or a restart, which ends the channels
	case sl.again:
		sl.out, sl.again = outUsed, false
		if c == nil {
			s.wantReset(sl)
		} else {
			s.mayReset(c)
		}
	default:
		sl.out = outReset
		s.freeIfReset(sl)
	}
}

// peerReset notes that the peer has reset its outgoing stream. mu is held.
//
// RFC 8831, Section 6.7: "When the peer sees that an incoming stream was reset, it also resets its
// corresponding outgoing stream."
func (s *Session) peerReset(sl *slot) {
	c := sl.ch
	if sl.out == outLost || c == nil && !sl.unopened {
		return
	}
	sl.in = inReset
	if c != nil {
		if c.state == Connecting && c.err == nil {
			c.err = fmt.Errorf("%w: the peer has closed %q before it acknowledged it: it refuses the channel, "+
				"or both sides have Role %v", ErrClosed, c.label, s.cfg.Role)
		}
		c.eof = true
		c.close()
		s.mayReset(c)
	}
	s.freeIfReset(sl)
}

// freeIfReset frees the number of sl once both streams have been reset. mu is held.
func (s *Session) freeIfReset(sl *slot) {
	if sl.out != outReset || sl.in != inReset {
		return
	}
	if sl.ch != nil {
		s.finish(sl.ch, nil)
	}
	s.release(sl)
}

// detach takes the channel from sl, both of whose streams the peer has seen reset. mu is held.
func (s *Session) detach(sl *slot) {
	if sl.ch != nil {
		s.finish(sl.ch, nil)
		sl.ch = nil
	}
	if sl.unopened {
		sl.unopened = false
		s.unopened--
	}
}

// reject closes what the peer uses in violation of the protocol, or beyond a limit (RFC 8831,
// Section 6.6; RFC 8832, Section 6). mu is held.
func (s *Session) reject(id uint16, why error) {
	sl := s.slots[id]
	switch {
	case sl == nil:
		if s.unopened >= maxUnopened {
			return
		}
		sl = &slot{id: id, unopened: true, in: inDiscard}
		s.slots[id] = sl
		s.unopened++
		if out, _ := s.assoc.Streams(); id < out {
			s.wantReset(sl)
		} else {
			sl.out = outReset // there is none
		}
	case sl.ch != nil && sl.in == inUsed:
		s.fail(sl.ch, why)
	case sl.in != inReset:
	case sl.out == outAsked:
		// The peer may have performed the reset already: what it has sent since needs one
		// of its own.
		if s.unopened >= maxUnopened {
			return
		}
		s.detach(sl)
		sl.unopened, sl.in, sl.again = true, inDiscard, true
		s.unopened++
	default:
		sl.in = inDiscard // our reset is yet to come
	}
}

// fail closes c because of what the peer sent. Messages that came before can be received. mu is
// held.
func (s *Session) fail(c *Channel, why error) {
	c.slot.in = inDiscard
	s.dropParts(c.id)
	if c.err == nil {
		c.err = fmt.Errorf("datachannel: stream %d: %w", c.id, why)
	}
	c.eof = true
	c.close()
	s.mayReset(c)
}

// finish ends c, because of err unless there is a reason already. mu is held.
func (s *Session) finish(c *Channel, err error) {
	if c.state == Closed {
		return
	}
	if c.err == nil {
		c.err = err
	}
	c.eof = true
	c.close()
	c.state = Closed
	close(c.done)
	if c.remote {
		s.remote--
		s.names -= len(c.label) + len(c.opts.Protocol)
	}
}

// notify handles a notification of the association.
func (s *Session) notify(n sctp.Notification) {
	switch n.Kind {
	case sctp.NotifyStreamsReset:
		s.mu.Lock()
		if len(n.Streams) == 0 {
			for _, sl := range s.slots {
				s.peerReset(sl)
			}
		}
		for _, id := range n.Streams {
			if sl := s.slots[id]; sl != nil {
				s.peerReset(sl)
			}
		}
		s.unlock()
	case sctp.NotifyRestart:
		s.mu.Lock()
		s.endChannels(sctp.ErrRestart)
		s.unlock()
	case sctp.NotifyDown:
		s.mu.Lock()
		s.ended, s.err = true, n.Err
		s.endChannels(n.Err)
		s.unlock()
		close(s.done)
	}
}

// endChannels ends all channels because of err: none of their streams is in use any more. mu is
// held.
func (s *Session) endChannels(err error) {
	for id, sl := range s.slots {
		if sl.ch != nil {
			s.finish(sl.ch, err)
		}
		s.dropParts(id)
		s.release(sl)
	}
	s.resets = nil
}
