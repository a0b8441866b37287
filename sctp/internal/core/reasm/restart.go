package reasm

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// Restart makes 0 the next SSN, or MID, of every stream from TSN next on (RFC
// 6525, Section 5.2.4, G4 and G5): "The same processing as though a FWD-TSN
// chunk … with all streams affected" comes first, so that unfinished messages
// are dropped and complete ones delivered. Of what DeferReset held back, that of
// before next goes first and that of after it last.
func (r *Queue) Restart(next seq.TSN) Result {
	res := taken
	for _, st := range r.streams {
		if st == nil {
			continue
		}
		for f := st.held.head; f != nil; {
			after := f.next
			d := f.tsn.Sub(next)
			if d < 0 || d > seq.MaxWindow {
				if d < -seq.MaxWindow || d > 0 {
					st.held.remove(f)
					r.freeFrag(f) // of other TSNs
				} else if got := r.placeHeld(st, f); got.Violation() {
					res = got
				}
			}
			f = after
		}
		if last, ok := r.lastPending(st); ok {
			r.skipOrdered(st, last)
		}
		for m := st.pending[1].head; m != nil; {
			after := m.links[linkPending].next
			if !m.complete {
				r.drop(m)
			}
			m = after
		}
	}
	for f := r.looseList.head; f != nil; f = r.looseList.head {
		r.looseList.remove(f)
		r.loose.remove(f)
		r.freeFrag(f)
	}
	dead := r.open.appendAll(r.scratch[:0])
	if r.last != nil {
		dead = append(dead, r.last)
	}
	for _, m := range dead {
		r.drop(m) // all that is left swallows remnants of skipped messages
	}
	clear(dead)
	r.scratch = dead[:0]
	r.edge, r.last = nil, nil
	r.checkedTo = next - 1
	if got := r.ResetStreams(nil); got.Violation() {
		res = got
	}
	return res
}

// lastPending returns the largest number of an ordered message of st that is
// unfinished or waits for its turn.
func (r *Queue) lastPending(st *inStream) (last uint32, ok bool) {
	for m := st.pending[0].head; m != nil; m = m.links[linkPending].next {
		if !ok || r.before(last, m.num) {
			last, ok = m.num, true
		}
	}
	return last, ok
}

// holdBack keeps f for after the reset of st. The record of the message that f may
// begin is charged now: no room is asked for when it is placed.
func (r *Queue) holdBack(st *inStream, f *frag) {
	f.charge += messageRecord
	r.window.held += messageRecord
	st.held.push(f)
}

// placeHeld places a fragment that was held back.
func (r *Queue) placeHeld(st *inStream, f *frag) Result {
	st.held.remove(f)
	f.charge -= messageRecord
	r.window.held -= messageRecord
	return r.place(st, f)
}

// takeHeld takes in what st holds back, if limited only up to a TSN.
func (r *Queue) takeHeld(st *inStream, limited bool, upTo seq.TSN) Result {
	res := taken
	for f := st.held.head; f != nil; {
		after := f.next
		if !limited || f.tsn.LessEq(upTo) {
			if got := r.placeHeld(st, f); got.Violation() {
				res = got
			}
		}
		f = after
	}
	return res
}

// AdvanceDefer lets pass what DeferReset holds back of all streams up to a TSN.
func (r *Queue) AdvanceDefer(upTo seq.TSN) Result {
	res := taken
	r.deferTSN = upTo
	for _, st := range r.streams {
		if st == nil {
			continue
		}
		st.lastTSN = upTo
		if got := r.takeHeld(st, true, upTo); got.Violation() {
			res = got
		}
	}
	return res
}

// Undefer takes in what DeferReset held back, without a reset; but if keep is
// set the reset of the streams of sids (all if it is empty) goes on waiting for
// TSNs up to lastTSN.
func (r *Queue) Undefer(keep bool, sids []uint16, lastTSN seq.TSN) Result {
	res := taken
	r.deferAll, r.deferTSN = keep && len(sids) == 0, lastTSN
	for _, st := range r.streams {
		if st == nil {
			continue
		}
		st.deferred = r.deferAll || keep && slices.Contains(sids, st.sid)
		st.lastTSN = lastTSN
		if got := r.takeHeld(st, st.deferred, lastTSN); got.Violation() {
			res = got
		}
	}
	return res
}
