package relay

import (
	"fmt"
	"time"

	"github.com/weftstack/weft/sctp/relay/frame"
)

// strip frees the memory of p, which a gateway has acknowledged, in mode Lossy. Its place stays until the target has
// confirmed it, for its number and credit.
func (s *Sender) strip(p *packet) {
	n := s.n
	defer n.runUpcalls()
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.refs.Load() != 2 || p.buf == nil { // the caller's and that of kept
		return
	}
	s.reserve(packetCost - p.cost())
	p.buf.Put()
	p.buf = nil
	wake(s.room)
	s.tell()
}

// lost ends the flow if what the target lacks, by the flags of its ack, is not kept any more. mu is held.
func (s *Sender) lost(flags frame.Flags) bool {
	gone := func(q *sequence) bool { return q.kept.Len() > 0 && (*q.kept.At(0)).buf == nil }
	if (flags&frame.Resend == 0 || !gone(&s.data)) && (flags&frame.ResendSingle == 0 || !gone(&s.single)) {
		return false
	}
	frames := s.data.kept.Len() + s.single.kept.Len()
	s.data.next, s.single.next = s.data.end(), s.single.end() // for tellLost
	s.telling, s.probed = true, time.Time{}
	s.fail(fmt.Errorf("%w: flow to %v on stream %d, of %d frames that are not confirmed", ErrLost, s.to, s.stream, frames))
	return true
}

// tellLost tells the target of a flow that has ended by a loss, until it answers. It reports false when that is over.
// mu is held.
func (s *Sender) tellLost(now time.Time) bool {
	if s.heard.IsZero() {
		s.heard = now
	}
	if t := s.n.cfg.PeerTimeout; t > 0 && now.Sub(s.heard) >= t || s.n.senders[flowID{s.to, s.stream}] != s {
		s.telling = false
		return false
	}
	if s.leg = s.n.legTo(s.to, s.hash); s.leg != nil && now.Sub(s.probed) >= probeAfter {
		s.probed = now
		s.probe(frame.Gone)
	}
	return true
}

// onGone handles a probe of an origin that cannot send again what precedes it. mu is held.
func (r *Receiver) onGone(c *conn, f *frame.Frame) {
	if r.err == nil && (int32(f.Seq-r.next) > 0 || int32(f.SingleNext-r.base) > 0) {
		r.end(fmt.Errorf("%w: flow from %v on stream %d, after frame %d", ErrLost, r.from, r.stream, r.next))
	}
	r.n.answerUnknown(c, f)
}
