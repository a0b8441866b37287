package rdmap

import (
	"encoding/binary"

	"github.com/weftstack/weft/ddp"
)

// current is the message being cut into segments.
type current struct {
	active bool
	op     *Op       // of the send queue, or
	resp   *response // a response to the peer, or
	term   bool      // the Terminate message
	msg    ddp.Message
}

// creditor is the Owner of segments that hold copies.
type creditor Stream

// Released implements ddp.Owner.
func (c *creditor) Released(error) { (*Stream)(c).credit(1) }

// ReleasedN implements ddp.BatchOwner.
func (c *creditor) ReleasedN(n int, _ error) { (*Stream)(c).credit(n) }

// credit takes back segments that were outstanding. A stream that had stopped at its
// window goes on when a good part of it is free: in batches, not one by one.
func (s *Stream) credit(released int) {
	n := s.inflight.Add(int32(-released))
	if n <= s.resume && s.stalled.Load() && s.stalled.CompareAndSwap(true, false) {
		s.transmit()
	}
	if n == 0 && s.ending.Load() {
		s.advanceTeardown()
	}
}

// transmit sends what can be sent. One goroutine at a time does it, without
// holding a lock while it calls the channel; others leave their work to it.
func (s *Stream) transmit() {
	s.mu.Lock()
	if s.sending || s.ch == nil {
		s.mu.Unlock()
		return
	}
	s.sending = true
	var failed error
	ended := false
	for failed == nil {
		n := s.fill()
		if n > 0 {
			s.mu.Unlock()
			failed = s.send(n)
			s.mu.Lock()
			continue
		}
		if !s.endDue() {
			break
		}
		s.mu.Unlock()
		failed = s.ch.Terminate()
		s.mu.Lock()
		s.endSent, ended = true, true
	}
	s.sending = false
	spent := s.spent
	s.spent = nil
	s.mu.Unlock()
	freeAll(spent)
	if failed != nil {
		s.Lost(failed)
	} else if ended {
		s.ending.Store(true)
		s.advanceTeardown()
	}
}

// send hands n segments to the channel, which fill made.
func (s *Stream) send(n int) error {
	if s.batched.Body != nil {
		err := s.batcher.SendTrain(&s.batched)
		if err != nil {
			ddp.ReleaseN(s.batched.Owner, n, err)
		}
		s.batched = ddp.Train{}
		return err
	}
	segs := s.segs[:n]
	sent, err := s.ch.Send(segs)
	for i := range segs {
		if i >= sent {
			segs[i].Owner.Released(err)
		}
		segs[i].Body = nil
	}
	return err
}

// endDue reports whether the channel must be told that this direction ends:
// after an error at once, when closing after all that was posted.
func (s *Stream) endDue() bool { // mu is held
	if s.endSent || s.cur.active {
		return false
	}
	switch s.state {
	case StateTerminate:
		return !s.termDue
	case StateClosing:
		return s.opNext == s.opHead && s.rdTail == s.rdHead && s.rsTail.Load() == s.rsHead
	}
	return false
}

// fill makes the next segments, as far as window and batch allow, or the next ddp.Train, and
// returns their number. Messages do not interleave (RFC 5041, Section 5.3: "MUST transmit
// DDP Messages in the order they were submitted").
func (s *Stream) fill() (n int) { // mu is held
	if s.endSent {
		return 0
	}
	mulpdu := s.ch.MULPDU()
	refs := int32(0) // segments of the current message that are to be held
	for n < batch {
		if s.full(int32(n)) {
			if n > 0 {
				s.segs[n-1].Urgent = true
			}
			break
		}
		if !s.cur.active && !s.pick() {
			break
		}
		r := s.cur.resp
		if r != nil && r.src != nil && r.src.Revoked() {
			s.addReferences(refs)
			refs = 0
			s.revokedResponse(r)
			continue
		}
		if s.crowded() {
			if n > 0 {
				s.segs[n-1].Urgent = true
			}
			break
		}
		if s.batcher != nil && s.cur.msg.HasTrain(mulpdu) {
			if n == 0 {
				n = s.fillBatch(mulpdu)
			}
			if n > 0 {
				break
			}
		}
		seg := &s.segs[n]
		last := s.cur.msg.Next(mulpdu, seg)
		if op := s.cur.op; op != nil && seg.Owner == ddp.Owner(op) || r != nil && r.src != nil &&
			seg.Owner == ddp.Owner(r.src) {
			refs++
		}
		n++
		if last {
			// The completion of a message sent by reference, and MR.Drain of a
			// response's memory, wait for the acknowledgement.
			seg.Urgent = !s.cur.term && !s.cur.msg.Copy && s.cur.msg.Len > 0
			s.addReferences(refs)
			refs = 0
			s.finish()
		}
	}
	s.addReferences(refs)
	s.inflight.Add(int32(n))
	return n
}

// fillBatch makes a ddp.Train of the current message that fits the window and returns the
// number of its segments: 0 if the window has room for only one. A batch is at most a
// quarter of the window, since all of it is acknowledged at once.
func (s *Stream) fillBatch(mulpdu int) int { // mu is held
	room := int(s.window - s.inflight.Load())
	n, last := s.cur.msg.NextTrain(mulpdu, min(room, max(int(s.window)/4, 2)), &s.batched)
	if s.cur.msg.Snapshots == nil {
		s.addReferences(int32(n))
	}
	s.batched.Urgent = n >= room || last || !s.copies.Room()
	if last {
		s.finish()
	}
	return n
}

// addReferences counts n segments that reference memory of the current message. They are
// counted together, since none is released before it is sent.
func (s *Stream) addReferences(n int32) { // mu is held
	switch {
	case n == 0:
	case s.cur.op != nil:
		s.cur.op.refs.Add(n)
	default:
		s.cur.resp.src.refs.Add(n)
	}
}

// full reports whether the window is used up with n segments that are not counted
// yet, and if so sees to it that credit calls transmit in time.
func (s *Stream) full(n int32) bool {
	if s.inflight.Load()+n < s.window {
		return false
	}
	s.stalled.Store(true)
	if s.inflight.Load()+n > s.resume {
		return true
	}
	s.stalled.Store(false)
	return false
}

// crowded reports whether the current message waits for room for copies, and if so
// sees to it that credit calls transmit in time: the segments that have the room are
// under way.
func (s *Stream) crowded() bool { // mu is held
	c := s.cur.msg.Snapshots
	if c == nil || c.Room() {
		return false
	}
	s.stalled.Store(true)
	if !c.Room() {
		return true
	}
	s.stalled.Store(false)
	return false
}

// pick chooses the next message: operations and responses take turns.
func (s *Stream) pick() bool { // mu is held
	if s.termDue {
		s.termDue = false
		b := AppendTerminate(s.ctl[:0], &s.term)
		s.begin(ddp.Header{Ctrl: Control(Terminate), QN: QueueTerminate}, s.control(b), uint32(len(b)))
		s.cur.term = true
		return true
	}
	if s.state == StateTerminate || s.state == StateError {
		return false
	}
	if op := s.rtr; op != nil && s.state != StateIdle {
		s.rtr = nil
		s.startOp(op)
		return true
	}
	responds := s.rsTail.Load() != s.rsHead
	if responds && s.turn {
		s.turn = false
		s.startResponse()
		return true
	}
	for s.opNext != s.opHead && !s.paused {
		op := &s.ops[s.opNext&uint32(len(s.ops)-1)]
		waiting := s.rdHead - s.rdTail
		if op.Flags&FlagFence != 0 && waiting > 0 || op.Kind.Responds() && waiting >= max(s.ord, 1) {
			break
		}
		s.opNext++
		if op.Kind >= OpLocalInvalidate {
			s.local(op)
			if s.state == StateTerminate {
				return s.pick() // a Terminate message
			}
			continue
		}
		if op.Kind.Responds() && s.ord == 0 {
			op.status = StatusLocalOperation
			op.done.Store(true)
			s.reap()
			continue
		}
		s.turn = responds
		s.startOp(op)
		return true
	}
	if responds {
		s.startResponse()
	}
	return responds
}

// begin starts a message. Small ones are copied, so that the operation is
// complete as soon as the lower layer has it (RFC 5041, Section 5.4).
func (s *Stream) begin(h ddp.Header, sgl []ddp.Mem, n uint32) { // mu is held
	if !h.Tagged {
		h.MSN = s.msn[h.QN]
		s.msn[h.QN]++
	}
	s.cur = current{active: true, msg: ddp.Message{Header: h, SGL: sgl, Len: n, Credit: (*creditor)(s)}}
	s.cur.msg.Copy = n <= ddp.MaxCopied && int(n)+h.Len() <= s.ch.MULPDU() ||
		n > 0 && &sgl[0] == &s.ctlMem[0]
}

// control makes a list of a header in s.ctl.
func (s *Stream) control(b []byte) []ddp.Mem {
	s.ctlMem[0] = ddp.Mem{B: b}
	return s.ctlMem[:]
}

// startOp begins the message of an operation, for OpWriteImm the first or the
// second.
func (s *Stream) startOp(op *Op) { // mu is held
	sgl := op.SGL
	if len(op.Inline) > 0 {
		op.inl[0].B = op.Inline
		sgl = op.inl[:]
	}
	op.size = uint32(ddp.SGLen(sgl))
	solicited := op.Flags&FlagSolicited != 0
	switch op.Kind {
	case OpSend, OpSendInvalidate:
		h := ddp.Header{QN: QueueSend}
		code := Send
		if op.Kind == OpSendInvalidate {
			code, h.Word = SendInv, op.Invalidate
		}
		if solicited {
			code += SendSE - Send
		}
		h.Ctrl = Control(code)
		s.begin(h, sgl, op.size)
	case OpWrite, OpWriteImm:
		s.begin(ddp.Header{Tagged: true, Ctrl: Control(Write), STag: op.STag, TO: op.TO}, sgl, op.size)
	case OpImm:
		s.startImm(op, solicited)
	case OpRead:
		op.pos = s.sinkPos
		s.sinkPos += uint64(op.size)
		b := AppendReadRequest(s.ctl[:0], &ReadRequestHeader{SinkSTag: s.sink.STag(), SinkTO: op.pos,
			Size: op.size, SrcSTag: op.STag, SrcTO: op.TO})
		s.begin(ddp.Header{Ctrl: Control(ReadRequest), QN: QueueReadRequest}, s.control(b), uint32(len(b)))
	case OpFetchAdd, OpCompareSwap:
		s.atomic++
		op.pos = uint64(s.atomic)
		h := AtomicRequestHeader{Op: AtomicFetchAdd, ID: s.atomic, STag: op.STag, TO: op.TO,
			Data: op.Data, Mask: op.Mask, CompareMask: 1<<64 - 1}
		if op.Kind == OpCompareSwap {
			h.Op, h.Compare, h.CompareMask = AtomicCmpSwap, op.Compare, op.CompareMask
		}
		b := AppendAtomicRequest(s.ctl[:0], &h)
		s.begin(ddp.Header{Ctrl: Control(AtomicRequest), QN: QueueReadRequest}, s.control(b), uint32(len(b)))
	}
	s.own(op)
}

// own makes the message that was begun one of op.
func (s *Stream) own(op *Op) { // mu is held
	s.cur.op, s.cur.msg.Owner = op, op
	op.begun = true
	if h := &s.cur.msg.Header; !h.Tagged {
		op.qn, op.msn = h.QN, h.MSN
	}
}

func (s *Stream) startImm(op *Op, solicited bool) { // mu is held
	code := Immediate
	if solicited {
		code = ImmediateSE
	}
	b := binary.BigEndian.AppendUint64(s.ctl[:0], op.Imm)
	s.begin(ddp.Header{Ctrl: Control(code), QN: QueueSend}, s.control(b), uint32(len(b)))
}

// finish ends the current message, all of which is cut and about to be sent.
func (s *Stream) finish() { // mu is held
	op, resp := s.cur.op, s.cur.resp
	s.cur = current{}
	switch {
	case resp != nil:
		s.cutOff(resp)
		s.rsTail.Add(1)
	case op == nil: // a Terminate
	case op.Kind.Responds():
		s.reads[s.rdHead&uint32(len(s.reads)-1)] = op
		s.rdHead++
	case op.Kind == OpWriteImm && !op.second:
		op.second = true
		s.startImm(op, op.Flags&FlagSolicited != 0)
		s.own(op)
	default:
		op.done.Store(true)
		s.reap()
	}
}

// local does an operation that is this side's alone. It takes effect before any
// later operation starts. Failure ends the stream (RFC 5040, Section 7.1, case
// 1): later operations count on it.
func (s *Stream) local(op *Op) { // mu is held
	if op.Kind != OpLocalInvalidate {
		m, target := &op.SGL[0], op.SGL[1].Region
		if !target.Bind(m.B, op.TO, op.Access, s.scope, m.Region) {
			op.status = StatusBind
		}
	} else if s.table.InvalidateLocal(s.scope, op.Invalidate) != ddp.Granted {
		op.status = StatusLocalProtection
	}
	op.done.Store(true)
	s.reap()
	if op.status != StatusSuccess && s.state < StateTerminate {
		s.term = TerminateHeader{Fault: ddp.NewFault(ddp.LayerRDMAP, 0, 0)}
		s.termDue = !s.endSent
		s.unflushed = true // rmu is not held: advanceTeardown flushes
		s.change(StateTerminate, &TerminateError{Header: s.term})
	}
}

// reap completes operations in the order they were posted (RFC 5040, Section
// 5.5, rule 15), each when its memory is not referenced any more.
func (s *Stream) reap() { // mu is held
	for s.opTail != s.opHead {
		op := &s.ops[s.opTail&uint32(len(s.ops)-1)]
		if !op.done.Load() || op.refs.Load() != 0 {
			break
		}
		ddp.Unpin(op.SGL)
		op.SGL, op.inl[0].B = op.SGL[:0], nil
		s.opTail++
		if op.status != StatusSuccess || op.Flags&FlagSignaled != 0 {
			c := Completion{ID: op.ID, Kind: op.Kind, Status: op.status}
			if op.Kind == OpRead {
				c.Len = op.size
			}
			s.obs.Sent(c)
		}
	}
	if s.paused && !s.idle && s.opTail == s.opNext && s.state == StateRTS {
		s.idle = true
		s.obs.Idle()
	}
	if s.state == StateError && s.opTail == s.opHead && !s.drained {
		s.drained = true
		s.obs.Drained()
	}
}
