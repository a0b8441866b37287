package ddpsctp

// maxPartials and maxPartial bound the fragmented messages of an association
// being put together, in number and bytes each. A peer only fragments when the
// path MTU falls below what it has queued.
const (
	maxPartials = 64
	maxPartial  = 1 << 16
)

// partial is a fragmented message being put together.
type partial struct {
	sid  uint16
	ppid uint32
	tsn  uint32 // of the fragment that comes next
	b    []byte
}

// fragment takes a piece of a message that did not come in one.
func (a *Association) fragment(sid uint16, ppid, tsn uint32, begin, end bool, data []byte) {
	if begin {
		if len(a.parts) == maxPartials {
			a.link.abort("too many fragmented messages")
			return
		}
		a.parts = append(a.parts, partial{sid, ppid, tsn + 1, append([]byte(nil), data...)})
		return
	}
	for i := range a.parts {
		p := &a.parts[i]
		if p.sid != sid || p.tsn != tsn {
			continue
		}
		p.tsn++
		if p.b = append(p.b, data...); len(p.b) > maxPartial {
			a.link.abort("fragmented message too long")
			return
		}
		if end {
			whole := *p
			last := len(a.parts) - 1
			a.parts[i], a.parts[last] = a.parts[last], partial{}
			a.parts = a.parts[:last]
			a.receive(whole.sid, whole.ppid, whole.b)
		}
		return
	}
}
