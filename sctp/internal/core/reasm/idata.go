package reasm

import "github.com/weftstack/weft/sctp/internal/core/seq"

// placeIData puts an I-DATA fragment where it belongs (RFC 8260, Section
// 2.2.3): the message is found by stream, U bit and MID, and the place in it by
// the FSN.
func (r *Queue) placeIData(st *inStream, f *frag) Result {
	m := r.last
	if m == nil || m.key != f.msg {
		m = r.numbered.find(f.msg)
	}
	if m == nil {
		if d := seq.MID(f.msg) - seq.MID(st.next); !f.unordered && int32(d) < 0 {
			r.freeFrag(f)
			if st.skips {
				return stale
			}
			return repeated
		}
		if d := int32(uint32(f.msg) - st.uSkip); f.unordered && st.uSkipped && d <= 0 && d > -staleMIDs {
			r.freeFrag(f)
			return stale
		}
		if r.isUnfragmented(st, f) {
			r.pushUnfragmented(st, f)
			return taken
		}
		m = r.newMessage(st, f.msg, f.unordered)
		if !f.unordered && m.num == st.next {
			m.turn = true
			st.head = m
		}
		if !f.begin || !f.end || !f.unordered && !m.turn {
			r.numbered.insert(m)
			r.wait(m)
			r.last = m
		}
	}
	if !m.fits(f) {
		r.freeFrag(f)
		return badFSN
	}
	if f.end {
		m.ended, m.lastFSN = true, f.seq
	}
	if f.seq != m.next || !m.begun && !f.begin {
		if r.loose.find(f.slot, f.seq) != nil {
			r.freeFrag(f)
			return badFSN
		}
		if m.loose.head == nil || int32(f.seq-m.maxFSN) > 0 {
			m.maxFSN = f.seq
		}
		r.loose.insert(f)
		m.loose.push(f)
		return taken
	}
	r.append(m, f)
	if m.loose.head != nil {
		r.extend(m) // cannot fail: the key of a loose fragment is the message's
	}
	r.deliver(m)
	return taken
}

// fits reports whether the FSN and the B and E bits of f agree with what is
// known of m.
func (m *message) fits(f *frag) bool {
	switch {
	case m.complete:
		return false
	case f.begin:
		// "In this case, the FSN is implicitly considered to be 0."
		if m.begun {
			return false
		}
		f.seq = 0
	case !m.begun && f.seq == 0:
		return false // FSN 0 is the one with the B bit
	case m.begun && int32(f.seq-m.next) < 0:
		return false
	}
	if m.ended && int32(f.seq-m.lastFSN) >= 0 {
		return false // a second E bit, or a fragment behind it
	}
	return !f.end || m.loose.head == nil || int32(m.maxFSN-f.seq) < 0
}
