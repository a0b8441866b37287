package reasm

import "github.com/weftstack/weft/sctp/internal/core/seq"

// placeData puts a DATA fragment where it belongs (RFC 9260, Section 6.9): the
// fragments of a message have consecutive TSNs, so a message is found by the
// TSN that continues it, and a fragment that comes too early waits under its
// own.
func (r *Queue) placeData(st *inStream, f *frag) Result {
	m := r.continued(f.tsn)
	if f.begin {
		return r.beginData(st, f, m)
	}
	if m == nil {
		r.loose.insert(f)
		r.looseList.push(f)
		return taken
	}
	if m.key != f.msg && !m.dead {
		r.freeFrag(f)
		return mixed
	}
	r.append(m, f)
	if r.loose.n > 0 {
		if res := r.extend(m); res != taken {
			return res
		}
	}
	if m.dead {
		if m.complete {
			r.drop(m)
		}
		return stale
	}
	if m.complete {
		r.last = nil // it is what continued returned
	}
	r.deliver(m)
	return taken
}

// beginData places the first fragment of a message; before is what it seems to
// continue.
func (r *Queue) beginData(st *inStream, f *frag, before *message) Result {
	if before != nil {
		if !before.dead {
			r.freeFrag(f)
			return beginInside
		}
		r.drop(before)
	}
	if r.isUnfragmented(st, f) {
		r.pushUnfragmented(st, f)
		return taken
	}
	wait := false
	if !f.unordered {
		switch d := seq.SSN(f.msg) - seq.SSN(st.next); {
		case int16(d) < 0 && st.skips:
			if !f.end {
				r.swallow(f.tsn + 1)
			}
			r.freeFrag(f)
			return stale
		case int16(d) < 0, d == 0 && st.head != nil, d != 0 && r.numbered.find(f.msg) != nil:
			r.freeFrag(f)
			return repeated
		default:
			wait = d != 0
		}
	}
	m := r.newMessage(st, f.msg, f.unordered)
	m.next = uint32(f.tsn)
	r.append(m, f)
	if r.loose.n > 0 {
		if res := r.extend(m); res != taken {
			r.wait(m)
			return res
		}
	}
	switch {
	case wait:
		r.numbered.insert(m)
	case !m.unordered:
		m.turn = true
		st.head = m
	}
	if !m.complete {
		r.touch(m)
	}
	if wait || !m.complete {
		r.wait(m)
	}
	r.deliver(m)
	return taken
}

// continued returns the unfinished message that TSN t continues, as r.last; nil
// if there is none.
func (r *Queue) continued(t seq.TSN) *message {
	if r.last != nil && r.last.next == uint32(t) {
		return r.last
	}
	m := r.open.find(uint64(t))
	if m != nil {
		r.open.remove(m)
		r.touch(m)
	}
	return m
}

// touch makes m, which is in no table of open messages, the last touched one.
func (r *Queue) touch(m *message) {
	if r.last != nil {
		r.open.insert(r.last)
	}
	r.last = m
}

// swallow arranges that a fragment with TSN t that has no B bit, and those that
// follow it, are dropped: they belong to a message that was skipped.
func (r *Queue) swallow(t seq.TSN) *message {
	m := r.newMessage(nil, 0, false)
	m.dead, m.next = true, uint32(t)
	r.touch(m)
	r.extend(m) // cannot fail for a dead message
	if m.complete {
		r.drop(m)
		return nil
	}
	return m
}
