package tx

// Scheduler selects how streams share an association (RFC 8260, Section 3).
type Scheduler uint8

// Stream schedulers.
const (
	SchedRR Scheduler = iota // the default: no stream can starve another
	SchedFCFS
	SchedRRPacket
	SchedPrio
	SchedFair
	SchedWFQ
)

// scheduler decides which stream sends next (RFC 8260, Section 3). It knows
// only streams that have something to send. Every operation is O(log n) or
// better in the number of those.
type scheduler interface {
	// add tells that stream sid has something to send; arrival numbers its first
	// message among all messages of the association.
	add(sid uint16, arrival uint64)
	// remove tells that sid has nothing to send any more.
	remove(sid uint16)
	// next returns the stream whose turn it is. Asking changes nothing.
	next() (sid uint16, ok bool)
	// sent tells that a chunk of n bytes of sid was sent, and that its first
	// message is arrival now. With free set another stream may have its turn:
	// either the message has ended or messages are interleaved.
	sent(sid uint16, n int, arrival uint64, free bool)
	// sentBulk is sent and endPacket for k chunks of a packet each, of a message that
	// does not end with them, where sid is the only stream, or has to end its message.
	sentBulk(sid uint16, n, k int)
	// endPacket tells that the next chunk goes into another packet.
	endPacket()
	// setValue sets the priority or weight of a stream.
	setValue(sid, value uint16)
}

// newScheduler returns the scheduler that kind names.
func newScheduler(kind Scheduler) scheduler {
	switch kind {
	case SchedFCFS:
		return &fcfs{}
	case SchedRRPacket:
		s := new(roundRobin).reset()
		s.perPacket = true
		return s
	case SchedPrio:
		return &strictPriority{}
	case SchedFair:
		return &fairQueue{}
	case SchedWFQ:
		return &fairQueue{weighted: true}
	default:
		return new(roundRobin).reset()
	}
}

// schedKey orders streams in a schedHeap: by major, then by minor in serial
// number arithmetic, so that a virtual time may wrap.
type schedKey struct {
	minor uint64
	major uint16
}

func (k schedKey) less(l schedKey) bool {
	if k.major != l.major {
		return k.major < l.major
	}
	return int64(k.minor-l.minor) < 0
}

// schedHeap is a binary heap of stream identifiers that knows where each one
// is.
type schedHeap struct {
	ids  []uint16
	info []schedEntry // by stream
}

type schedEntry struct {
	key   schedKey
	pos   int32 // place in ids plus one; 0 is absent
	value uint16
}

func (h *schedHeap) entry(sid uint16) *schedEntry {
	if int(sid) >= len(h.info) {
		s := make([]schedEntry, max(int(sid)+1, min(2*len(h.info), 1<<16)))
		copy(s, h.info)
		h.info = s
	}
	return &h.info[sid]
}

func (h *schedHeap) top() (uint16, bool) {
	if len(h.ids) == 0 {
		return 0, false
	}
	return h.ids[0], true
}

// put adds sid with key k or moves it to where k belongs.
func (h *schedHeap) put(sid uint16, k schedKey) {
	e := h.entry(sid)
	e.key = k
	if e.pos == 0 {
		h.ids = append(h.ids, sid)
		e.pos = int32(len(h.ids))
	}
	i := int(e.pos) - 1
	if !h.up(i) {
		h.down(i)
	}
}

func (h *schedHeap) remove(sid uint16) {
	e := h.entry(sid)
	if e.pos == 0 {
		return
	}
	i, n := int(e.pos)-1, len(h.ids)-1
	h.swap(i, n)
	h.ids = h.ids[:n]
	e.pos = 0
	if i < n && !h.up(i) {
		h.down(i)
	}
}

func (h *schedHeap) less(i, j int) bool {
	return h.info[h.ids[i]].key.less(h.info[h.ids[j]].key)
}

func (h *schedHeap) swap(i, j int) {
	h.ids[i], h.ids[j] = h.ids[j], h.ids[i]
	h.info[h.ids[i]].pos, h.info[h.ids[j]].pos = int32(i+1), int32(j+1)
}

func (h *schedHeap) up(i int) (moved bool) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i, moved = (i-1)/2, true
	}
	return moved
}

func (h *schedHeap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.ids) {
			return
		}
		if c+1 < len(h.ids) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return
		}
		h.swap(i, c)
		i = c
	}
}
