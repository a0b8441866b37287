package tx

import "github.com/weftstack/weft/sctp/internal/core/clock"

// Plain reports whether m asks for nothing but to be sent in order on its stream.
func (m *Message) Plain() bool {
	return !m.Unordered && !m.Immediate && !m.Borrowed && !m.Keyed && !m.LimitRtx && !m.Droppable && m.Of == nil &&
		m.SegmentSize == 0 && m.Lifetime == 0 && !m.Remote.IsValid()
}

// TakesAtOnce reports whether m, which is plain and has n bytes, need not be queued as far as
// the queue is concerned: nothing waits to be sent, and nothing holds m back.
func (q *Queue) TakesAtOnce(m *Message, n int) bool {
	if n == 0 || len(m.Header) > MaxHeader || int(m.SID) >= len(q.streams) || int(m.SID) >= q.nstreams ||
		!q.idleWithRoom(n) {
		return false
	}
	st := &q.streams[m.SID]
	return !st.paused && st.open == nil && st.head == nil && (q.interleave || st.ordered < maxOrderedInFlight)
}

// idleWithRoom reports whether nothing waits to be sent, nothing holds messages back, and
// there is room for one of n bytes. Schedulers that count bytes have to see every message;
// to the others a message that is sent directly makes no difference.
func (q *Queue) idleWithRoom(n int) bool {
	return q.waiting == 0 && q.opened == 0 && q.routed == 0 && q.borrowed == nil && !q.held && !q.blocked && !q.stalled &&
		q.kind != SchedFair && q.kind != SchedWFQ && q.fits(int64(n))
}

// TakesAtOnce reports whether the peer's window and the scoreboard have room for a chunk of n
// bytes, and no retransmission copy is open.
func (s *Scoreboard) TakesAtOnce(n int) bool {
	return n <= s.rwnd && !s.rtxCopies.open && s.Outstanding() < len(s.recs)
}

// AppendMessage appends to b the chunk of m, which has n bytes, as Push and AppendNew would,
// to a packet with so much space. TakesAtOnce of the queue and the scoreboard held.
func (s *Scoreboard) AppendMessage(b []byte, now clock.Time, path int, m *Message, n, space int) []byte {
	q := s.q
	st := &q.streams[m.SID]
	o := q.take(m, int64(n), 1)
	q.begin(st, o)
	o.sent, o.fsn, o.refs = o.length, 1, 1
	st.inFlight++
	t, rec := s.assign()
	*rec = record{msg: o, size: uint16(n)}
	o.first, o.last = t, t
	return s.appendFirst(b, now, path, t, rec, space)
}
