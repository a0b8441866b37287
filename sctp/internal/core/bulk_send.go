package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

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
	b = sb.AppendBulk(b, now, i, m, &tx.Bulk{Header: header, Space: p.mtu - wire.HeaderLen, Size: n, Count: k, Sum: a.summed(i)})
	a.dataSent(now, i, k*(over+n), k)
	return b, k
}
