package core

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/wire"
)

// Lone reports whether it is plain that a message is all that there is to send, in one
// packet, and all that will not be acknowledged then: a question, or the answer to one.
func (a *Assoc) Lone(m *Message) bool {
	t := &a.tx
	q, sb := t.q, t.sb
	if q == nil || q.messages > 0 && !(t.lateSack.on && q.messages == 1) {
		return false
	}
	if m.Unordered || m.Immediate || m.Lent || m.Keyed || m.LimitRtx || m.Droppable || m.Of != nil || m.Unit != 0 || m.Lifetime != 0 || m.Remote.IsValid() {
		return false
	}
	if a.state != Established || a.cfg.general || a.auth.on || len(a.paths) != 1 || a.shut.wanted {
		return false
	}
	p, n := &a.paths[0], len(m.Header)+len(m.Body)
	if n == 0 || len(m.Header) > MaxHeader || q.headerLen()+n > p.pmdcs()-wire.SackHeaderLen || int(m.SID) >= len(q.streams) || int(m.SID) >= q.nstreams ||
		!a.quiet(p) || !q.rests(n) {
		return false
	}
	st := &q.streams[m.SID]
	if st.paused || st.open != nil || st.head != nil || !q.interleave && st.ordered >= maxOrderedInFlight {
		return false
	}
	if a.rx.tsns.hasGaps() || len(a.rx.tsns.dups) > 0 {
		return false // the acknowledgement is longer
	}
	return (!a.cfg.Bundle || sb.Flight(0) == 0) && sb.onlyNew() && n <= sb.rwnd && !sb.images.open && int(sb.next-sb.base) < len(sb.recs)
}

// SendLone queues a message of which Lone has just said that it is one, and appends its
// packet to b, as Send and PollTransmit would one after the other. It tells of the packet
// in tx. It reports false, and has done nothing, if the packet has to wait.
func (a *Assoc) SendLone(now Time, m *Message, b []byte, tx *Transmit) ([]byte, bool) {
	if !a.mayFill(now, 0) {
		return b, false
	}
	t, p, n := &a.tx, &a.paths[0], len(m.Header)+len(m.Body)
	q, sb := t.q, t.sb
	st := &q.streams[m.SID]
	o := q.alloc()
	o.body, o.owner, o.length, o.end, o.sent, o.count = m.Body, m.Owner, int64(n), int64(n), int64(n), 1
	o.ppid, o.sid, o.hdrLen = m.PPID, m.SID, uint8(copy(o.hdr[:], m.Header))
	o.arrival, o.mid, o.fsn, o.refs = q.arrivals, st.mid, 1, 1
	q.arrivals++
	q.buffered += int64(n)
	q.messages++
	st.mid++
	st.ordered++
	st.inFlight++
	t.run, t.hold, t.sackLater = 0, holdNone, false
	t.bytes += uint64(n)
	t.messages++
	t.busy = true

	at := len(b)
	b = wire.AppendHeader(b, a.header())
	if a.rx.sack.pending() {
		b = a.appendAck(b, p.pmdcs())
	}
	begin := len(b)
	tsn, rec := sb.assign()
	*rec = record{msg: o, size: uint16(n)}
	o.first, o.last = tsn, tsn
	sb.transmit(tsn, rec, now, 0)
	sb.noteSize(rec, &sb.paths[0], at+p.mtu-begin)
	sb.stats.Chunks++
	b = q.appendLone(b, o, tsn)
	a.dataSent(now, 0, len(b)-begin, 1)
	a.seal(b, at, 0)
	a.stats.PacketsSent++

	size := len(b) - at
	t.segSize = size
	*tx = Transmit{Tuple: p.Tuple, ECN: a.dataECN(), DSCP: p.par.dscp, SegSize: size, Segs: 1, Last: true}
	return b, true
}

// quiet reports whether nothing but new data and an acknowledgement may be due on p, the
// only path.
func (a *Assoc) quiet(p *path) bool {
	t := &a.tx
	return p.usable() && p.Local == p.home && !p.hb.pending && !p.plpmtu.pending && !t.carry.full && a.alone.n == 0 && a.ctl.n == 0 && !a.hs.sendAck &&
		!a.shut.sendReq && !a.shut.sendAck && !a.ecn.cwr && !a.ecn.echo && !a.asc.mute && !a.asc.sent && !a.asc.send && len(a.asc.queue) == 0 &&
		!a.rc.send && len(a.rc.queue) == 0 && !a.Open()
}

// rests reports whether nothing waits to be sent, nothing holds messages back, and there
// is room for one of n bytes. A scheduler that counts bytes has to know of them; others are
// after a message that went alone as they were before.
func (q *SendQueue) rests(n int) bool {
	return q.waiting == 0 && q.opened == 0 && q.routed == 0 && q.lent == nil && !q.held && !q.blocked && !q.stalled &&
		q.kind != SchedFair && q.kind != SchedWFQ && q.fits(int64(n))
}

// appendLone appends the chunk of a message that is one.
func (q *SendQueue) appendLone(b []byte, o *outMsg, tsn TSN) []byte {
	n := int(o.length)
	if q.interleave {
		b = binary.BigEndian.AppendUint32(b, uint32(wire.ChunkIData)<<24|(flagBegin|flagEnd)<<16|uint32(wire.IDataHeaderLen+n))
		b = binary.BigEndian.AppendUint32(b, uint32(tsn))
		b = binary.BigEndian.AppendUint32(b, uint32(o.sid)<<16)
		b = binary.BigEndian.AppendUint32(b, o.mid)
	} else {
		b = binary.BigEndian.AppendUint32(b, uint32(wire.ChunkData)<<24|(flagBegin|flagEnd)<<16|uint32(wire.DataHeaderLen+n))
		b = binary.BigEndian.AppendUint32(b, uint32(tsn))
		b = binary.BigEndian.AppendUint32(b, uint32(o.sid)<<16|o.mid&0xffff)
	}
	b = binary.BigEndian.AppendUint32(b, o.ppid)
	b = append(b, o.hdr[:o.hdrLen]...)
	b = append(b, o.body...)
	return wire.AppendPadding(b, n)
}
