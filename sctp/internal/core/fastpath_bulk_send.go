package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// restIsNewData reports whether the packets of a batch behind the first, on path i, hold
// nothing but new data, so that nextData may build them: all else that was due is in the
// first one, and more falls due with other calls only. A SACK that need not leave yet may
// wait, if bundlesSack said so or an earlier call began the batch.
func (a *Assoc) restIsNewData(now clock.Time, i int, tx *Transmit, begun bool) bool {
	if p := &a.paths[i]; a.slow&slowBatch != 0 || !p.usable() || tx.Local != p.home {
		return false
	}
	if a.tx.spread() || i != a.dataPath() || tx.ECN != a.dataECN() || !begun && a.rx.sack.Pending() && !a.tx.sackAtEnd ||
		a.authDue(i) {
		return false
	}
	_, due := a.duePath(now, i)
	return !due
}

// firstData appends the first packet of a batch if new data, with a SACK if one waits, is all
// that there is to send. nextPacket would append the same, and take longer to find that out.
// It reports false if nextPacket has to be asked.
func (a *Assoc) firstData(now clock.Time, b []byte) (_ []byte, p built, ok bool) {
	t := &a.tx
	if !t.q.Pending() || t.q.Routed() || a.slow != 0 {
		return b, p, false
	}
	t.q.SendAnywhere()
	var header [wire.HeaderLen]byte
	p.Tuple = a.paths[0].Tuple
	b, p.ecn, ok = a.nextData(now, b, 0, wire.AppendHeader(header[:0], a.header()))
	return b, p, ok
}

// nextData appends a packet of new data for path i with the common header given: the
// first of a batch, or one after others for which restIsNewData held. A SACK goes along with the
// first or, if it waited, the last. It reports false, and appends nothing, if nextPacket
// has to see what is to be sent.
func (a *Assoc) nextData(now clock.Time, b []byte, i int, header []byte) (_ []byte, ecn uint8, ok bool) {
	t, p, at := &a.tx, &a.paths[i], len(b)
	sb, end, full := t.sb, at+p.mtu, p.pmdcs()
	if !sb.OnlyNew() || !t.q.Pending() || !a.tx.mayFill(now, i) || !a.tx.windowOpen(now, i) {
		return b, 0, false
	}
	b = append(b, header...)
	if (t.segSize == 0 || t.sackAtEnd) && a.rx.sack.Pending() && a.bundlesSack(now) {
		b = a.appendAck(b, end-len(b))
	}
	least, begin := t.q.HeaderLen(), len(b)
	for ok := true; ok && end-len(b) > least; {
		b, ok = sb.AppendNew(b, now, i, tx.Room{Space: end - len(b), Full: full})
	}
	t.q.EndPacket()
	switch {
	case len(b) > begin:
		a.dataSent(now, i, len(b)-begin, 1)
		ecn = a.dataECN()
	case len(b)-at == wire.HeaderLen:
		return b[:at], 0, false
	}
	a.seal(b, at, i, false)
	return b, ecn, true
}

// bulkData is the bulk fast path of the sender. It appends the packets that nextData would
// append next, up to segs of segSize bytes, as long as each is filled by a fragment from the
// middle of one message, or by one segment of a segmented send but the last: they differ in
// two numbers and the data. room is what any packet may need of b's capacity. It returns how
// many there are, and 0 if nextData has to see what comes.
func (a *Assoc) bulkData(now clock.Time, b []byte, i int, header []byte, segSize, segs, room int) ([]byte, int) {
	t, p := &a.tx, &a.paths[i]
	q, sb := t.q, t.sb
	if t.cork == corkAll || a.cfg.Bundle || a.cfg.MaxBurst > 0 || p.single || len(a.paths) != 1 ||
		!sb.OnlyNew() || !a.cfg.NoPacing && p.pacer.Rate() != 0 {
		return b, 0
	}
	m := q.BulkSource(now)
	if m == nil {
		return b, 0
	}
	over := q.HeaderLen()
	n := min((p.pmdcs()-over)&^3, tx.MaxFragment)
	if u := m.SegmentSize(); u != 0 {
		if wire.HeaderLen+2*(over+u) <= p.mtu {
			return b, 0 // another one fits behind it
		}
		n = u
	}
	flight, cwnd := sb.Flight(i), p.cc.Cwnd()
	if n <= 0 || wire.HeaderLen+over+n != segSize || flight == 0 || flight >= cwnd || cap(b)-len(b) < room {
		return b, 0
	}
	k := min(segs, 1+(cap(b)-len(b)-room)/segSize, (cwnd-flight+over+n-1)/(over+n), m.MiddleChunks(n))
	if p.mtu-segSize > over {
		k-- // the last segment, which is shorter, may fit behind the one before it
	}
	if k = sb.BulkRoom(k, n); k <= 1 {
		return b, 0
	}
	b = sb.AppendBulk(b, now, i, m,
		&tx.Bulk{Header: header, Space: p.mtu - wire.HeaderLen, Size: n, Count: k, Sum: a.summed(i)})
	a.dataSent(now, i, k*(over+n), k)
	return b, k
}
