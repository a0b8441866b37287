package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// CanSendSmall reports whether the small-message fast path of the sender takes m: it fits one
// packet, and nothing else waits to be sent or, apart from a deferred SACK, acknowledged. So
// it is with requests and their answers.
func (a *Assoc) CanSendSmall(m *Message) bool {
	t := &a.tx
	q, sb := t.q, t.sb
	if q == nil || q.messages > 0 && !(t.deferredSack.on && q.messages == 1) {
		return false
	}
	if m.Unordered || m.Immediate || m.Borrowed || m.Keyed || m.LimitRtx || m.Droppable || m.Of != nil || m.SegmentSize != 0 || m.Lifetime != 0 || m.Remote.IsValid() {
		return false
	}
	if a.slow != 0 || a.BatchOpen() {
		return false
	}
	p, n := &a.paths[0], len(m.Header)+len(m.Body)
	if n == 0 || len(m.Header) > MaxHeader || q.headerLen()+n > p.pmdcs()-wire.SackHeaderLen || int(m.SID) >= len(q.streams) || int(m.SID) >= q.nstreams || !q.idleWithRoom(n) {
		return false
	}
	st := &q.streams[m.SID]
	if st.paused || st.open != nil || st.head != nil || !q.interleave && st.ordered >= maxOrderedInFlight {
		return false
	}
	if a.rx.tsns.HasGaps() || len(a.rx.tsns.Duplicates()) > 0 {
		return false // the acknowledgement is longer
	}
	return (!a.cfg.Bundle || sb.Flight(0) == 0) && sb.onlyNew() && n <= sb.rwnd && !sb.rtxCopies.open && int(sb.next-sb.base) < len(sb.recs)
}

// SendSmall queues a message for which CanSendSmall holds and appends its packet to b, which tx
// describes, as Send and PollTransmit would. It reports false, and has done nothing, if the
// packet has to wait for the congestion window or the pacer.
func (a *Assoc) SendSmall(now clock.Time, m *Message, b []byte, tx *Transmit) ([]byte, bool) {
	if !a.mayFill(now, 0) {
		return b, false
	}
	t, p, n := &a.tx, &a.paths[0], len(m.Header)+len(m.Body)
	q, sb := t.q, t.sb
	st := &q.streams[m.SID]
	o := q.take(m, int64(n), 1)
	q.begin(st, o)
	o.sent, o.fsn, o.refs = o.length, 1, 1
	st.inFlight++
	t.pipelined, t.cork, t.sackAtEnd = 0, corkNone, false
	t.bytes += uint64(n)
	t.messages++
	t.busy = true

	at := len(b)
	b = wire.AppendHeader(b, a.header())
	if a.rx.sack.Pending() {
		b = a.appendAck(b, p.pmdcs())
	}
	begin := len(b)
	tsn, rec := sb.assign()
	*rec = record{msg: o, size: uint16(n)}
	o.first, o.last = tsn, tsn
	b = sb.appendFirst(b, now, 0, tsn, rec, at+p.mtu-begin)
	a.dataSent(now, 0, len(b)-begin, 1)
	a.seal(b, at, 0, false)
	a.stats.PacketsSent++

	size := len(b) - at
	t.segSize = size
	*tx = Transmit{Tuple: p.Tuple, ECN: a.dataECN(), DSCP: p.par.dscp, SegSize: size, Segs: 1, Last: true}
	return b, true
}

// idleWithRoom reports whether nothing waits to be sent, nothing holds messages back, and
// there is room for one of n bytes. Schedulers that count bytes have to see every message;
// to the others a message that is sent directly makes no difference.
func (q *SendQueue) idleWithRoom(n int) bool {
	return q.waiting == 0 && q.opened == 0 && q.routed == 0 && q.borrowed == nil && !q.held && !q.blocked && !q.stalled &&
		q.kind != SchedFair && q.kind != SchedWFQ && q.fits(int64(n))
}
