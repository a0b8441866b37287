package tx

import (
	"encoding/binary"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// Where in a chunk its TSN is, and in an I-DATA chunk the MID and, if it does not begin a
// message, the FSN.
const (
	tsnField = 4
	midField = 12
	fsnField = 16
)

// checksumAt is where the checksum is in the common header, which ends with it.
const checksumAt = wire.HeaderLen - 4

// Bulk describes packets that are built at once.
type Bulk struct {
	Header []byte // common to all
	Space  int    // behind the header, of which the chunk need not fill all
	Size   int    // bytes of data in each
	Count  int    // how many there are
	Sum    bool   // they have a checksum
}

// BulkSource returns the message or segmented send that goes on next, if more of it follows at
// once, and nil if that is not certain. Where the scheduler is asked between fragments, its
// stream has to be the only one with something to send.
func (q *Queue) BulkSource(now clock.Time) *outMsg {
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

// SegmentSize returns the bytes of each message of a segmented send but the last, 0 for a
// message.
func (m *outMsg) SegmentSize() int { return int(m.segmented.size) }

// MiddleChunks returns how many chunks of n bytes follow before the one that ends the message
// or the segmented send.
func (m *outMsg) MiddleChunks(n int) int {
	end := m.end
	if m.segmented.size != 0 {
		end = m.length
	}
	return int((end - m.sent - 1) / int64(n))
}

// advanceBulk is advance for k chunks of n bytes of what BulkSource returned.
func (q *Queue) advanceBulk(m *outMsg, n, k int) {
	m.sent += int64(k * n)
	if m.fsn += uint32(k); m.segmented.size != 0 {
		m.end = m.sent
		m.nextSegment()
		q.chunks -= k
	}
	m.refs += uint32(k)
	q.streams[m.sid].inFlight += int32(k)
	q.unsent -= int64(k * n)
	q.sched.sentBulk(m.sid, n+q.HeaderLen(), k)
}

// BulkRoom returns how many of k chunks with n bytes each the peer's window and the scoreboard have room for.
// It returns 0 without RACK, and for chunks that are sent by scatter-gather I/O.
func (s *Scoreboard) BulkRoom(k, n int) int {
	if !s.useRACK || s.gather.iovecs != nil && n >= s.gather.least && len(*s.gather.iovecs) < cap(*s.gather.iovecs) {
		return 0
	}
	return min(k, s.rwnd/n, len(s.recs)-s.Outstanding())
}

// AppendBulk appends packets, each of which has one chunk with the next x.Size bytes of m,
// which BulkSource returned, or its next message of that length. BulkRoom said that there is
// room for them.
func (s *Scoreboard) AppendBulk(b []byte, now clock.Time, path int, m *outMsg, x *Bulk) []byte {
	f := &s.paths[path]
	r, n, k := &f.rack, x.Size, x.Count
	s.clock = now
	r.last = max(r.last, now)
	r.onSent(now)
	rec := record{msg: m, sent: r.last, size: uint16(n), tx: 1, path: uint8(path)}
	s.noteSize(s.next, &rec, f, x.Space)

	// What all have in common.
	var proto [wire.HeaderLen + wire.IDataHeaderLen]byte
	i, _, _ := m.bounds(m.sent)
	d := wire.Data{SID: m.sid, SSN: uint16(m.mid), MID: m.mid + i, PPID: m.ppid, Unordered: m.flags&msgUnordered != 0}
	many := m.segmented.size != 0
	d.Begin, d.End = many, many
	head := s.q.appendHeader(append(proto[:0], x.Header...), &d, n)

	t, fsn, off := s.next, m.fsn, m.sent
	var lead, body []byte // what goes in front of the parts of the body, and these
	h := 0
	inRuns := m.hasRuns()
	switch {
	case many:
		h = int(m.hdrLen)
		lead, body = m.segmented.headers[int(i)*h:], m.body[int(i)*(n-h):]
	case !inRuns:
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
		binary.BigEndian.PutUint32(head[wire.HeaderLen+tsnField:], uint32(t))
		switch {
		case s.q.interleave && many:
			binary.BigEndian.PutUint32(head[wire.HeaderLen+midField:], d.MID)
			d.MID++
		case s.q.interleave:
			binary.BigEndian.PutUint32(head[wire.HeaderLen+fsnField:], fsn)
		}
		at := len(b)
		b = b[:at+front+part]
		pkt := b[at:]
		copy(pkt, head)
		if many {
			copy(pkt[len(head):front], lead)
			lead = lead[h:]
		}
		switch {
		case inRuns:
			c := m.fillRuns(pkt, front, off-int64(m.hdrLen), x.Sum)
			binary.LittleEndian.PutUint32(pkt[checksumAt:], c)
		case x.Sum:
			c := wire.CopyChecksum(wire.UpdateChecksum(0, pkt[:front]), pkt[front:], body[:part])
			binary.LittleEndian.PutUint32(pkt[checksumAt:], c)
			body = body[part:]
		default:
			copy(pkt[front:], body[:part])
			body = body[part:]
		}
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
	s.q.advanceBulk(m, n, k)
	return b
}
