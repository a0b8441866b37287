package verbs

import (
	"math"

	"github.com/weftstack/weft/ddp"
)

// PostSend appends work requests to the send queue: all of them, or none and
// an error (ErrQueueFull, ErrQPState, ErrSGL, ErrWorkRequest). It does not
// block, and does not keep wr or its lists. Work requests are started in
// order and complete in order.
func (qp *QP) PostSend(wr ...SendWR) error {
	for i := range wr {
		if err := qp.checkSend(&wr[i]); err != nil {
			for k := range i {
				unpinSend(&wr[k])
			}
			return err
		}
	}
	s := qp.stream()
	if err := s.Reserve(len(wr)); err != nil {
		for i := range wr {
			unpinSend(&wr[i])
		}
		return qp.postError(err, (*sendFull)(qp))
	}
	for i := range wr {
		w := &wr[i]
		op := s.NextOp()
		op.ID, op.Kind, op.Flags = w.ID, w.Op, w.Flags
		if qp.cfg.SignalAll {
			op.Flags |= Signaled
		}
		op.STag, op.TO, op.Invalidate, op.Imm = w.Remote.STag, w.Remote.TO, w.Invalidate, w.Imm
		op.Data, op.Mask, op.Compare, op.CompareMask = w.Operand, w.OperandMask, w.Compare, w.CompareMask
		op.Inline = append(op.Inline, w.Inline...)
		op.SGL = appendSGL(op.SGL, w.SGL)
		if w.Op == OpBindMW || w.Op == OpFastRegister {
			op.TO, op.Access = w.Bind.Base, w.Bind.Access
			op.SGL = w.Bind.append(op.SGL)
		}
	}
	s.Commit()
	return nil
}

// PostRecv appends work requests to the receive queue: all of them, or none
// and an error (ErrQueueFull, ErrQPState, ErrSGL, or ErrInvalid for a queue pair
// with a shared receive queue). A receive is needed for each message the peer
// sends: a message without one ends the connection.
func (qp *QP) PostRecv(wr ...RecvWR) error {
	if qp.cfg.SRQ != nil {
		return explain(ErrInvalid, "QP %d: its receives are those of its shared receive queue", qp.num)
	}
	if err := qp.pd.pinRecvs(wr, qp.cfg.MaxRecvSGE); err != nil {
		return err
	}
	s := qp.stream()
	if err := s.ReserveRecv(len(wr)); err != nil {
		unpinRecvs(wr)
		return qp.postError(err, (*recvFull)(qp))
	}
	for i := range wr {
		wr[i].fill(s.NextRecv())
		s.PostRecv()
	}
	s.CommitRecv()
	return nil
}

// checkSend checks a work request and pins its memory.
func (qp *QP) checkSend(w *SendWR) error {
	need := Access(0)
	switch w.Op {
	case OpSend, OpSendInvalidate, OpWrite, OpWriteImm:
		if len(w.Inline) > qp.cfg.MaxInline {
			return explain(ErrWorkRequest, "%v of %d bytes inline: MaxInline is %d", w.Op, len(w.Inline), qp.cfg.MaxInline)
		}
		if w.Inline != nil && len(w.SGL) > 0 {
			return explain(ErrWorkRequest, "%v with both SGL and Inline", w.Op)
		}
	case OpRead, OpFetchAdd, OpCompareSwap:
		need = LocalWrite
		if w.Inline != nil {
			return explain(ErrWorkRequest, "%v with Inline", w.Op)
		}
		if qp.stream().ORD() == 0 {
			return explain(ErrWorkRequest, "%v on QP %d, whose ORD is 0", w.Op, qp.num)
		}
	case OpImm, OpLocalInvalidate:
		if w.Inline != nil || len(w.SGL) > 0 {
			return explain(ErrWorkRequest, "%v with SGL or Inline", w.Op)
		}
	case OpBindMW, OpFastRegister:
		if w.Inline != nil || len(w.SGL) > 0 || w.Bind == nil {
			return explain(ErrWorkRequest, "%v needs Bind, and neither SGL nor Inline", w.Op)
		}
		return w.Bind.pin(qp.pd, w.Op)
	default:
		return explain(ErrWorkRequest, "Op %d: no such operation", w.Op)
	}
	if len(w.SGL) > qp.cfg.MaxSendSGE {
		return explain(ErrSGL, "SGL of %d elements: MaxSendSGE is %d", len(w.SGL), qp.cfg.MaxSendSGE)
	}
	n, err := qp.pd.pin(w.SGL, need)
	if err == nil && n != 8 && (w.Op == OpFetchAdd || w.Op == OpCompareSwap) {
		unpin(w.SGL)
		err = explain(ErrSGL, "%v with SGL of %d bytes: it has to be 8", w.Op, n)
	}
	return err
}

// pin checks a scatter/gather list and pins its regions. It returns the bytes
// in it.
func (pd *PD) pin(l []SGE, need Access) (n uint64, err error) {
	for i := range l {
		e := &l[i]
		ok := e.MR != nil && e.MR.pd == pd && e.MR.size < 0 && e.MR.r.Access()&need == need &&
			within(e.Off, e.Len, len(e.MR.buf))
		if ok {
			n += uint64(e.Len)
			ok = n <= math.MaxUint32 // RFC 5041, Section 5.2
		}
		if !ok || !e.MR.r.Pin() {
			err := explain(ErrSGL, "SGL, element %d: %s", i, e.wrong(pd, need, n))
			unpin(l[:i])
			return 0, err
		}
	}
	return n, nil
}

// within reports whether n bytes at off are part of size bytes.
func within(off, n, size int) bool { return off >= 0 && n >= 0 && off <= size && n <= size-off }

// pinRecvs checks receives with lists of at most sges elements and pins their
// regions.
func (pd *PD) pinRecvs(wr []RecvWR, sges int) error {
	for i := range wr {
		var err error
		if len(wr[i].SGL) > sges {
			err = explain(ErrSGL, "SGL of %d elements: the most for a receive is %d", len(wr[i].SGL), sges)
		} else {
			_, err = pd.pin(wr[i].SGL, LocalWrite)
		}
		if err != nil {
			unpinRecvs(wr[:i])
			return err
		}
	}
	return nil
}

// unpinRecvs takes pinRecvs back.
func unpinRecvs(wr []RecvWR) {
	for i := range wr {
		unpin(wr[i].SGL)
	}
}

// fill makes b the buffer of the request, whose regions are pinned.
func (w *RecvWR) fill(b *ddp.Buffer) {
	b.ID = w.ID
	b.SGL = appendSGL(b.SGL, w.SGL)
}

// unpinSend takes the pins of a work request back.
func unpinSend(w *SendWR) {
	unpin(w.SGL)
	if w.Op == OpBindMW || w.Op == OpFastRegister {
		w.Bind.unpin()
	}
}

// unpin takes the pins of a list back.
func unpin(l []SGE) {
	for i := range l {
		l[i].MR.r.Unpin()
	}
}

// appendSGL appends a list whose regions are pinned.
func appendSGL(dst []ddp.Mem, l []SGE) []ddp.Mem {
	for i := range l {
		e := &l[i]
		dst = append(dst, ddp.Mem{B: e.MR.buf[e.Off : e.Off+e.Len : e.Off+e.Len], Region: e.MR.r})
	}
	return dst
}
