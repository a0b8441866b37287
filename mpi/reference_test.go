package mpi

import "slices"

// reference is a matching engine of the plainest kind: lists, searched from
// the beginning. Whatever the engine does, it must have matched the same
// receives with the same messages.
//
// The rules (MPI-4.1, Section 3.5): a message goes to the oldest receive that
// accepts it, a receive takes the message that has been there longest. Messages
// of one sender become ready in the order they were sent, with all before them
// there. One that has arrived but is not ready may go to a receive that names
// its tag, as messages of one tag never pass each other; but not past an older
// receive with AnyTag, which may be due one that is missing. When such a
// receive is gone, the messages held for it are looked at again, by source, then
// in the order sent. With overtaking all messages are ready when they arrive.
type reference struct {
	overtaking bool
	clock      int
	posted     []*refRecv
	here       []*refMsg // arrived, not matched
	arrived    map[refName]*refMsg
	next       map[int]int // by source: all messages before it are ready
}

type refName struct{ src, serial int }

type refMsg struct {
	src, tag, serial int // serial counts the messages of src
	since            int // when it arrived
	ready            int // when it became ready; 0: not yet
	to               *refRecv
}

type refRecv struct {
	src, tag, order int
	got             *refMsg
}

func (r *refRecv) accepts(m *refMsg) bool {
	return (r.src == AnySource || r.src == m.src) && (r.tag == AnyTag || r.tag == m.tag)
}

func newReference(overtaking bool) *reference {
	return &reference{overtaking: overtaking, arrived: map[refName]*refMsg{}, next: map[int]int{}}
}

// arrive is the arrival of the next message of its source and tag.
func (x *reference) arrive(m *refMsg) {
	x.clock++
	m.since = x.clock
	x.here = append(x.here, m)
	x.arrived[refName{m.src, m.serial}] = m
	if x.overtaking {
		m.ready = x.clock
		x.match(m)
		return
	}
	if m.serial != x.next[m.src] {
		x.match(m)
		return
	}
	if x.becomeReady(m) {
		x.reconsider()
	}
	wild := false
	for {
		m := x.arrived[refName{m.src, x.next[m.src]}]
		if m == nil {
			break
		}
		wild = x.becomeReady(m) || wild
	}
	if wild {
		x.reconsider()
	}
}

// becomeReady reports whether m went to a receive with AnyTag.
func (x *reference) becomeReady(m *refMsg) bool {
	x.next[m.src]++
	x.clock++
	m.ready = x.clock
	return m.to == nil && x.match(m) && m.to.tag == AnyTag
}

// match gives m to the oldest receive that accepts it, if it may have it.
func (x *reference) match(m *refMsg) bool {
	for i, r := range x.posted {
		if !r.accepts(m) {
			continue
		}
		if m.ready == 0 && r.tag == AnyTag {
			return false
		}
		x.posted = slices.Delete(x.posted, i, i+1)
		x.give(m, r)
		return true
	}
	return false
}

func (x *reference) give(m *refMsg, r *refRecv) {
	m.to, r.got = r, m
	x.here = slices.DeleteFunc(x.here, func(h *refMsg) bool { return h == m })
}

// reconsider looks at held messages again.
func (x *reference) reconsider() {
	held := slices.Clone(x.here)
	slices.SortFunc(held, func(a, b *refMsg) int {
		if a.src != b.src {
			return a.src - b.src
		}
		return a.serial - b.serial
	})
	for _, m := range held {
		if m.ready == 0 {
			x.match(m)
		}
	}
}

// lookup returns what a receive posted now would get, or nil.
func (x *reference) lookup(src, tag int) *refMsg {
	r := refRecv{src: src, tag: tag}
	var best *refMsg
	for _, m := range x.here {
		if !r.accepts(m) || m.ready == 0 && (tag == AnyTag || x.wildWaits(m)) {
			continue
		}
		if best == nil || tag == AnyTag && m.ready < best.ready || tag != AnyTag && m.since < best.since {
			best = m
		}
	}
	return best
}

// wildWaits reports whether a posted receive with AnyTag may be due a message
// that is missing before m.
func (x *reference) wildWaits(m *refMsg) bool {
	return slices.ContainsFunc(x.posted, func(r *refRecv) bool { return r.tag == AnyTag && r.accepts(m) })
}

func (x *reference) post(r *refRecv) {
	if m := x.lookup(r.src, r.tag); m != nil {
		x.give(m, r)
		return
	}
	x.posted = append(x.posted, r)
}

// cancel reports whether r was still waiting.
func (x *reference) cancel(r *refRecv) bool {
	i := slices.Index(x.posted, r)
	if i < 0 {
		return false
	}
	x.posted = slices.Delete(x.posted, i, i+1)
	if r.tag == AnyTag {
		x.reconsider()
	}
	return true
}
