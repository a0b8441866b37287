package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// CanSendSmall reports whether the small-message fast path of the sender takes m: it fits one
// packet, and nothing else waits to be sent or, apart from a deferred SACK, acknowledged. So
// it is with requests and their answers.
func (a *Assoc) CanSendSmall(m *tx.Message) bool {
	t := &a.tx
	q, sb := t.q, t.sb
	if q == nil || q.Messages() > 0 && !(t.deferredSack.on && q.Messages() == 1) || !m.Plain() {
		return false
	}
	if a.slow != 0 || a.BatchOpen() {
		return false
	}
	p, n := &a.paths[0], m.Len()
	if q.HeaderLen()+n > p.pmdcs()-wire.SackHeaderLen || !q.TakesAtOnce(m, n) {
		return false
	}
	if a.rx.tsns.HasGaps() || len(a.rx.tsns.Duplicates()) > 0 {
		return false // the acknowledgement is longer
	}
	return (!a.cfg.Bundle || sb.Flight(0) == 0) && sb.OnlyNew() && sb.TakesAtOnce(n)
}

// SendSmall queues a message for which CanSendSmall holds and appends its packet to b, which tx
// describes, as Send and PollTransmit would. It reports false, and has done nothing, if the
// packet has to wait for the congestion window or the pacer.
func (a *Assoc) SendSmall(now clock.Time, m *tx.Message, b []byte, tx *Transmit) ([]byte, bool) {
	if !a.tx.mayFill(now, 0) {
		return b, false
	}
	t, p, n := &a.tx, &a.paths[0], m.Len()
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
	b = t.sb.AppendMessage(b, now, 0, m, n, at+p.mtu-begin)
	a.dataSent(now, 0, len(b)-begin, 1)
	a.seal(b, at, 0, false)
	a.stats.PacketsSent++

	size := len(b) - at
	t.segSize = size
	*tx = Transmit{Tuple: p.Tuple, ECN: a.dataECN(), DSCP: p.par.dscp, SegSize: size, Segs: 1, Last: true}
	return b, true
}
