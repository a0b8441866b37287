package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// prState is what the scoreboard keeps for FORWARD-TSN.
type prState struct {
	due    bool // a FORWARD-TSN is to be sent
	sacks  int  // SACKs since the last one was sent
	skips  []wire.Skip
	iskips []wire.ISkip
}

// givenUp reports whether the policy of a chunk's message forbids to send the
// chunk again (RFC 3758, Section 4.1; RFC 7496, Section 3.1).
func (s *Scoreboard) givenUp(now clock.Time, r *record) bool {
	m := r.msg
	return m.expires != 0 && now >= m.expires ||
		m.flags&msgLimitRtx != 0 && uint32(r.tx) > m.maxRtx
}

// dropUnsent abandons a message of which nothing was sent. It takes no TSN, no
// SSN and no MID, so the peer need not be told.
func (q *Queue) dropUnsent(m *outMsg) {
	st := &q.streams[m.sid]
	q.unlink(st, m)
	q.finish(m, ErrAbandoned)
	q.abandonedUnsent++
	// The scheduler may have to learn the arrival of the next message.
	if st.queued {
		st.queued = false
		q.ready--
		q.sched.remove(m.sid)
	}
	q.reschedule(m.sid)
	q.recycle(m)
}

// abandon gives up a message of which a part was sent. RFC 3758, Section 3.5,
// A3: "if it is part of a fragmented message, all other TSN's within that
// fragmented message MUST be abandoned at the same time". It reports false if
// the peer does not support that or the scoreboard is full.
func (s *Scoreboard) abandon(m *outMsg) bool {
	if !s.q.partial || m.flags&msgDone != 0 {
		return false
	}
	if m.sent < m.length {
		// The rest gets no TSN, save one for its end, which is never sent. The
		// peer may have everything sent so far; without a TSN to skip over it
		// would not learn that this message ends here.
		t, r := s.assign()
		if r == nil {
			return false
		}
		*r = record{msg: m, off: m.sent, fsn: m.fsn, state: recAbandoned}
		if s.unsent > 0 {
			s.unsent++
		}
		m.last = t
		m.refs++
		st := &s.q.streams[m.sid]
		st.inFlight++
		s.q.unlink(st, m)
		if st.queued {
			st.queued = false
			s.q.ready--
			s.q.sched.remove(m.sid)
		}
		s.q.reschedule(m.sid)
	}
	first := m.first
	if first.Less(s.base) {
		first = s.base
	}
	for t := first; t.LessEq(m.last); t++ {
		r := s.rec(t)
		if r.msg != m || r.state&recAbandoned != 0 {
			continue
		}
		// "the sender MUST treat the data chunk as being finally acked and no
		// longer outstanding" (A2). The caller of OnLoss and OnTimeout has
		// made the adjustment of rule F5.
		if r.state&recMarked != 0 {
			s.marked.Remove(t)
		} else if r.state&recAcked != 0 {
			if s.useRACK {
				s.paths[r.path].rack.sacked--
			}
		} else {
			s.leave(t, r, &s.paths[r.path])
			s.rwnd += int(r.size)
		}
		r.state = r.state&recFast | recAbandoned
	}
	m.flags |= msgAbandoned
	s.q.abandonedSent++
	s.q.finish(m, ErrAbandoned)
	s.advancePeerAck(false)
	return true
}

// advancePeerAck moves Advanced.Peer.Ack.Point over abandoned chunks (RFC 3758,
// Section 3.5, C1 and C2). After a SACK, C3 demands a FORWARD-TSN if the point
// is ahead of the cumulative TSN. A duplicate goes only with "every other SACK".
func (s *Scoreboard) advancePeerAck(sack bool) {
	if s.adv.Less(s.base - 1) {
		s.adv = s.base - 1 // C1
	}
	was := s.adv
	for t := s.adv + 1; t.Less(s.next) && s.rec(t).state&recAbandoned != 0; t++ {
		s.adv = t
	}
	switch {
	case s.adv == s.base-1:
		s.pr.due = false
	case s.adv != was:
		s.pr.due = true
	case sack:
		if s.pr.sacks++; s.pr.sacks >= 2 {
			s.pr.due = true
		}
	}
}

// ForwardAgain makes a FORWARD-TSN that is not answered due again.
func (s *Scoreboard) ForwardAgain() { s.pr.due = s.ForwardOutstanding() }

// ForwardOutstanding reports whether the peer has not yet acknowledged
// Advanced.Peer.Ack.Point. Some T3 timer must run as long (RFC 3758, Section
// 3.5, C5).
func (s *Scoreboard) ForwardOutstanding() bool { return s.base.LessEq(s.adv) }

// ForwardDue reports whether a FORWARD-TSN or I-FORWARD-TSN is to be sent: once
// for every point reached, and again after each SACK that advances without
// reaching it and each timeout.
func (s *Scoreboard) ForwardDue() bool { return s.pr.due }

// AppendForward appends the FORWARD-TSN or, when interleaving, the I-FORWARD-TSN
// that is due, if at least its fixed part fits in space. If not all streams fit
// it goes only as far as they do (RFC 3758, Section 3.5, C4); the rest is due
// after the next SACK.
func (s *Scoreboard) AppendForward(b []byte, space int) ([]byte, bool) {
	size := forwardEntryLen
	if s.q.interleave {
		size = iforwardEntryLen
	}
	if !s.pr.due || space < forwardFixedLen+size {
		return b, false
	}
	room := (space - forwardFixedLen) / size
	p := &s.pr
	p.skips, p.iskips = p.skips[:0], p.iskips[:0]
	upTo := s.base - 1
	for t := s.base; t.LessEq(s.adv); t++ {
		if !s.addSkip(s.rec(t).msg, room) {
			break
		}
		upTo = t
	}
	for _, k := range p.skips {
		s.q.streams[k.SID].skip = [2]int32{}
	}
	for _, k := range p.iskips {
		s.q.streams[k.SID].skip = [2]int32{}
	}
	s.adv = upTo
	p.due, p.sacks = false, 0
	s.stats.Forwards++
	if s.q.interleave {
		return wire.AppendIForwardTSN(b, uint32(upTo), p.iskips), true
	}
	return wire.AppendForwardTSN(b, uint32(upTo), p.skips), true
}

const (
	forwardFixedLen  = 8
	forwardEntryLen  = 4
	iforwardEntryLen = 8
)

// addSkip notes in the FORWARD-TSN that m is skipped. It reports false if there
// is no room for another entry. "Each stream SHOULD only be reported once":
// outStream.skip holds the place of its entry, plus one.
func (s *Scoreboard) addSkip(m *outMsg, room int) bool {
	unordered := m.flags&msgUnordered != 0
	st := &s.q.streams[m.sid]
	p := &s.pr
	if s.q.interleave {
		at := &st.skip[0]
		if unordered {
			at = &st.skip[1]
		}
		if *at == 0 {
			if len(p.iskips) == room {
				return false
			}
			p.iskips = append(p.iskips, wire.ISkip{SID: m.sid, Unordered: unordered, MID: m.mid})
			*at = int32(len(p.iskips))
		} else if e := &p.iskips[*at-1]; seq.MID(e.MID).Less(seq.MID(m.mid)) {
			e.MID = m.mid
		}
		return true
	}
	if unordered {
		return true // "MUST NOT report TSN's [...] marked as unordered"
	}
	if st.skip[0] == 0 {
		if len(p.skips) == room {
			return false
		}
		p.skips = append(p.skips, wire.Skip{SID: m.sid, SSN: uint16(m.mid)})
		st.skip[0] = int32(len(p.skips))
	} else if e := &p.skips[st.skip[0]-1]; seq.SSN(e.SSN).Less(seq.SSN(m.mid)) {
		e.SSN = uint16(m.mid)
	}
	return true
}

// makeRoom abandons droppable messages of lower priority than prio, the lowest
// first, until n bytes fit (RFC 7496, Section 3.2). It reports whether they do.
func (q *Queue) makeRoom(n int64, prio uint32) bool {
	for !q.fits(n) && len(q.droppable.list) > 0 {
		m := q.droppable.list[0]
		switch {
		case m.priority <= prio:
			return false
		case m.sent == 0:
			q.dropUnsent(m)
		case q.sb == nil || !q.sb.abandon(m):
			q.droppable.remove(m) // the peer does not know FORWARD-TSN
		}
	}
	return q.fits(n)
}
