package tx

// fcfs sends messages "in the order in which they have been delivered by the
// application" (RFC 8260, Section 3.1).
type fcfs struct{ h schedHeap }

func (s *fcfs) add(sid uint16, arrival uint64) { s.h.put(sid, schedKey{minor: arrival}) }
func (s *fcfs) remove(sid uint16)              { s.h.remove(sid) }
func (s *fcfs) next() (uint16, bool)           { return s.h.top() }
func (s *fcfs) endPacket()                     {}
func (s *fcfs) sentBulk(sid uint16, n, k int)  {}
func (s *fcfs) setValue(sid, value uint16)     {}

func (s *fcfs) sent(sid uint16, _ int, arrival uint64, _ bool) {
	if s.h.entry(sid).key.minor != arrival {
		s.h.put(sid, schedKey{minor: arrival})
	}
}
