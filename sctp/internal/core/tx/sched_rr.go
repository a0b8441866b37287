package tx

// roundRobin cycles around the streams that have something to send: by message,
// when messages are interleaved by chunk (RFC 8260, Section 3.2), or with
// perPacket by packet (Section 3.3).
type roundRobin struct {
	ring      []rrLink // by stream
	cur       int32    // whose turn it is; -1 when nobody has something to send
	perPacket bool
	used      bool  // perPacket: last has a chunk in the packet being filled
	last      int32 // perPacket: the stream of that packet
	first     [1]rrLink
}

// reset makes an empty scheduler.
func (s *roundRobin) reset() *roundRobin {
	*s = roundRobin{cur: -1, last: -1}
	s.ring = s.first[:]
	return s
}

type rrLink struct{ prev, next int32 }

func (s *roundRobin) add(sid uint16, _ uint64) {
	if int(sid) >= len(s.ring) {
		r := make([]rrLink, max(int(sid)+1, min(2*len(s.ring), 1<<16)))
		copy(r, s.ring)
		s.ring = r
	}
	i := int32(sid)
	if s.cur < 0 {
		s.ring[i] = rrLink{i, i}
		s.cur = i
		return
	}
	// The newcomer waits until everybody else had a turn.
	p := s.ring[s.cur].prev
	s.ring[i] = rrLink{p, s.cur}
	s.ring[p].next, s.ring[s.cur].prev = i, i
}

func (s *roundRobin) remove(sid uint16) {
	i := int32(sid)
	l := s.ring[i]
	if l.next == i {
		s.cur = -1
		return
	}
	s.ring[l.prev].next, s.ring[l.next].prev = l.next, l.prev
	if s.cur == i {
		s.cur = l.next
	}
}

func (s *roundRobin) next() (uint16, bool) {
	// "It bundles only DATA or I-DATA chunks referring to the same stream in a
	// packet."
	if s.cur < 0 || s.used && s.cur != s.last {
		return 0, false
	}
	return uint16(s.cur), true
}

func (s *roundRobin) sent(sid uint16, _ int, _ uint64, free bool) {
	if s.perPacket {
		s.used, s.last = true, int32(sid)
	} else if free && s.cur == int32(sid) {
		s.cur = s.ring[s.cur].next
	}
}

func (s *roundRobin) endPacket() {
	if s.used {
		s.used = false
		if s.cur >= 0 && s.cur == s.last {
			s.cur = s.ring[s.cur].next
		}
	}
}

// The turn came back to the only stream, or passed on with the packet before.
func (s *roundRobin) sentBulk(sid uint16, n, k int) {}

func (s *roundRobin) setValue(sid, value uint16) {}
