package reasm

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// SkipMessages notes an entry of a FORWARD-TSN (RFC 3758, Section 3.2) or I-FORWARD-TSN
// (RFC 8260, Section 2.3.1): messages of stream sid up to SSN or MID num will
// not be completed. It takes effect with forward. An unknown stream is ignored,
// and so is unordered without I-DATA, where entries name ordered messages only.
func (r *Queue) SkipMessages(sid uint16, unordered bool, num uint32) {
	if int(sid) >= len(r.streams) || unordered && !r.cfg.Interleaved {
		return
	}
	st := r.stream(sid)
	u := flag(unordered)
	if st.hasSkip[u] && r.before(num, st.skipTo[u]) {
		return
	}
	st.skipTo[u], st.hasSkip[u] = num, true
	if !st.toSkip {
		st.toSkip = true
		r.skipped = append(r.skipped, st)
	}
}

// Forward applies the skips noted and drops what can never be completed now
// that the peer will not send TSNs up to newCum any more. It is called after the
// tracker has moved; a FORWARD-TSN that is out of date must not get here.
func (r *Queue) Forward(newCum seq.TSN) {
	for _, st := range r.skipped {
		st.toSkip = false
		if st.hasSkip[0] {
			st.hasSkip[0] = false
			r.skipOrdered(st, st.skipTo[0])
		}
		if st.hasSkip[1] {
			st.hasSkip[1] = false
			r.skipUnordered(st, st.skipTo[1])
		}
	}
	r.skipped = r.skipped[:0]
	if !r.cfg.Interleaved && r.checkedTo.Less(newCum) {
		r.dropUpTo(newCum)
		r.checkedTo = newCum
	}
}

// before reports whether message number a comes before b.
func (r *Queue) before(a, b uint32) bool {
	if r.cfg.Interleaved {
		return seq.MID(a).Less(seq.MID(b))
	}
	return seq.SSN(a).Less(seq.SSN(b))
}

// skipOrdered moves st behind message number to: complete messages on the way
// are delivered, in order, and unfinished ones dropped (RFC 3758, Section 3.6).
func (r *Queue) skipOrdered(st *inStream, to uint32) {
	if r.before(to, st.next) {
		return
	}
	st.skips = true
	span := to - st.next + 1
	if !r.cfg.Interleaved {
		span = uint32(uint16(span))
	}
	// The messages concerned, in order. Look for each of the numbers or at each
	// of the messages, whichever are fewer.
	list := r.scratch[:0]
	if waiting := &st.pending[0]; uint64(span) <= uint64(waiting.n) {
		if st.head != nil {
			list = append(list, st.head)
		}
		for i := range span {
			num := st.next + i
			if !r.cfg.Interleaved {
				num = uint32(uint16(num))
			}
			if m := r.numbered.find(messageKey(st.sid, false, num)); m != nil && m != st.head {
				list = append(list, m)
			}
		}
	} else {
		for m := waiting.head; m != nil; m = m.links[linkPending].next {
			if !r.before(to, m.num) {
				list = append(list, m)
			}
		}
		slices.SortFunc(list, func(a, b *message) int {
			if r.before(a.num, b.num) {
				return -1
			}
			return 1
		})
	}
	for _, m := range list {
		if !m.complete {
			r.drop(m)
			continue
		}
		m.turn = true
		r.finish(m)
		r.link(m)
	}
	clear(list)
	r.scratch = list[:0]
	if m := r.promote(st, to+1); m != nil {
		r.deliver(m)
	}
}

// skipUnordered drops the unfinished unordered messages of st up to number to.
func (r *Queue) skipUnordered(st *inStream, to uint32) {
	if st.uSkipped && r.before(to, st.uSkip) {
		return
	}
	st.uSkipped, st.uSkip = true, to
	for m := st.pending[1].head; m != nil; {
		next := m.links[linkPending].next
		if !r.before(to, m.num) {
			r.drop(m)
		}
		m = next
	}
}

// dropUpTo drops DATA messages that miss a TSN up to newCum, and loose
// fragments up to there. newCum itself belongs to an abandoned message, else the
// peer would not have named it: what could only continue beyond it goes too.
func (r *Queue) dropUpTo(newCum seq.TSN) {
	span := newCum.Sub(r.checkedTo)
	if r.loose.n > 0 {
		r.dropLoose(newCum, span)
	}
	list := r.scratch[:0]
	if r.last != nil {
		list = append(list, r.last)
	}
	if span < r.open.n {
		for t := r.checkedTo + 1; t.LessEq(newCum + 1); t++ {
			if m := r.open.find(uint64(t)); m != nil {
				list = append(list, m)
			}
		}
	} else {
		list = r.open.appendAll(list)
	}
	for _, m := range list {
		if seq.TSN(m.next).LessEq(newCum + 1) {
			r.drop(m)
		}
	}
	clear(list)
	r.scratch = list[:0]
	if r.edge != nil {
		r.drop(r.edge)
	}
	r.edge = r.swallow(newCum + 1)
}

// dropLoose drops the loose fragments up to newCum, span TSNs behind
// checkedTo.
func (r *Queue) dropLoose(newCum seq.TSN, span int) {
	drop := func(f *frag) {
		r.loose.remove(f)
		r.looseList.remove(f)
		r.freeFrag(f)
	}
	if span < r.loose.n {
		for t := r.checkedTo + 1; t.LessEq(newCum); t++ {
			if f := r.loose.find(0, uint32(t)); f != nil {
				drop(f)
			}
		}
		return
	}
	for f := r.looseList.head; f != nil; {
		next := f.next
		if f.tsn.LessEq(newCum) {
			drop(f)
		}
		f = next
	}
}

// DeferReset holds back fragments of the streams (all if sids is empty) with
// TSNs beyond lastTSN, the Sender's Last Assigned TSN of a reset request that
// cannot be performed yet (RFC 6525, Section 5.2.2, E2). Unknown streams are
// ignored.
func (r *Queue) DeferReset(sids []uint16, lastTSN seq.TSN) {
	if len(sids) == 0 {
		r.deferAll, r.deferTSN = true, lastTSN // streams not in use yet, too
	}
	r.each(sids, func(st *inStream) {
		st.deferred, st.lastTSN = true, lastTSN
	})
}

// ResetStreams makes 0 the next expected SSN, or MID, of the streams (all if
// sids is empty), and then takes in the fragments DeferReset held back (RFC
// 6525, Section 5.2.2, E3 and E4; RFC 8260, Section 2.3.2). It is called once
// the cumulative TSN has reached the Sender's Last Assigned TSN; an ordered
// message still unfinished then is dropped. Unknown streams are ignored.
func (r *Queue) ResetStreams(sids []uint16) Result {
	res := taken
	if len(sids) == 0 {
		r.deferAll = false
	}
	r.each(sids, func(st *inStream) {
		for m := st.pending[0].head; m != nil; m = st.pending[0].head {
			r.drop(m)
		}
		st.next, st.head = 0, nil
		st.skips, st.uSkipped, st.deferred = false, false, false
		for f := st.held.head; f != nil; f = st.held.head {
			if got := r.placeHeld(st, f); got.Violation() {
				res = got
			}
		}
	})
	return res
}

// Unread reports whether there are fragments for the user on any of the streams, on any
// stream at all if sids is empty.
func (r *Queue) Unread(sids []uint16) bool {
	if len(sids) == 0 {
		for _, st := range r.streams {
			if st != nil && st.unread() {
				return true
			}
		}
		return false
	}
	for _, sid := range sids {
		if int(sid) < len(r.streams) && r.streams[sid] != nil && r.streams[sid].unread() {
			return true
		}
	}
	return false
}

func (st *inStream) unread() bool { return st.deliverable() || st.unfragmented > 0 }

// each calls do for the streams of sids, or for all that are in use if it is
// empty.
func (r *Queue) each(sids []uint16, do func(*inStream)) {
	if len(sids) == 0 {
		for _, st := range r.streams {
			if st != nil {
				do(st)
			}
		}
		return
	}
	for _, sid := range sids {
		if int(sid) < len(r.streams) {
			do(r.stream(sid))
		}
	}
}
