package core

// restart makes next the TSN that comes next, and 0 the next SSN, or MID, of
// every stream (RFC 6525, Section 5.2.4, G4 and G5): "The same processing as
// though a FWD-TSN chunk … with all streams affected" comes first, so that
// unfinished messages are dropped and complete ones delivered.
func (r *reassembly) restart(next TSN) {
	for _, st := range r.streams {
		if st == nil {
			continue
		}
		for f := st.held.head; f != nil; f = st.held.head {
			st.held.remove(f)
			r.freeFrag(f)
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
	r.resetStreams(nil)
	r.settled = next - 1
}

// lastPending returns the largest number of an ordered message of st that is
// unfinished or waits for its turn.
func (r *reassembly) lastPending(st *inStream) (last uint32, ok bool) {
	for m := st.pending[0].head; m != nil; m = m.links[linkPending].next {
		if !ok || r.before(last, m.num) {
			last, ok = m.num, true
		}
	}
	return last, ok
}
