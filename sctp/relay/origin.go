package relay

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/weftstack/weft/sctp/relay/frame"
)

// push queues what credit allows on the leg. mu is held; the caller pumps.
func (s *Sender) push() {
	if s.err != nil || s.data.kept.Len()+s.single.kept.Len() == 0 {
		return
	}
	if !s.busy {
		s.busy = true
		s.n.busy = append(s.n.busy, s)
		s.progress, s.heard, s.probed = time.Time{}, time.Time{}, time.Time{}
	}
	if want := s.n.legTo(s.to, s.hash); s.leg != want {
		if s.leg != nil && (s.data.unconfirmed()+s.single.unconfirmed() > 0 || !s.leg.idle(&s.q)) {
			return // it moves when all is confirmed
		}
		s.leg = want
		s.counters.Moves++
	}
	if s.leg == nil {
		return
	}
	s.pushSequence(&s.single, maxSingles)
	s.pushSequence(&s.data, 1<<31-1)
}

func (s *Sender) pushSequence(q *sequence, most int) {
	for q.next != q.end() && q.unconfirmed() < most {
		at := q.kept.At(q.unconfirmed())
		p := *at
		if p.buf == nil { // a gateway had it, see strip
			s.out += p.credit
			q.next++
			continue
		}
		if s.out+p.credit > s.window {
			return
		}
		if p.refs.Load() > 1 { // an association reads it, since the flow has gone back
			*at = p.clone()
			p.release()
			p = *at
		}
		frame.SetAttempt(p.bytes(), s.attempt, !s.bound)
		p.refs.Add(1)
		s.out += p.credit
		q.next++
		if s.unasked += p.credit; s.unasked >= s.window/2 {
			s.unasked = 0
			frame.SetAckNow(p.bytes())
		}
		if !s.leg.enqueue(&s.q, p) {
			return // detach follows
		}
		s.n.mark(s.leg)
	}
}

// goBack makes the flow send again from the first unconfirmed frame. mu is held; the caller pushes.
func (s *Sender) goBack() {
	n := s.data.unconfirmed() + s.single.unconfirmed()
	if n == 0 {
		return
	}
	s.attempt++
	s.data.next, s.single.next, s.out = s.data.base, s.single.base, 0
	s.counters.GoBacks++
	s.counters.Resent += uint64(n)
}

// onTimer reports false if the flow needs the timer no more. mu is held.
func (s *Sender) onTimer(now time.Time) bool {
	if s.telling {
		return s.tellLost(now)
	}
	if s.err != nil || s.data.kept.Len()+s.single.kept.Len() == 0 {
		return false
	}
	if s.progress.IsZero() {
		s.progress = now
	}
	if s.heard.IsZero() {
		s.heard = now
	}
	if t := s.n.cfg.PeerTimeout; t > 0 && now.Sub(s.heard) >= t {
		s.fail(fmt.Errorf("%w: %v for %v", ErrUnreachable, s.to, t))
		return false
	}
	s.push()
	after := probeAfter
	if s.data.unconfirmed()+s.single.unconfirmed() == 0 {
		after = creditProbe
	}
	if s.leg != nil && now.Sub(s.progress) >= after && now.Sub(s.probed) >= after && s.leg.idle(&s.q) {
		s.probed = now
		s.probe(0)
	}
	return true
}

// probe asks the target whether all has arrived. mu is held.
func (s *Sender) probe(flags frame.Flags) {
	f := frame.Frame{Header: frame.Header{
		Type: frame.Probe, Flags: flags, Hops: frame.MaxHops, Stream: s.stream, Job: s.n.cfg.Job, Attempt: s.attempt,
		From: s.n.cfg.Address, To: s.to, Incarnation: s.incarnation, Seq: s.data.next,
	}, SingleNext: s.single.next}
	if !s.bound {
		f.Flags |= frame.Fresh
	}
	s.counters.Probes++
	s.n.control(s.leg, &s.q, &f, s.hash)
}

// End ends the flow at once: calls that wait, and later ones, return ErrClosed. What the target has not confirmed may not
// arrive; what has not left arrives no more once Node.Sender has begun the flow again.
func (s *Sender) End() {
	s.n.mu.Lock()
	s.fail(ErrClosed)
	s.n.mu.Unlock()
	s.n.runUpcalls()
}

// fail ends the flow. mu is held.
func (s *Sender) fail(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	if !s.n.closed && err != ErrClosed {
		s.n.note(slog.LevelWarn, "flow ended", slog.String("target", s.to.String()),
			slog.Int("stream", int(s.stream)), slog.Any("error", err))
	}
	for _, q := range [...]*sequence{&s.data, &s.single} {
		for q.kept.Len() > 0 {
			s.drop(q)
		}
	}
	for i, c := range s.waits {
		s.waits[i] = nil
		wake(c.done)
	}
	s.waits = s.waits[:0]
	wake(s.room)
	s.tell()
}

// drop forgets the first frame of q. mu is held. After fail the numbers are not those confirmed.
func (s *Sender) drop(q *sequence) {
	p := q.kept.Pop()
	s.credit -= p.credit
	s.reserve(-p.cost())
	if p.owner != nil {
		s.n.released.Push(released{p.owner, s.err})
		p.owner = nil
	}
	p.release()
	if s.err == nil {
		q.base++
	}
}

// onAck handles a confirmation.
func (n *Node) onAck(f *frame.Frame) {
	n.mu.Lock()
	defer n.runUpcalls()
	defer n.mu.Unlock()
	s := n.senders[flowID{f.From, f.Stream}]
	if s != nil && s.telling && f.PeerIncarnation == s.incarnation {
		s.telling = false // the target knows
		return
	}
	if s == nil || s.err != nil || f.PeerIncarnation != s.incarnation {
		n.counters.Stale++
		return
	}
	if s.bound && f.Incarnation != s.target {
		if int32(f.Incarnation-s.target) > 0 {
			s.fail(fmt.Errorf("%w: %v", ErrRestarted, s.to))
		} else {
			n.counters.Stale++
		}
		return
	}
	if int32(f.Seq-s.data.end()) > 0 || int32(f.SingleNext-s.single.end()) > 0 {
		n.counters.Invalid++ // it confirms what was never sent
		return
	}
	now := time.Time{} // the timer sets it
	s.heard = now
	if n := s.take(&s.data, f.Seq) + s.take(&s.single, f.SingleNext); n > 0 {
		s.progress = now
		if !s.bound {
			s.bound, s.target = true, f.Incarnation
		}
	}
	s.window = int(min(f.Window, 1<<30))
	if f.Flags&(frame.Resend|frame.ResendSingle) != 0 && f.Attempt == s.attempt {
		if s.lost(f.Flags) {
			return
		}
		s.goBack()
	}
	for i := 0; i < len(s.waits); {
		if c := s.waits[i]; s.confirmed(c) {
			last := len(s.waits) - 1
			s.waits[i] = s.waits[last]
			s.waits[last] = nil
			s.waits = s.waits[:last]
			wake(c.done)
		} else {
			i++
		}
	}
	wake(s.room)
	s.tell()
	s.push()
}

// take confirms the frames of q before next, and returns how many.
func (s *Sender) take(q *sequence, next uint32) int {
	k := max(0, int(int32(next-q.base)))
	for range k {
		s.done += uint64((*q.kept.At(0)).credit - creditCost)
		if q.unconfirmed() > 0 {
			s.out -= (*q.kept.At(0)).credit
		} else {
			q.next++ // it had arrived before the flow went back
		}
		s.drop(q)
	}
	return k
}

// onRefuse handles the refusal of a gateway.
func (n *Node) onRefuse(c *conn, f *frame.Frame) {
	n.mu.Lock()
	defer n.runUpcalls()
	defer n.mu.Unlock()
	s := n.senders[flowID{f.From, f.Stream}]
	if s == nil || s.err != nil || f.Incarnation != s.incarnation {
		n.counters.Stale++
		return
	}
	s.counters.Refusals++
	if !f.Reason.Temporary() {
		s.fail(&RefusedError{Target: s.to, Reason: f.Reason})
	} else if f.Reason == frame.Unreachable && !c.direct {
		n.unreachable(s.to)
	}
}
