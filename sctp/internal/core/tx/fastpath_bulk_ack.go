package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// ackBulk is the bulk fast path of acknowledgements. It does what ackCum does for chunks from the cumulative TSN
// ack point up to cum that belong to one message, left at the same time and were sent once. It returns how many
// there are, and 0 if ackCum has to process the next one by itself.
func (s *Scoreboard) ackBulk(now clock.Time, cum seq.TSN) int {
	t := s.base
	first := s.rec(t)
	f := &s.paths[first.path]
	k := &f.rack
	// The head of the list left first; chunks above fack are acknowledged in order.
	if !s.useRACK || s.noBulk || first.state&^recBig != 0 || first.tx != 1 || k.head != t || !k.fack.Less(t) {
		return 0
	}
	n, last := 1, first
	for t+seq.TSN(n) != cum+1 && last.next == t+seq.TSN(n) {
		r := s.rec(t + seq.TSN(n))
		if r.msg != first.msg || r.sent != first.sent || r.size != first.size || r.tx != 1 || r.state != first.state ||
			r.path != first.path {
			break
		}
		last = r
		n++
	}
	if n == 1 {
		return 0
	}
	end := t + seq.TSN(n-1)
	m, size, chunks, sent := first.msg, n*int(first.size), n*s.chunkSize(first), first.sent

	// As in acked.
	p := &s.res.Paths[first.path]
	p.Acked += chunks
	p.Alive = true
	if first.state&recBig != 0 {
		f.size.bigAcked(t, end)
	}
	s.res.NewlyAcked += size
	p.span(t, end, sent)
	if sent > s.lastRtx {
		p.sample(end, sent, f.rttMark)
	}
	k.onAckedBulk(now, end, sent, n)

	// As in leave.
	next := last.next
	for i := range seq.TSN(n) {
		f.set.Remove(t + i)
		s.rec(t + i).msg = nil
	}
	f.bytes -= chunks
	f.count -= n
	s.payload -= size
	if k.n -= n; k.n > 0 {
		k.head = next
	}
	s.base += seq.TSN(n)
	s.rec(end + 4).msg.prefetch() // as in ackCum
	s.q.unrefBulk(m, size, n)
	return n
}

// onAckedBulk is onAcked for n chunks, of which end is the last, that were sent at once, first
// and last, and are acknowledged in the order of their TSNs.
func (k *rack) onAckedBulk(now clock.Time, end seq.TSN, sent clock.Time, n int) {
	rtt := max(now-sent, 1)
	k.sampleRTT(now, rtt)
	for range n - 1 {
		d := (rtt - k.srtt) / 8
		if d == 0 {
			break
		}
		k.srtt += d
	}
	k.fack, k.rtt = end, rtt
	if !k.any || k.xmit < sent || k.xmit == sent && k.end.Less(end) {
		k.xmit, k.end, k.any = sent, end, true
	}
}
