package tx

import (
	"errors"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// MaxSegmented bounds a segmented send, in bytes. It is acknowledged as a whole, and goes to its
// end on a stream that is paused in the midst of it.
const MaxSegmented = 1 << 20

// ErrSegmented is returned for a segmented send that is not one of unordered reliable messages
// with headers of equal length, or is longer than MaxSegmented.
var ErrSegmented = errors.New("core: bad segmented send")

// segmented is the part of a queued record for a segmented send: unordered messages, each with
// a header of its own and the next part of one body. An upper layer that cuts memory into
// messages of a packet each, as DDP does, pays for one record, which stays in the processor's
// caches, rather than for one per packet.
//
// Offsets in it count the bytes of its messages one after another, headers
// included.
type segmented struct {
	headers []byte // one after another, outMsg.hdrLen bytes each
	size    uint32 // bytes of each message but the last, which may have fewer; 0: one message
}

// Size returns the bytes of m, and of how many messages.
func (m *Message) Size() (n int64, count int) {
	n = int64(len(m.Header)) + int64(len(m.Headers)) + int64(len(m.Body)) + m.runBytes
	if m.SegmentSize <= 0 {
		return n, 1
	}
	return n, (len(m.Body)-1)/m.SegmentSize + 1
}

// validSegmented reports whether a message with a SegmentSize can be sent in segments.
func (m *Message) validSegmented() bool {
	n, count := m.Size()
	return m.SegmentSize > 0 && len(m.Body) > 0 && n <= MaxSegmented &&
		len(m.Header) == 0 && m.runs == nil && len(m.Headers)%count == 0 && len(m.Headers)/count <= MaxHeader &&
		m.Unordered && m.Of == nil && m.Lifetime == 0 && !m.LimitRtx && !m.Droppable
}

// Largest returns the bytes of the largest message that m stands for.
func (m *Message) Largest() int {
	n, count := m.Size()
	if m.SegmentSize <= 0 || count <= 1 {
		return int(n)
	}
	return len(m.Headers)/count + m.SegmentSize
}

// beginSegmented makes m a segmented send of m.count messages.
func (m *outMsg) beginSegmented(s *Message) {
	h := len(s.Headers) / int(m.count)
	unit := min(s.SegmentSize, len(s.Body)) // of one message it may be anything
	m.hdrLen, m.segmented = uint8(h), segmented{s.Headers, uint32(h + unit)}
	m.end = min(int64(m.segmented.size), m.length)
}

// nextSegment goes on to the next segment.
func (m *outMsg) nextSegment() {
	m.at, m.fsn = m.end, 0
	m.end = min(m.at+int64(m.segmented.size), m.length)
}

// left returns how many messages of m were not sent to their end.
func (m *outMsg) left() int {
	if m.segmented.size == 0 {
		return 1
	}
	return int((m.length-m.at-1)/int64(m.segmented.size)) + 1
}

// bounds returns the number of the message that has the byte at off, where it begins,
// and where it ends.
func (m *outMsg) bounds(off int64) (i uint32, begin, end int64) {
	if m.segmented.size == 0 {
		return 0, 0, m.length
	}
	i = uint32(off) / m.segmented.size
	begin = int64(i) * int64(m.segmented.size)
	return i, begin, min(begin+int64(m.segmented.size), m.length)
}

// copySegment is copyTo for a segmented send: n bytes from offset at of its ith message, within
// that.
func (m *outMsg) copySegment(b []byte, i uint32, at, n int, g *gather) []byte {
	h := int(m.hdrLen)
	if at < h {
		k := min(n, h-at)
		b = append(b, m.segmented.headers[int(i)*h+at:][:k]...)
		at, n = at+k, n-k
	}
	return m.appendBody(b, int64(i)*int64(int(m.segmented.size)-h)+int64(at-h), n, g)
}

// MoreSegments reports whether the message that is sent next is a segment, and not
// the last.
func (q *Queue) MoreSegments(now clock.Time) bool {
	m := q.head(now)
	return m != nil && m.segmented.size != 0 && m.length-m.sent > int64(m.segmented.size)
}

// LastPart returns how many bytes are left of the message or segmented send that is sent next,
// if no other segment follows.
func (q *Queue) LastPart(now clock.Time) (left int64, ok bool) {
	m := q.head(now)
	if m == nil || m.end != m.length {
		return 0, false
	}
	return m.length - m.sent, true
}
