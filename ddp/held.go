package ddp

import "unsafe"

// heldSegment is a copy of a segment that waits for its message to get a buffer.
type heldSegment struct {
	next    *heldSegment
	hdr     Header
	how     Admission
	payload []byte
}

// heldCost is about what a held segment takes besides its payload: the record, the
// slack of the payload's size class and a place in the map.
const heldCost = int(unsafe.Sizeof(heldSegment{})) + 64

// heldSegments are those of the queue with a pool, by MSN.
type heldSegments struct {
	byMSN  map[uint32]*heldSegment
	memory int // bytes that they take
}

// has reports whether there are segments of a message.
func (l *heldSegments) has(msn uint32) bool { return l.byMSN[msn] != nil }

func (l *heldSegments) add(h *Header, payload []byte, how Admission) {
	if l.byMSN == nil {
		l.byMSN = make(map[uint32]*heldSegment)
	}
	s := &heldSegment{next: l.byMSN[h.MSN], hdr: *h, how: how, payload: append([]byte(nil), payload...)}
	l.byMSN[h.MSN] = s
	l.memory += heldCost + cap(s.payload)
}

// take removes and returns the segments of a message.
func (l *heldSegments) take(msn uint32) *heldSegment {
	first := l.byMSN[msn]
	delete(l.byMSN, msn)
	for s := first; s != nil; s = s.next {
		l.memory -= heldCost + cap(s.payload)
	}
	if len(l.byMSN) == 0 {
		l.byMSN = nil // it does not shrink by itself
	}
	return first
}

// Held returns the bytes of memory that wait for what did not come yet, or for buffers
// of a pool. The owner is to see to it that a peer cannot have it grow without end.
func (r *Receiver) Held() int { return r.order.memory() + r.held.memory }

// placeShared places a segment of a message that takes its buffer from a pool, or
// holds it.
func (r *Receiver) placeShared(q *Queue, h *Header, payload []byte, how Admission) (*Buffer, Fault) {
	d := h.MSN - q.first
	if d >= MaxOutstanding {
		return nil, FaultMSN // delivered before, or of a message that cannot be sent yet
	}
	if d == 0 && r.back(q) {
		if r.failed {
			return nil, 0
		}
		b := q.First()
		return b, b.put(h, payload, how)
	}
	r.held.add(h, payload, how)
	return nil, 0
}

// back gives the oldest message of a queue its buffer, if it has none, and places what
// is held of the message. It reports false if the pool is empty; Resume is called when
// it is not any more.
func (r *Receiver) back(q *Queue) bool {
	if q.n > 0 {
		return true
	}
	if !q.pool.take(q.First(), r) {
		r.starved = true
		return false
	}
	q.n = 1
	b := q.First()
	for s := r.held.take(q.first); s != nil && !r.failed; s = s.next {
		if f := b.put(&s.hdr, s.payload, s.how); f != 0 {
			r.fault(f, AppendHeader(r.hdr[:0], &s.hdr), s.hdr.Len()+len(s.payload), b)
		}
	}
	return true
}

// waits reports whether an arrival that is due has to wait: it ends a message that has
// no buffer.
func (r *Receiver) waits(a *arrival) bool {
	if a.kind != kindLast || a.hdr.Tagged || r.failed {
		return false
	}
	q := &r.queues[a.hdr.QN]
	return q.pool != nil && a.hdr.MSN == q.first && !r.back(q)
}

// Resume goes on with a message that the pool had no buffer for.
func (r *Receiver) Resume() {
	if !r.starved {
		return
	}
	r.starved = false
	if q := r.shared; r.held.has(q.first) {
		r.back(q)
	}
	r.deliverEarly()
}
