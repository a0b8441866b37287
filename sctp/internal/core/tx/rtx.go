package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// dupThresh is the number of miss indications that marks a chunk as lost (RFC
// 9260, Section 7.2.4).
const dupThresh = 3

// detectLoss ends fast recovery, finds what this SACK shows to be lost, and
// enters fast recovery for it.
func (s *Scoreboard) detectLoss(now clock.Time, sk *wire.Sack, cum seq.TSN) {
	for i := range s.paths {
		// "When a SACK chunk acknowledges all TSNs up to and including this exit
		// point, Fast Recovery is exited."
		if f := &s.paths[i]; f.recover && f.exit.LessEq(cum) {
			s.exitRecovery(f)
		}
	}
	for i := range s.paths {
		s.res.Paths[i].InRecovery = s.recovery(i).recover
	}
	if s.useRACK {
		s.rackOnSack(now, sk, cum)
	} else {
		s.countMisses()
	}
	s.enterRecovery()
}

func (s *Scoreboard) exitRecovery(f *pathFlight) {
	f.recover = false
	f.rack.onRecovered()
}

// countMisses gives miss indications to chunks that this SACK skipped. RFC 9260,
// Section 7.2.4: "miss indications are incremented only for missing TSNs prior
// to the HTNA in the SACK chunk"; in fast recovery, if the cumulative TSN ack
// point advances, "for all TSNs reported missing in the SACK chunk".
func (s *Scoreboard) countMisses() {
	var limit seq.TSN
	var sent clock.Time
	any, recovering := false, false
	for i := range s.paths {
		recovering = recovering || s.paths[i].recover
		p := &s.res.Paths[i]
		if p.htnaAny && (!any || limit.Less(p.htna)) {
			limit, any = p.htna, true
		}
		sent = max(sent, p.htnaSent)
	}
	all := recovering && s.res.CumAdvanced && len(s.gaps) > 0
	if top := len(s.gaps) - 1; all && (!any || limit.Less(s.gaps[top].lo)) {
		limit, any = s.gaps[top].lo, true
	}
	if !any {
		return
	}
	for t, ok := s.missing.Next(s.base, limit); ok; t, ok = s.missing.Next(t+1, limit) {
		r := s.rec(t)
		p := &s.res.Paths[r.path]
		// Split fast retransmit: what another path delivered tells nothing.
		if s.cmt && !all && (!p.htnaAny || !t.Less(p.htna)) {
			continue
		}
		// What was sent after all that this SACK acknowledges is not yet due.
		if r.tx > 1 && r.sent > sent {
			continue
		}
		if r.miss += s.misses(p, t); r.miss < dupThresh {
			continue
		}
		p.lost = p.lost || r.state&recProbe == 0
		r.state |= recFast
		s.mark(t, r)
		s.stats.FastRetransmits++
	}
}

// misses returns how many miss indications the SACK being processed gives TSN t:
// one, or with DAC one for each packet it was delayed for, if all that it newly
// acknowledges of the path was sent after t.
func (s *Scoreboard) misses(p *PathAck, t seq.TSN) uint8 {
	if s.cmt && p.htnaAny && t.Less(p.ltna) {
		return max(s.dac, 1)
	}
	return 1
}

// mark marks a chunk in flight for retransmission.
func (s *Scoreboard) mark(t seq.TSN, r *record) {
	f := &s.paths[r.path]
	if r.state&(recBig|recProbe) == recBig {
		f.size.bigLost(s.clock, t, r)
	}
	s.leave(t, r, f)
	r.state |= recMarked
	r.miss = 0
	s.marked.Add(t)
	s.rwnd += int(r.size) // RFC 9260, Section 6.2.1, C
}

// enterRecovery enters fast recovery on behalf of the paths that lost chunks.
//
// Deviation (RFC 9260, Section 7.2.4, SHOULD): with RACK the window shrinks in
// fast recovery too, when a retransmission is lost that was sent after it shrank
// last. RFC 8985, Section 9.3: "when RACK-TLP detects a lost retransmission, the
// congestion control MUST trigger an additional congestion response".
func (s *Scoreboard) enterRecovery() {
	for i := range s.res.Paths {
		if p := &s.res.Paths[i]; p.lost && (p.again || !s.recovery(i).recover) {
			p.Loss = true
			s.paths[i].reacted = s.clock
		}
	}
	for i := range s.res.Paths {
		p := &s.res.Paths[i]
		if f := s.recovery(i); p.lost && !f.recover {
			// "mark the highest outstanding TSN as the Fast Recovery exit point"
			f.recover, f.exit = true, s.next-1
			// "the sender SHOULD ignore the value of cwnd and SHOULD NOT delay
			// retransmission for this single packet"
			s.permit, s.first = true, i
			s.stats.Recoveries++
		}
	}
}

// OnTimeout marks what is in flight on a path for retransmission, after its T3
// timer expired (RFC 9260, Section 6.3.3, E3) or because the path is gone. It
// ends fast recovery and lets one packet pass regardless of cwnd. It returns how
// many chunks it marked. With RACK, chunks sent so recently that their
// acknowledgement may be on its way are not marked, apart from the first (RFC
// 8985, Section 6.3). That chunks were lost which had been sent by now is no news for the
// congestion control any more: as RFC 6582, Section 3.2, step 4 has it, no fast recovery
// begins for them.
func (s *Scoreboard) OnTimeout(now clock.Time, path int) int {
	s.clock = now
	f := &s.paths[path]
	n := 0
	for t, ok := f.set.Next(s.base, s.next); ok; t, ok = f.set.Next(t+1, s.next) {
		r := s.rec(t)
		if s.useRACK && n > 0 && f.rack.tooRecent(now, r) {
			continue
		}
		s.mark(t, r)
		n++
	}
	s.stats.TimeoutMarked += uint64(n)
	if rf := s.recovery(path); rf.recover {
		s.exitRecovery(rf)
	}
	f.rack.onTimeout()
	f.reacted = now
	s.permit, s.first = s.marked.Len() > 0, -1
	s.ForwardAgain()
	return n
}

// MarkPath marks everything in flight on a path for retransmission at once: the
// path failed or its address was removed.
func (s *Scoreboard) MarkPath(path int) {
	f := &s.paths[path]
	for t, ok := f.set.Next(s.base, s.next); ok; t, ok = f.set.Next(t+1, s.next) {
		s.mark(t, s.rec(t))
	}
	f.rack.onTimeout()
}

// HasRtx reports whether chunks are marked for retransmission.
func (s *Scoreboard) HasRtx() bool { return s.marked.Len() > 0 }

// RtxSize returns the size, padding and header included, of the chunk to be
// retransmitted next, or 0. It may be larger than the path MTU has become: a
// chunk that has a TSN cannot be cut again.
func (s *Scoreboard) RtxSize() int {
	t, ok := s.marked.Next(s.base, s.next)
	if !ok {
		return 0
	}
	return s.chunkSize(s.rec(t))
}

// DropGivenUp abandons the messages of the earliest chunks marked for
// retransmission whose policy does not let them be sent again.
func (s *Scoreboard) DropGivenUp(now clock.Time) {
	for t, ok := s.marked.Next(s.base, s.next); ok; t, ok = s.marked.Next(s.base, s.next) {
		if r := s.rec(t); !s.givenUp(now, r) || !s.abandon(r.msg) {
			return
		}
	}
}

// AppendRtx appends to b the earliest chunk marked for retransmission, padded,
// to be sent on path now, if it fits in space. Messages whose partial
// reliability policy says so are abandoned instead.
func (s *Scoreboard) AppendRtx(b []byte, now clock.Time, path, space int) ([]byte, bool) {
	for {
		t, ok := s.marked.Next(s.base, s.next)
		if !ok {
			return b, false
		}
		r := s.rec(t)
		if s.givenUp(now, r) && s.abandon(r.msg) {
			continue
		}
		if s.chunkSize(r) > space || r.msg.route.key() != s.q.key {
			return b, false
		}
		s.marked.Remove(t)
		r.state &^= recMarked
		s.paths[r.path].noteAgain(t)
		s.transmit(t, r, now, path)
		s.noteSize(t, r, &s.paths[path], space)
		s.lastRtx = r.sent
		f := &s.paths[path]
		// Section 6.1: T3 restarts "if the earliest (i.e., lowest TSN)
		// outstanding DATA chunk sent to that address is being retransmitted".
		if e, _ := f.set.Next(s.base, s.next); e == t {
			f.restart = true
		}
		s.stats.Retransmits++
		return s.appendChunk(b, t, r), true
	}
}

// TakeRestart reports, once, that a retransmission restarts the T3 timer of a
// path that is already running.
func (s *Scoreboard) TakeRestart(path int) bool {
	f := &s.paths[path]
	r := f.restart
	f.restart = false
	return r
}

// Permit reports whether one packet may be sent regardless of cwnd: the first
// fast retransmission, the one after a timeout, or a tail loss probe.
func (s *Scoreboard) Permit() bool { return s.permit }

// UsePermit ends the permit, as the packet was sent on a path, over the window or not.
//
// Deviation (RFC 8985, Section 9.3, MUST, without PRR): the first fast retransmission, if
// it went over the window, as RFC 9260, Section 7.2.4 has it, came to the same queue as
// what was lost, with what was sent until then and before the smaller window had any
// effect. If it is lost, too, that is no second sign of congestion.
func (s *Scoreboard) UsePermit(path int, over bool) {
	s.permit = false
	if over && path == s.first {
		f := &s.paths[path]
		f.reacted = f.rack.last + 1
	}
}

// NewCongestionMark takes an ECNE chunk about tsn and reports whether it asks
// for a reaction: one per window of data (RFC 4960, Appendix A).
func (s *Scoreboard) NewCongestionMark(path int, tsn seq.TSN) bool {
	f := &s.paths[path]
	if f.ecnActive && tsn.Less(f.ecnMark) || !tsn.Less(s.next) {
		return false
	}
	f.ecnActive, f.ecnMark = true, s.next
	return true
}
