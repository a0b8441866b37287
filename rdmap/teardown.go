package rdmap

import (
	"time"

	"github.com/weftstack/weft/ddp"
)

// Linger is the time for which a stream in [StateError] waits for the peer to end its
// direction before it releases its channel.
const Linger = 10 * time.Second

// Close closes the stream gracefully: it executes the posted operations and ends this
// direction. When the peer has ended its direction, too, the stream is in [StateError]. An
// idle stream is aborted. Close does not block.
func (s *Stream) Close() {
	s.mu.Lock()
	switch s.state {
	case StateIdle:
		s.mu.Unlock()
		s.Abort(ErrClosed)
		return
	case StateRTS:
		s.paused = false
		s.change(StateClosing, ErrClosed)
	}
	s.mu.Unlock()
	s.transmit()
}

// Cut returns the reason for which a graceful close ended early, or nil: data may not have
// arrived even if its operations have completed.
func (s *Stream) Cut() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Abort ends the stream at once, for the reason err: it flushes outstanding operations and
// ends this direction without a Terminate message. It does not block.
func (s *Stream) Abort(err error) {
	s.rmu.Lock()
	s.mu.Lock()
	if s.state < StateTerminate {
		s.change(StateTerminate, err)
		s.flush(nil)
	}
	s.mu.Unlock()
	s.rmu.Unlock()
	s.transmit()
	s.advanceTeardown()
}

// Fail ends the stream with a fault that no incoming message caused (RFC 5040, Section 7.1,
// case 1): it sends a Terminate message without headers.
func (s *Stream) Fail(f ddp.Fault) {
	s.rmu.Lock()
	s.mu.Lock()
	if s.state < StateTerminate {
		s.term = TerminateHeader{Fault: f}
		s.termDue = s.ch != nil && !s.endSent
		s.change(StateTerminate, &TerminateError{Header: s.term})
		s.flush(nil)
	}
	s.mu.Unlock()
	s.rmu.Unlock()
	s.transmit()
	s.advanceTeardown()
}

// Lost implements ddp.Sink.
func (s *Stream) Lost(err error) {
	s.rmu.Lock()
	s.mu.Lock()
	if s.state < StateTerminate {
		s.change(StateTerminate, err)
		s.flush(nil)
	}
	s.termDue, s.endSent, s.peerEnd = false, true, true
	s.mu.Unlock()
	s.rmu.Unlock()
	s.ending.Store(true)
	s.advanceTeardown()
}

// blame marks the operation that a Terminate message of the peer objects to.
func (s *Stream) blame(t *TerminateHeader) { // mu is held
	status := StatusRemoteOperation
	switch t.Fault.Layer()<<4 | t.Fault.Type() {
	case ddp.LayerRDMAP<<4 | 1, ddp.LayerDDP<<4 | 1:
		status = StatusRemoteAccess
	}
	var named *Op
	for i := s.opTail; i != s.opHead; i++ {
		op := &s.ops[i&uint32(len(s.ops)-1)]
		if !op.named(t) {
			continue
		}
		if !op.done.Load() || op.refs.Load() > 0 {
			named = op
			break
		}
		// The peer's lower layer has taken it in. If another operation is named too, that
		// one is more likely: two Writes may have the same target.
		if named == nil {
			named = op
		}
	}
	if named != nil {
		named.status = status
	}
}

// named reports whether the headers in a Terminate message are about the
// operation: those of an untagged message have its number in its queue, those of a
// Write where a segment was to be placed (RFC 5040, Section 4.8).
func (o *Op) named(t *TerminateHeader) bool {
	if !o.begun {
		return false
	}
	if untagged := o.Kind != OpWrite && (o.Kind != OpWriteImm || o.second); untagged &&
		t.HasDDP && !t.DDP.Tagged && t.DDP.QN == o.qn && t.DDP.MSN == o.msn {
		return true
	}
	switch o.Kind {
	case OpWrite, OpWriteImm:
		return t.HasDDP && t.DDP.Tagged && t.DDP.STag == o.STag &&
			t.DDP.TO >= o.TO && t.DDP.TO-o.TO < max(uint64(o.size), 1)
	case OpRead:
		return t.HasRead && t.Read.SrcSTag == o.STag && t.Read.SinkTO >= o.pos &&
			t.Read.SinkTO-o.pos < max(uint64(o.size), 1)
	}
	return false
}

// flush completes what is queued, with StatusFlush where there is no other;
// operations that the channel still references complete when it releases
// them. bad, if not nil, is a receive buffer that a message did not fit.
func (s *Stream) flush(bad *ddp.Buffer) { // rmu and mu are held
	s.rx.Stop()
	s.hit = nil
	s.cur, s.rtr = current{}, nil
	for i := s.opTail; i != s.opHead; i++ {
		op := &s.ops[i&uint32(len(s.ops)-1)]
		if !op.done.Load() {
			if op.status == StatusSuccess {
				op.status = StatusFlush
			}
			op.done.Store(true)
		}
	}
	s.opNext = s.opHead
	clear(s.reads)
	s.rdTail = s.rdHead
	for i := s.rsTail.Load(); i != s.rsHead; i++ {
		s.cutOff(&s.resps[i&uint32(len(s.resps)-1)])
	}
	s.rsTail.Store(s.rsHead)
	s.reap()
	s.rx.Queue(QueueSend).Empty(func(b *ddp.Buffer) {
		c := Completion{ID: b.ID, Status: StatusFlush}
		if b == bad {
			c.Status = StatusLocalLength
		}
		ddp.Unpin(b.SGL)
		b.SGL = b.SGL[:0]
		s.obs.Received(c)
	})
}

// advanceTeardown takes the next steps of a stream that ends: it flushes what a fault
// found outside the receiving side left, moves to StateError, and releases the
// channel. It may be called at any time, with no lock held.
func (s *Stream) advanceTeardown() {
	s.rmu.Lock()
	s.mu.Lock()
	closed := s.state == StateClosing && s.endSent && s.peerEnd
	if closed || s.unflushed {
		s.unflushed = false
		s.flush(nil)
	}
	if closed || s.state == StateTerminate && (s.endSent || s.ch == nil) {
		s.change(StateError, nil)
		s.table.Remove(s.sink)
		s.reap()
	}
	if s.drained {
		s.discard()
	}
	var ch ddp.Channel
	if s.ch != nil && !s.freed && s.state == StateError && s.peerEnd && s.inflight.Load() == 0 {
		s.freed, ch = true, s.ch
		s.rx.Forget()
		if s.linger != nil {
			s.linger.Stop()
		}
	}
	if s.ch != nil && s.state == StateError && !s.peerEnd && s.linger == nil {
		s.linger = time.AfterFunc(Linger, s.giveUp)
	}
	held := s.holds()
	spent := s.spent
	s.spent = nil
	s.mu.Unlock()
	s.rmu.Unlock()
	freeAll(spent)
	s.reportHeld(held)
	if ch != nil {
		ch.Release()
	}
}

// giveUp releases the channel although the peer has not ended its direction.
func (s *Stream) giveUp() {
	s.mu.Lock()
	s.peerEnd = true
	s.mu.Unlock()
	s.advanceTeardown()
}

// discard frees the queues of a stream that is drained: nothing refers to them any
// more, but completions that wait to be polled may refer to the stream for long.
func (s *Stream) discard() { // rmu and mu are held
	s.ops, s.reads, s.resps = nil, nil, nil
	s.rx.Discard()
}
