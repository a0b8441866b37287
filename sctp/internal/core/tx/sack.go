package tx

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// PathAck is what one SACK means for one path.
type PathAck struct {
	// Acked is the size of the chunks it newly acknowledges, headers and padding
	// included; FlightBefore what was in flight before it came.
	Acked, FlightBefore int
	// RTT is a round-trip time measured under Karn's algorithm, at most once per
	// round trip (RFC 9260, Section 6.3.1, C4 and C5), or 0.
	RTT clock.Time
	// AckRTT is the same measured with every SACK, for congestion control.
	AckRTT clock.Time
	// InRecovery reports whether the path was in fast recovery when the window
	// is to grow for Acked: after leaving it, before entering it anew.
	InRecovery bool
	// Loss asks for the reaction to a packet loss (RFC 9260, Section 7.2.3),
	// after that to Acked. It is set once per fast recovery, and again if RACK
	// finds that a retransmission was lost.
	Loss bool
	// Alive reports that chunks were acknowledged that were sent on no other
	// path (RFC 7829, Section 3.2, rules 9 and 10).
	Alive bool
	// RestartT3 tells to restart T3: the earliest outstanding TSN of the path was
	// acknowledged (Section 6.3.2, R3), or only chunks that left before that one
	// was retransmitted last.
	//
	// Deviation: R3 has only the first. A long window drains for a round trip before
	// anything can tell of what was retransmitted behind it, and if that is lost, it
	// takes another one for what is sent next to show it. T3 is to expire when nothing
	// comes.
	RestartT3 bool
	// Reneged starts T3 if it is not running: the peer took back a gap ack
	// (Section 6.3.2, R4).
	Reneged bool

	earliest seq.TSN // before this SACK
	any      bool
	htna     seq.TSN // highest TSN newly acknowledged
	ltna     seq.TSN // lowest
	htnaAny  bool
	htnaSent clock.Time // the latest transmission among those newly acknowledged
	rttSent  clock.Time // when the chunk of AckRTT was sent
	markSent clock.Time // when the chunk of RTT was sent
	lost     bool       // chunks were marked as lost, with RACK some that were sent since the last reaction
	again    bool       // and a retransmission among them
}

// SackResult is what one SACK brought. It is valid until the next SACK.
type SackResult struct {
	// Old reports a SACK out of order, which was dropped.
	Old bool
	// CumAdvanced reports whether the cumulative TSN ack point moved.
	CumAdvanced bool
	// NewlyAcked is the user data newly acknowledged, in bytes.
	NewlyAcked int
	// Duplicates is the number of duplicate TSNs reported.
	Duplicates int
	// Paths has an entry for every path.
	Paths []PathAck
}

// HandleSack takes in a SACK (RFC 9260, Section 6.2.1). It takes time in
// proportion to the chunks and gap blocks that changed and to the length of the
// SACK, not to the window. It returns ErrAckUnsent, and changes nothing, for a
// SACK that acknowledges what was not sent.
//
// For every path the caller then gives RTT to its estimator, Acked to the
// congestion control, then Loss, and stops T3 if nothing is in flight, restarts
// it on RestartT3 or starts it on Reneged.
func (s *Scoreboard) HandleSack(now clock.Time, sk *wire.Sack) (*SackResult, error) {
	return s.handleSack(now, sk, false)
}

// HandleCumAck takes in a cumulative TSN ack that came without gap blocks and
// without a_rwnd, as in a SHUTDOWN chunk: what is known of them stays.
func (s *Scoreboard) HandleCumAck(now clock.Time, cum seq.TSN) (*SackResult, error) {
	return s.handleSack(now, &wire.Sack{CumTSN: uint32(cum), RWND: uint32(s.awnd)}, true)
}

func (s *Scoreboard) handleSack(now clock.Time, sk *wire.Sack, keepGaps bool) (*SackResult, error) {
	res := &s.res
	paths := res.Paths
	s.clock = now
	*res = SackResult{Paths: paths, Duplicates: sk.Dups.Len()}
	cum := seq.TSN(sk.CumTSN)
	if !cum.Less(s.FirstUnsent()) {
		return res, ErrAckUnsent
	}
	// D, i: "If Cumulative TSN Ack is less than the Cumulative TSN Ack Point,
	// then drop the SACK chunk."
	if cum.Less(s.base - 1) {
		res.Old = true
		clear(paths)
		s.stats.OldSacks++
		return res, nil
	}
	fresh := s.scratch[:0]
	if !keepGaps {
		var err error
		if fresh, err = s.parseGaps(cum, sk.Gaps); err != nil {
			return res, err
		}
	}
	s.stats.Duplicates += uint64(res.Duplicates)
	s.noteDups(sk)
	for i := range s.paths {
		f := &s.paths[i]
		e, ok := f.set.Next(s.base, s.next)
		paths[i] = PathAck{FlightBefore: f.bytes, earliest: e, any: ok}
	}
	res.CumAdvanced = cum != s.base-1
	s.ackCum(now, cum)
	s.releaseRtxCopies(false)
	old := trimRuns(s.gaps, s.base)
	s.known = s.next
	switch {
	case keepGaps:
		fresh = append(fresh, old...)
	case sk.Gaps.Len() >= fullSack && len(fresh) > 0:
		s.known = fresh[len(fresh)-1].hi
		fresh = appendAbove(fresh, old)
	}
	if len(fresh)+len(old) > 0 {
		s.diffRuns(now, fresh, old, false)
		s.diffRuns(now, old, fresh, true)
	}
	s.scratch, s.gaps = s.gaps[:0], fresh
	// D, ii: "Set rwnd equal to the newly received a_rwnd minus the number of
	// bytes still outstanding".
	s.awnd = int(sk.RWND)
	s.rwnd = s.awnd - s.payload
	s.detectLoss(now, sk, cum)
	for i := range paths {
		p := &paths[i]
		if p.rttSent > 0 {
			p.AckRTT = max(now-p.rttSent, 1)
		}
		if p.markSent > 0 {
			p.RTT = max(now-p.markSent, 1)
			s.paths[i].rttMark = s.next
		}
		if p.htnaAny && !p.RestartT3 {
			p.RestartT3 = s.tooEarly(i, p.htnaSent)
		}
	}
	s.advancePeerAck(true)
	return res, nil
}

// tooEarly reports whether the earliest chunk in flight on a path was retransmitted after
// sent, so that what left by then does not tell of it.
func (s *Scoreboard) tooEarly(path int, sent clock.Time) bool {
	t, ok := s.paths[path].set.Next(s.base, s.next)
	return ok && s.rec(t).tx > 1 && sent < s.rec(t).sent
}

// parseGaps turns gap blocks into runs that are sorted, disjoint and apart. An
// empty block is ignored.
func (s *Scoreboard) parseGaps(cum seq.TSN, gaps wire.GapBlocks) ([]tsnRun, error) {
	runs, sorted := s.scratch[:0], true
	for i := range gaps.Len() {
		g := gaps.At(i)
		if g.Start == 0 || g.Start > g.End {
			continue
		}
		r := tsnRun{cum + seq.TSN(g.Start), cum + seq.TSN(g.End) + 1}
		if s.FirstUnsent().Less(r.hi) {
			s.scratch = runs
			return nil, ErrAckUnsent
		}
		if n := len(runs); n > 0 && r.lo.LessEq(runs[n-1].hi) {
			sorted = false
		}
		runs = append(runs, r)
	}
	if !sorted {
		runs = mergeRuns(runs)
	}
	return runs, nil
}

// fullSack is from how many gap blocks on a SACK is taken to have left out higher
// ones for lack of space: they fill three quarters of a packet of 1,400 bytes.
// Above the last block such a SACK tells nothing: what was acknowledged there
// before is not reneged on, and what was not is not lost.
const fullSack = 256

// appendAbove appends to runs what old has above their end.
func appendAbove(runs, old []tsnRun) []tsnRun {
	last := &runs[len(runs)-1]
	for _, r := range old {
		if r.hi.LessEq(last.hi) {
			continue
		}
		if r.lo.LessEq(last.hi) {
			last.hi = r.hi
			continue
		}
		runs = append(runs, r)
		last = &runs[len(runs)-1]
	}
	return runs
}

// mergeRuns sorts runs and joins those that overlap or touch.
func mergeRuns(runs []tsnRun) []tsnRun {
	slices.SortFunc(runs, func(a, b tsnRun) int { return a.lo.Sub(b.lo) })
	out := runs[:1]
	for _, r := range runs[1:] {
		last := &out[len(out)-1]
		if last.hi.Less(r.lo) {
			out = append(out, r)
		} else if last.hi.Less(r.hi) {
			last.hi = r.hi
		}
	}
	return out
}

// trimRuns drops what lies before base.
func trimRuns(runs []tsnRun, base seq.TSN) []tsnRun {
	for len(runs) > 0 && runs[0].hi.LessEq(base) {
		runs = runs[1:]
	}
	if len(runs) > 0 && runs[0].lo.Less(base) {
		runs[0].lo = base
	}
	return runs
}

// diffRuns visits the TSNs that a has and b lacks: newly acknowledged or, with
// renege set, taken back.
func (s *Scoreboard) diffRuns(now clock.Time, a, b []tsnRun, renege bool) {
	j := 0
	for _, r := range a {
		for lo := r.lo; lo.Less(r.hi); {
			for j < len(b) && b[j].hi.LessEq(lo) {
				j++
			}
			hi := r.hi
			if j < len(b) && b[j].lo.Less(hi) {
				hi = b[j].lo
			}
			if hi.Less(lo) {
				hi = lo
			}
			for t := lo; t != hi; t++ {
				if renege {
					s.renege(t)
				} else {
					s.ackGap(now, t)
				}
			}
			if lo = hi; j < len(b) && b[j].lo.LessEq(lo) {
				lo = b[j].hi
			}
		}
	}
}

// ackCum moves the cumulative TSN ack point to cum.
func (s *Scoreboard) ackCum(now clock.Time, cum seq.TSN) {
	for s.base != cum+1 {
		if s.ackBulk(now, cum) > 0 {
			continue
		}
		t := s.base
		r := s.rec(t)
		if r.state&(recAcked|recAbandoned) == 0 {
			s.acked(now, t, r, false)
		} else if r.state&recAcked != 0 && s.useRACK {
			s.paths[r.path].rack.sacked--
		}
		m := r.msg
		n := int(r.size)
		r.msg = nil
		if ahead := s.rec(t + 4).msg; ahead != m {
			ahead.prefetch() // unless it is nil: a record that is free has none
		}
		s.base++
		s.q.unref(m, n)
	}
}

// ackGap handles a TSN that a gap block newly covers.
func (s *Scoreboard) ackGap(now clock.Time, t seq.TSN) {
	r := s.rec(t)
	if r.state&(recAcked|recAbandoned) != 0 {
		return
	}
	s.acked(now, t, r, true)
	r.state = r.state&^recMarked | recAcked
	if s.useRACK {
		s.paths[r.path].rack.sacked++
	}
}

// span notes that the chunks from lo to hi, which left at sent, are newly acknowledged.
func (p *PathAck) span(lo, hi seq.TSN, sent clock.Time) {
	if p.any && lo == p.earliest {
		p.RestartT3 = true
	}
	if !p.htnaAny {
		p.ltna = lo
	}
	if !p.htnaAny || p.htna.Less(hi) {
		p.htna, p.htnaAny = hi, true
	}
	p.htnaSent = max(p.htnaSent, sent)
}

// sample notes that chunks up to hi, which left at sent, give a round-trip time; mark is
// pathFlight.rttMark.
func (p *PathAck) sample(hi seq.TSN, sent clock.Time, mark seq.TSN) {
	p.rttSent = max(p.rttSent, sent)
	if !hi.Less(mark) {
		p.markSent = max(p.markSent, sent)
	}
}

// acked does what a newly acknowledged chunk brings.
func (s *Scoreboard) acked(now clock.Time, t seq.TSN, r *record, gap bool) {
	f, p := &s.paths[r.path], &s.res.Paths[r.path]
	p.Acked += s.chunkSize(r)
	p.Alive = p.Alive || r.state&recMulti == 0
	if r.state&recBig != 0 {
		f.size.bigAcked(t, t)
	}
	s.res.NewlyAcked += int(r.size)
	p.span(t, t, r.sent)
	// RFC 9260, Section 6.3.1, C5: never from a chunk that was retransmitted;
	// and "only [...] if no DATA chunk with TSN less than or equal to r was
	// retransmitted since". That matters when a missing chunk held the cumulative TSN
	// back; a gap block reports a chunk when it came.
	if r.tx == 1 && r.state&recMulti == 0 && (gap || r.sent > s.lastRtx) {
		p.sample(t, r.sent, f.rttMark)
	}
	if s.useRACK {
		f.rack.onAcked(now, t, r)
	}
	if r.state&recMarked != 0 {
		s.marked.Remove(t)
	} else {
		s.leave(t, r, f)
	}
}

// renege handles a TSN that a gap block covered before and does not any more:
// "consider the corresponding DATA that might be possibly missing: Count one
// miss indication towards Fast Retransmit" (Section 6.2.1, D, iii).
func (s *Scoreboard) renege(t seq.TSN) {
	r := s.rec(t)
	if r.state&recAcked == 0 {
		return // abandoned
	}
	s.stats.Reneged++
	f := &s.paths[r.path]
	r.state &^= recAcked
	f.bytes += s.chunkSize(r)
	f.count++
	f.set.Add(t)
	s.payload += int(r.size)
	s.res.Paths[r.path].Reneged = true
	if s.useRACK {
		f.rack.sacked--
		s.rackPrepend(&f.rack, t, r)
	} else if r.state&recFast == 0 {
		s.missing.Add(t)
		if r.miss < dupThresh-1 {
			r.miss++
		}
	}
}
