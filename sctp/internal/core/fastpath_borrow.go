package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pace"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// Zero-copy send. While Send runs with a long message, the core borrows the caller's buffer:
// packets are built from it in memory that is kept until they are acknowledged, and
// retransmissions are read from that copy. When the caller wants its buffer back only what is
// in no packet yet is copied. So a message is copied once, and not to the send buffer first.
//
// A GSO batch of such packets that would be short is not sent, but stays open for what the
// next message adds to it: see openBatch.

// MinBorrowPackets is how many packets the windows must have room for before a send buffer is
// borrowed: a retransmission copy takes as much memory as a full batch, whatever is in it.
const MinBorrowPackets = 16

// Borrowing reports whether the buffer of a message is borrowed.
func (a *Assoc) Borrowing() bool { return a.tx.q.Borrowing() }

// BatchOpen reports whether a batch waits for more packets.
func (a *Assoc) BatchOpen() bool { return a.tx.openBatch != nil && a.tx.openBatch.tx.Segs > 0 }

// CanBorrow reports whether PollTransmitRetained can be called, unless a batch is open.
func (a *Assoc) CanBorrow() bool {
	t := &a.tx
	if a.slow != 0 || t.q.Routed() || !t.sb.CanRetain() || t.deferredSack.on {
		return false
	}
	p := &a.paths[0]
	if rtt := a.tx.baseRTT(0); rtt == 0 || rtt >= pace.MinRTT || p.single || !t.sb.OnlyNew() {
		return false
	}
	return min(p.cc.Cwnd()-t.sb.Flight(0), t.sb.PeerWindow()) >= MinBorrowPackets*p.mtu
}

// PollTransmitRetained is PollTransmit in memory that the association may keep: buf is empty,
// and its whole capacity is the memory. If kept is true the memory belongs to the association
// until owner, which is not nil, is released. The caller has just asked CanBorrow.
func (a *Assoc) PollTransmitRetained(
	now clock.Time, buf []byte, maxSegs int, owner tx.Owner,
) (out []byte, tx Transmit, ok, kept bool) {
	s := a.tx.sb
	s.Retain(buf[:cap(buf)], owner)
	next := s.NextTSN()
	out, tx, ok = a.pollRetained(now, buf, maxSegs)
	if s.NextTSN() == next || !ok && !a.BatchOpen() { // TSNs are given to what is abandoned, too
		s.DropRetained()
		tx.Retained = false
		return out, tx, ok, false
	}
	return out, tx, ok, true
}

// pollRetained is PollTransmit while a retransmission copy is open.
func (a *Assoc) pollRetained(now clock.Time, buf []byte, maxSegs int) ([]byte, Transmit, bool) {
	a.tx.sb.DeferCopies(true)
	out, tx, ok := a.PollTransmit(now, buf, maxSegs)
	a.tx.sb.DeferCopies(false)
	return out, tx, ok
}

// EndBorrow ends the borrowing of a buffer. What of it is in no packet yet is copied by
// duplicate, which returns the copy with its owner.
func (a *Assoc) EndBorrow(duplicate func(body []byte) ([]byte, tx.Owner)) {
	a.tx.q.EndBorrow(duplicate)
}

// resumeBatch goes on with the open batch. more is false if the batch has to leave as it is.
func (a *Assoc) resumeBatch(now clock.Time) (buf []byte, tx Transmit, more bool) {
	t := &a.tx
	o := t.openBatch
	buf, tx = t.sb.Retained()[:o.n], o.tx
	tx.Last = false // there may be more by now
	t.sb.SetUnsent(0)
	more = len(a.paths) == 1 && !t.q.Routed() && t.sb.OnlyNew() && tx.Tuple == a.paths[0].Tuple &&
		tx.SegSize <= a.paths[0].mtu && a.restIsNewData(now, 0, &tx, true)
	t.q.SendAnywhere()
	if !more && t.sb.Permit() && !t.sb.HasRtx() {
		t.sb.UsePermit(0, false) // the open batch is the tail loss probe
	}
	return buf, tx, more
}

// closeBatch closes the open batch, which is sent.
func (t *sender) closeBatch(tx *Transmit) {
	t.sb.EndRetain()
	tx.Retained = true
}

// ShouldCork reports whether new data waits for more before it is sent, in a batch of at most
// segs packets and room bytes. While it does, PollTransmit sends none of the data, and the
// open batch waits as well.
func (a *Assoc) ShouldCork(segs, room int) bool {
	return a.state == Established && a.tx.shouldCork(a.dataPath(), segs, room)
}
