package tx

// strictPriority sends from the stream of the smallest priority value that has
// something to send; streams of the same priority take turns (RFC 8260,
// Sections 3.4 and 4.3.2: "The higher the assigned value, the lower the
// priority").
type strictPriority struct {
	h     schedHeap
	turns uint64
}

func (s *strictPriority) add(sid uint16, _ uint64) { s.enqueue(sid) }

// enqueue puts sid behind the streams of its priority.
func (s *strictPriority) enqueue(sid uint16) {
	s.turns++
	s.h.put(sid, schedKey{minor: s.turns, major: s.h.entry(sid).value})
}

func (s *strictPriority) remove(sid uint16)    { s.h.remove(sid) }
func (s *strictPriority) next() (uint16, bool) { return s.h.top() }
func (s *strictPriority) endPacket()           {}

// The stream stays the first, however often it is its turn.
func (s *strictPriority) sentBulk(sid uint16, n, k int) {}

func (s *strictPriority) sent(sid uint16, _ int, _ uint64, free bool) {
	if free {
		s.enqueue(sid)
	}
}

func (s *strictPriority) setValue(sid, value uint16) {
	e := s.h.entry(sid)
	e.value = value
	if e.pos != 0 {
		s.enqueue(sid)
	}
}
