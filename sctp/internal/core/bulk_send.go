package core

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// Where in a DATA or I-DATA chunk its TSN and the stream number are, in a DATA chunk the
// SSN, and in an I-DATA chunk the MID and, if it does not begin a message, the FSN. The
// PPID is where an I-DATA chunk has the MID, or the FSN.
const (
	tsnInChunk = 4
	sidInChunk = 8
	ssnInChunk = 10
	midInChunk = 12
	fsnInChunk = 16
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
		!sb.onlyNew() || !a.cfg.NoPacing && p.pacer.Rate() != 0 {
		return b, 0
	}
	m := q.bulkSource(now)
	if m == nil {
		return b, 0
	}
	over := q.headerLen()
	n := min((p.pmdcs()-over)&^3, maxFragment)
	if u := int(m.segmented.size); u != 0 {
		if wire.HeaderLen+2*(over+u) <= p.mtu {
			return b, 0 // another one fits behind it
		}
		n = u
	}
	flight, cwnd := sb.Flight(i), p.cc.Cwnd()
	if n <= 0 || wire.HeaderLen+over+n != segSize || flight == 0 || flight >= cwnd || cap(b)-len(b) < room {
		return b, 0
	}
	end := m.end
	if m.segmented.size != 0 {
		end = m.length
	}
	k := min(segs, 1+(cap(b)-len(b)-room)/segSize, (cwnd-flight+over+n-1)/(over+n), int((end-m.sent-1)/int64(n)))
	if p.mtu-segSize > over {
		k-- // the last segment, which is shorter, may fit behind the one before it
	}
	if k = sb.bulkRoom(k, n); k <= 1 {
		return b, 0
	}
	b = sb.appendBulk(b, now, i, m, &bulk{header: header, space: p.mtu - wire.HeaderLen, n: n, k: k, sum: a.summed(i)})
	q.advanceBulk(m, n, k)
	a.dataSent(now, i, k*(over+n), k)
	return b, k
}

// bulk describes packets that are built at once.
type bulk struct {
	header []byte // common to all
	space  int    // behind the header, of which the chunk need not fill all
	n, k   int    // bytes of data in each, and how many there are
	sum    bool   // they have a checksum
}

// bulkSource returns the message or segmented send that goes on next, if more of it follows at
// once, and nil if that is not certain. Where the scheduler is asked between fragments, its
// stream has to be the only one with something to send.
func (q *SendQueue) bulkSource(now clock.Time) *outMsg {
	if q.routed > 0 || q.key != 0 || q.maxChunk > 0 {
		return nil
	}
	m := q.head(now)
	switch {
	case m == nil || m.sent == 0 || (q.interleave || m.segmented.size != 0) && q.ready != 1:
		return nil
	case m.segmented.size != 0 && m.sent != m.at, m.segmented.size == 0 && m.sent < int64(m.hdrLen):
		return nil
	}
	return m
}

// advanceBulk is advance for k chunks of n bytes of what bulkSource returned.
func (q *SendQueue) advanceBulk(m *outMsg, n, k int) {
	m.sent += int64(k * n)
	if m.fsn += uint32(k); m.segmented.size != 0 {
		m.end = m.sent
		m.nextSegment()
		q.chunks -= k
	}
	m.refs += uint32(k)
	q.streams[m.sid].inFlight += int32(k)
	q.unsent -= int64(k * n)
	q.sched.sentBulk(m.sid, n+q.headerLen(), k)
}

// bulkRoom returns how many of k chunks with n bytes each the peer's window and the scoreboard have room for.
// It returns 0 without RACK, and for chunks that are sent by scatter-gather I/O.
func (s *Scoreboard) bulkRoom(k, n int) int {
	if !s.useRACK || s.gather.iovecs != nil && n >= s.gather.least && len(*s.gather.iovecs) < cap(*s.gather.iovecs) {
		return 0
	}
	return min(k, s.rwnd/n, len(s.recs)-s.Outstanding())
}

// appendBulk appends packets, each of which has one chunk with the next x.n bytes of m,
// or its next message of that length.
func (s *Scoreboard) appendBulk(b []byte, now clock.Time, path int, m *outMsg, x *bulk) []byte {
	f := &s.paths[path]
	r, n, k := &f.rack, x.n, x.k
	s.clock = now
	r.last = max(r.last, now)
	r.onSent(now)
	rec := record{msg: m, sent: r.last, size: uint16(n), tx: 1, path: uint8(path)}
	s.noteSize(s.next, &rec, f, x.space)

	// What all have in common.
	var proto [wire.HeaderLen + wire.IDataHeaderLen]byte
	i, _, _ := m.bounds(m.sent)
	d := wire.Data{SID: m.sid, SSN: uint16(m.mid), MID: m.mid + i, PPID: m.ppid, Unordered: m.flags&msgUnordered != 0}
	many := m.segmented.size != 0
	d.Begin, d.End = many, many
	head := s.q.appendHeader(append(proto[:0], x.header...), &d, n)

	t, fsn, off := s.next, m.fsn, m.sent
	var lead, body []byte // what goes in front of the parts of the body, and these
	h := 0
	if many {
		h = int(m.hdrLen)
		lead, body = m.segmented.headers[int(i)*h:], m.body[int(i)*(n-h):]
	} else {
		body = m.body[off-int64(m.hdrLen)-m.gone:]
	}
	front, part := len(head)+h, n-h
	rec.rtxCopy = s.rtxCopies.ref(len(b) + len(head))
	if r.n == 0 {
		r.head = t
	} else {
		rec.prev = r.tail
		s.rec(r.tail).next = t
	}
	for range k {
		binary.BigEndian.PutUint32(head[wire.HeaderLen+tsnInChunk:], uint32(t))
		switch {
		case s.q.interleave && many:
			binary.BigEndian.PutUint32(head[wire.HeaderLen+midInChunk:], d.MID)
			d.MID++
		case s.q.interleave:
			binary.BigEndian.PutUint32(head[wire.HeaderLen+fsnInChunk:], fsn)
		}
		at := len(b)
		b = b[:at+front+part]
		pkt := b[at:]
		copy(pkt, head)
		if many {
			copy(pkt[len(head):front], lead)
			lead = lead[h:]
		}
		if x.sum {
			c := wire.CopyChecksum(wire.UpdateChecksum(0, pkt[:front]), pkt[front:], body[:part])
			binary.LittleEndian.PutUint32(pkt[checksumField:], c)
		} else {
			copy(pkt[front:], body[:part])
		}
		body = body[part:]
		rec.off, rec.fsn, rec.next = off, fsn, t+1
		*s.rec(t) = rec
		f.set.Add(t)
		rec.prev = t
		if rec.rtxCopy != 0 {
			rec.rtxCopy += uint32(front + part)
		}
		if t, off = t+1, off+int64(n); !many {
			fsn++
		}
	}
	m.last, r.tail = t-1, t-1
	s.next = t
	r.n += k
	f.count += k
	f.bytes += k * s.chunkSize(&rec)
	s.payload += k * n
	s.rwnd -= k * n
	s.stats.Chunks += uint64(k)
	return b
}
