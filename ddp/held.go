package ddp

import "unsafe"

// heldSegment is a copy of a segment that waits for its message to get a buffer.
type heldSegment struct {
	next    *heldSegment
	hdr     Header
	how     Admission
	payload []byte
}

// heldCost estimates the memory of a held segment without its payload: the record, the
// slack of the payload's size class and an entry of the map.
const heldCost = int(unsafe.Sizeof(heldSegment{})) + 64

// heldSegments are the held segments of the queue with a shared receive queue, by MSN.
type heldSegments struct {
	byMSN  map[uint32]*heldSegment
	memory int // bytes that they occupy
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

// Held returns the bytes that are kept for messages that cannot be delivered yet: an earlier
// segment is missing, or the shared receive queue is empty. The owner must bound it, since
// the peer determines it.
func (r *Receiver) Held() int { return r.order.memory() + r.held.memory }

// placeShared places a segment of a message that takes its buffer from a shared receive
// queue, or holds a copy until the message has a buffer.
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

// back takes a buffer for the oldest message of a queue, if it has none, and places the held
// segments of the message. It reports false if the shared receive queue is empty; Resume is
// called when buffers have been posted.
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

// waits reports whether an arrival that is next in order has to wait because it ends a
// message that has no buffer.
func (r *Receiver) waits(a *arrival) bool {
	if a.kind != kindLast || a.hdr.Tagged || r.failed {
		return false
	}
	q := &r.queues[a.hdr.QN]
	return q.pool != nil && a.hdr.MSN == q.first && !r.back(q)
}

// Resume continues with the message that found the shared receive queue empty.
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
