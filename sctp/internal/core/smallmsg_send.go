package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// CanSendSmall reports whether m qualifies for the small-message fast path: it fits one
// packet, nothing else is to be sent, and nothing else will be unacknowledged.
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

// SendSmall queues a message of which Lone has just said that it is one, and appends its
// packet to b, as Send and PollTransmit would one after the other. It tells of the packet
// in tx. It reports false, and has done nothing, if the packet has to wait.
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

// rests reports whether nothing waits to be sent, nothing holds messages back, and there
// is room for one of n bytes. A scheduler that counts bytes has to know of them; others are
// after a message that went alone as they were before.
func (q *SendQueue) idleWithRoom(n int) bool {
	return q.waiting == 0 && q.opened == 0 && q.routed == 0 && q.borrowed == nil && !q.held && !q.blocked && !q.stalled &&
		q.kind != SchedFair && q.kind != SchedWFQ && q.fits(int64(n))
}
