package rdmap

import (
	"encoding/binary"

	"github.com/weftstack/weft/ddp"
)

// Segment implements ddp.Sink.
func (s *Stream) Segment(seq uint64, seg []byte) error {
	s.rmu.Lock()
	err := s.rx.Segment(seq, seg)
	s.after()
	return err
}

// Segments implements ddp.Sink.
func (s *Stream) Segments(first uint64, segs [][]byte) error {
	s.rmu.Lock()
	err := s.rx.Segments(first, segs)
	s.after()
	return err
}

// Skip implements ddp.Sink.
func (s *Stream) Skip(seq uint64) error {
	s.rmu.Lock()
	err := s.rx.Skip(seq)
	s.after()
	return err
}

// End implements ddp.Sink.
func (s *Stream) End(seq uint64) error {
	s.rmu.Lock()
	err := s.rx.End(seq)
	s.after()
	return err
}

// resumeRecv goes on after Config.Shared was empty.
func (s *Stream) resumeRecv() {
	s.rmu.Lock()
	s.rx.Resume()
	s.after()
}

// holds returns by how much the memory of what waits has changed since it was called
// last.
func (s *Stream) holds() int { // rmu is held
	d := s.rx.Held() - s.held
	s.held += d
	return d
}

// reportHeld reports a change of d held bytes to the channel. No lock is held.
func (s *Stream) reportHeld(d int) {
	if d == 0 {
		return
	}
	s.mu.Lock()
	h := s.holder
	s.mu.Unlock()
	if h != nil {
		h.Hold(d)
	}
}

// after unlocks rmu and does what the segment gave rise to.
func (s *Stream) after() {
	kick, check, held := s.kick, s.check, s.holds()
	s.kick, s.check = false, false
	s.rmu.Unlock()
	s.reportHeld(held)
	if kick {
		s.transmit()
	}
	if check {
		s.advanceTeardown()
	}
}

// upper is the stream as the ddp.ULP of its receiver. All its methods run with
// rmu held.
type upper Stream

// PlaceTagged implements ddp.ULP.
func (u *upper) PlaceTagged(h *ddp.Header, payload []byte) ddp.Fault {
	s := (*Stream)(u)
	op, version := ParseControl(h.Ctrl)
	if version > Version {
		return FaultVersion
	}
	switch op {
	case Write:
		return s.table.Place(s.scope, h.STag, h.TO, payload).Tagged()
	case ReadResponse:
		return s.placeResponse(h, payload)
	}
	return FaultOpcode
}

// placeResponse places a segment of a Read Response: only where an outstanding
// read wants it.
func (s *Stream) placeResponse(h *ddp.Header, p []byte) ddp.Fault {
	n := uint64(len(p))
	if n == 0 {
		return 0
	}
	op, f := s.awaited(h, n)
	if f != 0 {
		s.badResponse()
		return f
	}
	op.placed += uint32(n)
	ddp.Scatter(op.SGL, h.TO-op.pos, p)
	return 0
}

// badResponse notes that a response has data that no read wants: what ends the stream
// is the answer to the read or atomic whose response is due.
func (s *Stream) badResponse() { // rmu is held
	s.mu.Lock()
	defer s.mu.Unlock()
	if op := s.headRead(); op != nil {
		op.status = StatusBadResponse
	}
}

// PlaceRun implements ddp.ULP.
func (u *upper) PlaceRun(h *ddp.Header, segs [][]byte, unit int) bool {
	s := (*Stream)(u)
	op, version := ParseControl(h.Ctrl)
	switch {
	case version > Version:
	case op == Write:
		return s.table.PlaceRun(s.scope, h.STag, h.TO, segs, unit) == ddp.Granted
	case op == ReadResponse:
		n := len(segs) * unit
		read, f := s.awaited(h, uint64(n))
		if f != 0 {
			return false
		}
		read.placed += uint32(n)
		at := h.TO - read.pos
		for _, seg := range segs {
			ddp.Scatter(read.SGL, at, seg[ddp.TaggedHeaderLen:])
			at += uint64(unit)
		}
		return true
	}
	return false
}

// awaited returns the read whose response has n bytes, not 0, as h says.
func (s *Stream) awaited(h *ddp.Header, n uint64) (*Op, ddp.Fault) { // rmu is held
	if h.STag != s.sink.STag() {
		return nil, ddp.FaultSTag
	}
	if h.TO+n < h.TO {
		return nil, ddp.FaultWrap
	}
	op := s.hit
	if op == nil || !op.wants(h.TO, n) {
		if op = s.findRead(h.TO, n); op == nil {
			return nil, ddp.FaultBounds
		}
		s.hit = op
	}
	return op, 0
}

// wants reports whether n bytes at to of the sink space are within the op's.
func (o *Op) wants(to, n uint64) bool {
	return to >= o.pos && to+n <= o.pos+uint64(o.size)
}

// findRead returns the outstanding read that wants n bytes at to. An op stays
// outstanding while rmu is held.
func (s *Stream) findRead(to, n uint64) *Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := s.rdTail; i != s.rdHead; i++ {
		if op := s.reads[i&uint32(len(s.reads)-1)]; op.Kind == OpRead && op.wants(to, n) {
			return op
		}
	}
	return nil
}

// AdmitUntagged implements ddp.ULP.
func (u *upper) AdmitUntagged(h *ddp.Header) (ddp.Admission, ddp.Fault) {
	s := (*Stream)(u)
	op, version := ParseControl(h.Ctrl)
	if version > Version {
		return 0, FaultVersion
	}
	qn := op.queue()
	if qn < 0 || uint32(qn) != h.QN {
		return 0, FaultOpcode
	}
	if qn != QueueSend {
		s.repost(s.rx.Queue(qn), qn)
	} else if op.immediate() {
		return ddp.AdmitInline, 0
	}
	return ddp.AdmitBuffer, 0
}

// Deliver implements ddp.ULP.
func (u *upper) Deliver(h *ddp.Header, n uint32, b *ddp.Buffer, length uint32) ddp.Fault {
	s := (*Stream)(u)
	op, _ := ParseControl(h.Ctrl)
	switch op {
	case Write:
		return 0 // RFC 5040, Section 5.1: not delivered to the ULP
	case ReadResponse:
		return s.deliverReadResponse(h, n)
	case ReadRequest:
		return s.deliverReadRequest(h, n, b.SGL[0].B[:length])
	case AtomicRequest:
		return s.deliverAtomicRequest(b.SGL[0].B[:length])
	case AtomicResponse:
		return s.deliverAtomicResponse(b.SGL[0].B[:length])
	case Terminate:
		return s.deliverTerminate(b.SGL[0].B[:length])
	}
	return s.deliverSend(op, h, b, length)
}

// deliverSend completes a receive: for the Send family and Immediate Data.
func (s *Stream) deliverSend(op Opcode, h *ddp.Header, b *ddp.Buffer, length uint32) ddp.Fault {
	c := Completion{ID: b.ID, Len: length}
	if op.solicited() {
		c.Flags |= CompletionSolicited
	}
	if op.immediate() {
		if length != ImmediateLen { // RFC 7306, Section 6.3
			return FaultUnspecified
		}
		c.Flags |= CompletionImm
		c.Len, c.Imm = 0, binary.BigEndian.Uint64(b.Inline[:])
	}
	if op.invalidates() {
		// RFC 5040, Section 5.3.
		if d := s.table.InvalidateRemote(s.scope, h.Word); d != ddp.Granted {
			return FaultCannotInval
		}
		c.Flags |= CompletionInvalidate
		c.Invalidated = h.Word
	}
	ddp.Unpin(b.SGL)
	b.SGL = b.SGL[:0]
	s.obs.Received(c)
	return 0
}

// deliverReadResponse completes a read. Responses come in the order of the
// requests (RFC 5040, Section 5.5, rule 20).
func (s *Stream) deliverReadResponse(h *ddp.Header, n uint32) ddp.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.headRead()
	if op == nil {
		return FaultOpcode
	}
	if op.Kind != OpRead {
		op.status = StatusBadResponse
		return FaultOpcode
	}
	// Section 5.2.2: the sink MAY validate that the response matches.
	if op.placed != op.size || op.size > 0 && h.TO+uint64(n) != op.pos+uint64(op.size) {
		op.status = StatusBadResponse
		return ddp.FaultBounds
	}
	s.answered(op)
	return 0
}

// deliverAtomicResponse completes an atomic.
func (s *Stream) deliverAtomicResponse(b []byte) ddp.Fault {
	id, original, ok := ParseAtomicResponse(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.headRead()
	switch {
	case op == nil:
		return FaultOpcode
	case !ok:
		op.status = StatusBadResponse
		return FaultUnspecified
	case op.Kind == OpRead || uint64(id) != op.pos:
		op.status = StatusBadResponse
		return FaultOpcode
	}
	var v [8]byte
	binary.NativeEndian.PutUint64(v[:], original)
	ddp.Scatter(op.SGL, 0, v[:])
	s.answered(op)
	return 0
}

// headRead returns the op whose response is due.
func (s *Stream) headRead() *Op { // mu is held
	if s.rdTail == s.rdHead {
		return nil
	}
	return s.reads[s.rdTail&uint32(len(s.reads)-1)]
}

// answered completes the op at the head of reads.
func (s *Stream) answered(op *Op) { // rmu and mu are held
	s.reads[s.rdTail&uint32(len(s.reads)-1)] = nil
	s.rdTail++
	s.hit = nil
	op.done.Store(true)
	s.reap()
	// ORD, a fence or a close may have waited for this.
	if s.opNext != s.opHead || s.state == StateClosing {
		s.kick = true
	}
}

// deliverTerminate ends the stream on behalf of the peer.
func (s *Stream) deliverTerminate(b []byte) ddp.Fault {
	t, ok := ParseTerminate(b)
	if !ok {
		return FaultUnspecified
	}
	s.mu.Lock()
	if s.state < StateTerminate {
		s.blame(&t)
		s.change(StateTerminate, &TerminateError{ByPeer: true, Header: t})
		s.flush(nil)
	}
	s.mu.Unlock()
	s.kick = true
	return 0
}

// Faulted implements ddp.ULP: it sends a Terminate message for the first
// fault. What the message includes is RFC 5040, Section 4.8, Figure 10.
func (u *upper) Faulted(f ddp.Fault, header []byte, length int, b *ddp.Buffer) {
	s := (*Stream)(u)
	t := TerminateHeader{Fault: f}
	local := f.Type() == 0 && f.Layer() <= ddp.LayerDDP
	if !local && f.Layer() != ddp.LayerLLP && len(header) > 0 {
		t.HasLength, t.SegmentLength = true, uint16(min(length, 1<<16-1))
		t.setDDP(header)
		if s.isBadRead {
			t.HasRead, t.Read = true, s.badRead
		}
	}
	s.mu.Lock()
	if s.state < StateTerminate {
		s.term, s.termDue = t, s.ch != nil && !s.endSent
		s.change(StateTerminate, &TerminateError{Header: t})
		if f != ddp.FaultTooLong {
			b = nil
		}
		s.flush(b)
	}
	s.mu.Unlock()
	s.kick, s.check = true, true
}

// Ended implements ddp.ULP.
func (u *upper) Ended() {
	s := (*Stream)(u)
	s.mu.Lock()
	s.peerEnd = true
	switch s.state {
	case StateIdle:
		s.change(StateTerminate, ErrClosed)
		s.flush(nil)
	case StateRTS:
		s.paused = false
		s.change(StateClosing, ErrClosed)
	}
	if s.state == StateClosing && s.unanswered() {
		// The peer has ended its direction: it will answer no more.
		s.change(StateTerminate, ErrClosed)
		s.flush(nil)
	}
	s.mu.Unlock()
	s.kick, s.check = true, true
}

// unanswered reports whether an op in the queue waits for, or will need, a
// response.
func (s *Stream) unanswered() bool { // mu is held
	if s.rdTail != s.rdHead {
		return true
	}
	for i := s.opNext; i != s.opHead; i++ {
		if s.ops[i&uint32(len(s.ops)-1)].Kind.Responds() {
			return true
		}
	}
	return s.cur.op != nil && s.cur.op.Kind.Responds()
}
