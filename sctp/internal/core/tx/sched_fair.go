package tx

// fairQueue shares capacity by bytes: equally (RFC 8260, Section 3.5) or, with
// weighted set, by the weights of the streams (Section 3.6). It is start-time
// fair queueing: every stream has a virtual time that moves on by bytes sent
// over weight; the stream furthest behind goes next; one that comes back starts
// at the virtual time of the stream served last, so idling saves up nothing.
type fairQueue struct {
	h        schedHeap
	now      uint64 // virtual time of the stream served last
	weighted bool
}

// wfqScale is the virtual time that a byte takes at weight 1. Virtual time
// wraps; keys are compared in serial number arithmetic.
const wfqScale = 1 << 16

func (s *fairQueue) add(sid uint16, _ uint64) {
	k := s.h.entry(sid).key
	if int64(k.minor-s.now) < 0 {
		k.minor = s.now
	}
	s.h.put(sid, k)
}

func (s *fairQueue) remove(sid uint16)    { s.h.remove(sid) }
func (s *fairQueue) next() (uint16, bool) { return s.h.top() }
func (s *fairQueue) endPacket()           {}

func (s *fairQueue) sent(sid uint16, n int, _ uint64, _ bool) {
	e := s.h.entry(sid)
	k := e.key
	if s.h.ids[0] == sid { // else a message begun earlier is being finished
		s.now = k.minor
	}
	w := uint64(1)
	if s.weighted {
		w = uint64(max(e.value, 1))
	}
	k.minor += uint64(n) * wfqScale / w
	s.h.put(sid, k)
}

func (s *fairQueue) sentBulk(sid uint16, n, k int) {
	for range k {
		s.sent(sid, n, 0, false)
	}
}

func (s *fairQueue) setValue(sid, value uint16) { s.h.entry(sid).value = value }
