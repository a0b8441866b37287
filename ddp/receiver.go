package ddp

import "errors"

// Queues is the number of untagged queues of a stream: RFC 7306, Section 10.2
// lists 0 to 3.
const Queues = 4

// Admission is the decision of a ULP about an untagged segment.
type Admission uint8

// Admissions.
const (
	// AdmitBuffer places the payload into the buffer's SGL.
	AdmitBuffer Admission = iota
	// AdmitInline places it into the buffer's Inline.
	AdmitInline
)

// ULP is the upper layer protocol above a [Receiver]. The methods of Receiver call it, one
// call at a time.
type ULP interface {
	// PlaceTagged checks a tagged segment and copies its payload where it
	// belongs, as Table.Place does. It is called for segments in any order.
	PlaceTagged(h *Header, payload []byte) Fault
	// PlaceRun is PlaceTagged for segments that follow one another, the first of which
	// has the header h: each begins with a header that PlaceRun need not look at, and
	// has unit bytes behind it. It places all of them, or none and reports false if it
	// would refuse one.
	PlaceRun(h *Header, segs [][]byte, unit int) bool
	// AdmitUntagged checks the ULP's part of an untagged header. It is called
	// for segments in any order.
	AdmitUntagged(h *Header) (Admission, Fault)
	// Deliver delivers a message, in order. h is the header of its last
	// segment, n the payload of that. An untagged message is in b, and length
	// bytes long; the buffer leaves its queue after the call.
	Deliver(h *Header, n uint32, b *Buffer, length uint32) Fault
	// Faulted reports the first fault of the stream; nothing is placed or delivered after
	// it. header is the header of the segment as received or, for a fault of Deliver, as
	// it would be received; length is the size of the segment with its header in bytes.
	Faulted(f Fault, header []byte, length int, b *Buffer)
	// Ended reports that the peer has ended its direction and all that it sent has been
	// delivered.
	Ended()
}

// ErrSequence is returned for an invalid sequence number: a duplicate, one more than
// MaxOutstanding ahead, or one after the end.
var ErrSequence = errors.New("ddp: invalid sequence number")

// Receiver is the data sink of a stream (RFC 5041, Section 5): it validates segments, places
// them in the order in which they arrive, and delivers messages in the order in which they
// were sent. Its methods do not block and must not be called concurrently.
//
// Sequence numbers count the messages of the peer on the stream from 0: segments, and those
// of the lower layer itself (Skip).
//
// Messages of a queue with a [Pool] take their buffers in the order of MSNs, each when all
// messages before it have been delivered. Segments that overtake it, or find the shared
// receive queue empty, are held as copies until then. So a peer occupies at most one buffer
// for incomplete messages, and no message waits for a buffer that a later one has.
// [Receiver.Held] returns the bytes of these copies.
type Receiver struct {
	ulp     ULP
	queues  [Queues]Queue
	order   order
	failed  bool
	ended   bool
	end     uint64 // valid if ended: the sequence number of the end
	hdr     [UntaggedHeaderLen]byte
	shared  *Queue // the queue with a shared receive queue, or nil
	held    heldSegments
	starved bool   // waits in the shared receive queue for resume
	resume  func() // has the owner call Resume
	// cur is what is being handled. It is here, not on the stack, because the ULP is
	// given a pointer to its header.
	cur arrival
}

// Init prepares r for use.
func (r *Receiver) Init(ulp ULP) { r.ulp = ulp }

// Share makes queue qn take its buffers from a shared receive queue; at most one queue of a
// stream can. resume is called, with no lock of the shared receive queue held, when it was
// empty and buffers have been posted: it must call [Receiver.Resume].
func (r *Receiver) Share(qn int, pool *Pool, resume func()) {
	r.shared, r.resume = &r.queues[qn], resume
	r.shared.share(pool)
}

// Queue returns queue qn, which the ULP must Init and fill.
func (r *Receiver) Queue(qn int) *Queue { return &r.queues[qn] }

// Stop ends placement and delivery, as after a fault. r still tracks sequence numbers, so
// that Ended is called.
func (r *Receiver) Stop() {
	r.failed = true
	r.held = heldSegments{}
	if r.starved {
		r.starved = false
		r.shared.pool.forget(r)
	}
}

// Discard stops r permanently and frees the memory of the queues, which must be empty.
func (r *Receiver) Discard() {
	r.Stop()
	r.shared, r.resume = nil, nil
	r.queues = [Queues]Queue{}
}

// Forget frees what came early: nothing more will come.
func (r *Receiver) Forget() { r.order.early, r.order.table = 0, nil }

// Early returns how many arrivals wait for their turn.
func (r *Receiver) Early() int { return r.order.early }

// Next returns the first sequence number not delivered.
func (r *Receiver) Next() uint64 { return r.order.next }

// Segment takes one segment. The payload is copied before it returns.
func (r *Receiver) Segment(seq uint64, seg []byte) error {
	if err := r.admit(seq); err != nil {
		return err
	}
	h := &r.cur.hdr
	payload, f := h.parse(seg)
	r.cur.kind, r.cur.n = kindSegment, uint32(len(payload))
	if h.Last {
		r.cur.kind = kindLast
	}
	if !r.failed {
		var b *Buffer
		if f == 0 {
			b, f = r.place(h, payload)
		}
		if f != 0 {
			hl := h.Len()
			if f == FaultLocal {
				hl = 0
			}
			r.fault(f, seg[:hl], len(seg), b)
		}
	}
	r.arrived(seq)
	return nil
}

// Segments is Segment for several, numbered from first on.
func (r *Receiver) Segments(first uint64, segs [][]byte) error {
	for len(segs) > 0 {
		n := 0
		if len(segs) > 1 {
			n = r.run(first, segs)
		}
		if n == 0 {
			if err := r.Segment(first, segs[0]); err != nil {
				return err
			}
			n = 1
		}
		first += uint64(n)
		segs = segs[n:]
	}
	return nil
}

// run takes the first of segs, if it is next in order, together with those that go on
// with its message and do not end it, and returns how many those are. If there are
// none, or something is to be said against one, it is 0, and nothing was done.
func (r *Receiver) run(first uint64, segs [][]byte) int {
	if r.failed || r.ended || first != r.order.next || r.order.early > 0 {
		return 0
	}
	h := &r.cur.hdr
	payload, f := h.parse(segs[0])
	unit := len(payload)
	if f != 0 || !h.Tagged || h.Last || unit == 0 {
		return 0
	}
	n := 1
	for n < len(segs) && h.precedes(segs[0], segs[n], n*unit) {
		n++
	}
	if n == 1 || !r.ulp.PlaceRun(h, segs[:n], unit) {
		return 0
	}
	r.order.next += uint64(n)
	return n
}

// Skip takes a sequence number that the lower layer used itself.
func (r *Receiver) Skip(seq uint64) error { return r.control(seq, kindSkip) }

// End takes the sequence number of the message by which the peer ended its
// direction of the stream.
func (r *Receiver) End(seq uint64) error {
	if err := r.control(seq, kindEnd); err != nil {
		return err
	}
	r.ended, r.end = true, seq
	return nil
}

func (r *Receiver) control(seq uint64, k kind) error {
	if err := r.admit(seq); err != nil {
		return err
	}
	r.cur = arrival{kind: k}
	r.arrived(seq)
	return nil
}

// admit checks a sequence number (RFC 5043, Section 10: "Implementations
// SHOULD NOT allocate resources on the assumption that DDP-SSNs are valid
// without first performing such a validity check").
func (r *Receiver) admit(seq uint64) error {
	if dup, ok := r.order.seen(seq); dup || !ok || r.ended && seq > r.end {
		return ErrSequence
	}
	return nil
}

// place validates and places one segment.
func (r *Receiver) place(h *Header, payload []byte) (*Buffer, Fault) {
	if h.Tagged {
		return nil, r.ulp.PlaceTagged(h, payload)
	}
	if h.QN >= Queues {
		return nil, FaultQN
	}
	how, f := r.ulp.AdmitUntagged(h)
	if f != 0 {
		return nil, f
	}
	q := &r.queues[h.QN]
	if q.pool != nil {
		return r.placeShared(q, h, payload, how)
	}
	// RFC 5041, Section 7.1 asks for the checks on non-empty segments only,
	// but an empty message needs a buffer to be delivered in, too.
	b, f := q.find(h.MSN)
	if f != 0 {
		return nil, f
	}
	return b, b.put(h, payload, how)
}

// put checks and places a segment of an untagged message.
func (b *Buffer) put(h *Header, payload []byte, how Admission) Fault {
	if b.seen && b.ctrl != h.Ctrl {
		// Section 4.3: "Each DDP Segment within a specific DDP Message MUST
		// contain the same value for the RsvdULP field."
		return FaultMSN
	}
	b.seen, b.ctrl = true, h.Ctrl
	return b.place(h.MO, payload, how == AdmitInline)
}

// arrived delivers what is due now that r.cur has come.
func (r *Receiver) arrived(seq uint64) {
	if seq != r.order.next || r.waits(&r.cur) {
		r.order.put(seq, &r.cur)
		return
	}
	r.order.next++
	r.due(&r.cur)
	r.deliverEarly()
}

// deliverEarly delivers what came early and is due.
func (r *Receiver) deliverEarly() {
	for r.order.early > 0 && r.order.peek(&r.cur) && !r.waits(&r.cur) {
		r.order.drop()
		r.due(&r.cur)
	}
}

// due handles an arrival whose turn it is.
func (r *Receiver) due(a *arrival) {
	switch a.kind {
	case kindLast:
		if !r.failed {
			r.deliver(a)
		}
	case kindEnd:
		r.ulp.Ended()
	}
}

// deliver delivers the message that a is the last segment of (RFC 5041,
// Section 5.4).
func (r *Receiver) deliver(a *arrival) {
	h := &a.hdr
	if h.Tagged {
		if f := r.ulp.Deliver(h, a.n, nil, 0); f != 0 {
			r.fault(f, AppendHeader(r.hdr[:0], h), h.Len()+int(a.n), nil)
		}
		return
	}
	q := &r.queues[h.QN]
	b := q.First()
	length := h.MO + a.n // "the MO and the ULP Payload length in the last DDP Segment"
	var f Fault
	switch {
	case h.MSN != q.first:
		f = FaultMSN
	case b.got != length || b.end != length:
		// The check is not required (Section 5.2), but without it bytes that
		// were never placed would be delivered.
		f = FaultMO
	default:
		f = r.ulp.Deliver(h, a.n, b, length)
	}
	if f != 0 {
		r.fault(f, AppendHeader(r.hdr[:0], h), h.Len()+int(a.n), b)
		return
	}
	q.Drop()
	if q.pool != nil && r.held.has(q.first) {
		r.back(q)
	}
}

// fault reports the first fault (RFC 5041, Section 7.1: "MUST silently drop
// any subsequent incoming DDP Segments").
func (r *Receiver) fault(f Fault, header []byte, length int, b *Buffer) {
	r.failed = true
	r.ulp.Faulted(f, header, length, b)
}
