package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// Room is the space that a packet has for DATA or I-DATA chunks, headers and
// padding included.
type Room struct {
	// Space is what is left in the packet, Full what it had when it was empty.
	Space, Full int
}

// HeaderLen is the length of the header of the chunks that carry user data.
func (q *Queue) HeaderLen() int {
	if q.interleave {
		return wire.IDataHeaderLen
	}
	return wire.DataHeaderLen
}

// head returns the message to continue or begin now, nil if there is none. It
// drops messages that expired before they were begun.
func (q *Queue) head(now clock.Time) *outMsg {
	for {
		m := q.cur
		if m == nil {
			if q.stalled {
				return nil
			}
			sid, found := q.sched.next()
			if !found {
				return nil
			}
			m = q.streams[sid].head
		}
		if m.expires == 0 || now < m.expires {
			return m
		}
		// RFC 3758, Section 4.1: when "the lifetime of the message has expired"
		// it "MUST be treated as abandoned" before it is transmitted.
		if m.sent == 0 {
			q.dropUnsent(m)
			continue
		}
		if q.sb == nil || !q.partial || !q.sb.abandon(m) {
			return m
		}
	}
}

// pick chooses the message to continue or begin and how many bytes of it fit.
// It drops messages that expired before they were begun. With ok false nothing
// is to be sent, or it does not fit, or it is for another packet (see route).
//
// A message that fits an empty packet is not cut. A longer one is cut to fill
// packets, but not into less than minFragment bytes, its end excepted.
func (q *Queue) pick(now clock.Time, r Room) (m *outMsg, n int, ok bool) {
	if m = q.head(now); m == nil || (q.routed > 0 || q.key != 0) && !q.goesWith(m) {
		return nil, 0, false
	}
	full := r.Full
	if q.maxChunk > 0 {
		full = min(full, q.maxChunk)
	}
	space := (min(r.Space, full) - q.HeaderLen()) &^ 3
	left := m.end - m.sent
	if left <= int64(space) {
		return m, int(left), true
	}
	if space < minFragment || m.sent == m.at && left <= int64(full-q.HeaderLen()) {
		return nil, 0, false
	}
	return m, min(space, MaxFragment), true
}

// MaxFragment is the largest payload of one chunk. It leaves room for either
// header in the 16-bit length of a chunk and is a multiple of four.
const MaxFragment = (1<<16 - 1 - wire.IDataHeaderLen) &^ 3

// begin gives m its place in the sequence of its stream; a piece that is not the
// first has it.
func (q *Queue) begin(st *outStream, m *outMsg) {
	switch {
	case m.flags&msgCont != 0:
		if m.flags&msgUnordered == 0 {
			st.ordered++
		}
	case m.flags&msgUnordered == 0:
		m.mid = st.mid
		st.mid++
		st.ordered++
	case q.interleave:
		m.mid = st.umid
		st.umid += m.count
	}
}

// advance notes that n bytes of m, the choice of pick, are in a chunk now.
func (q *Queue) advance(m *outMsg, n int) {
	st := &q.streams[m.sid]
	if m.sent == 0 {
		q.begin(st, m)
	}
	m.sent += int64(n)
	m.fsn++
	m.refs++
	st.inFlight++
	q.unsent -= int64(n)
	end, all := m.sent == m.end, m.sent == m.length
	if end {
		q.chunks--
	}
	switch {
	case all:
		if m.next != nil {
			m.next.next.prefetch() // m.next is read below
		}
		q.unlink(st, m)
		if m.flags&msgOpen != 0 {
			q.goOn(st, m)
		}
	case end:
		m.nextSegment()
		q.cur = nil
	case !q.interleave:
		q.cur = m
	}
	arrival := m.arrival
	if st.head != nil {
		arrival = st.head.arrival
	}
	q.sched.sent(m.sid, n+q.HeaderLen(), arrival, end || q.interleave)
	if all {
		q.reschedule(m.sid)
	}
}

// EndPacket tells that the next chunk goes into another packet.
func (q *Queue) EndPacket() { q.sched.endPacket() }
