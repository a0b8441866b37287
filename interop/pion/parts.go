package sctp

import (
	"fmt"

	weft "github.com/weftstack/weft/sctp"
)

const (
	// minPart is the first buffer of an incomplete message in bytes. It bounds the number of
	// incomplete messages, too.
	minPart = 4 << 10
	// minAssembly and assemblyShare bound the buffers of incomplete messages, in bytes and in
	// receive buffers. They do not count against the receive window, which would not let them
	// become complete.
	minAssembly   = 16 << 20
	assemblyShare = 4
	// maxFreeParts is how many unused parts are kept for later.
	maxFreeParts = 16
)

// part is a message of which not all fragments have come.
type part struct {
	id  uint64 // Piece.Message
	s   *Stream
	buf *buffer
	n   int // bytes in buf
}

// parts has the incomplete messages of an association by Piece.Message.
type parts struct {
	list  map[uint64]*part
	last  *part // that a fragment was added to last, or nil
	bytes int   // of the buffers
	limit int
	free  []*part
}

func (q *parts) init(recvBuffer int) {
	q.list = make(map[uint64]*part)
	q.limit = max(minAssembly, assemblyShare*recvBuffer)
}

// add adds a fragment. It returns the message if it is complete, with the buffer, and none
// otherwise. a.mu is held.
func (q *parts) add(a *Association, s *Stream, p *weft.Piece) (received, error) {
	m := q.last
	if m == nil || m.id != p.Message {
		m = q.list[p.Message]
	}
	if m == nil {
		if !p.Begin {
			return received{}, nil // the rest of one that the end of its stream has dropped
		}
		if n := len(q.free); n > 0 {
			m, q.free = q.free[n-1], q.free[:n-1]
		} else {
			m = new(part)
		}
		m.id, m.s, m.n = p.Message, s, 0
		q.list[p.Message] = m
	}
	q.last = m
	n := m.n + len(p.Data)
	if m.buf == nil || n > len(m.buf.b) {
		grown := getBuffer(max(n, min(2*m.n, q.limit), s.last, minPart))
		q.bytes += len(grown.b)
		if m.buf != nil {
			q.bytes -= len(m.buf.b)
			copy(grown.b, m.buf.b[:m.n])
			m.buf.put()
		}
		m.buf = grown
		if q.bytes > q.limit {
			return received{}, fmt.Errorf("incomplete messages take %d bytes, %d may be", q.bytes, q.limit)
		}
	}
	copy(m.buf.b[m.n:], p.Data)
	m.n = n
	if !p.End {
		return received{}, nil
	}
	r := received{m.buf, n, PayloadProtocolIdentifier(p.PPID)}
	q.bytes -= len(m.buf.b)
	m.buf = nil
	q.remove(a, p.Message)
	return r, nil
}

// remove gives up an incomplete message, if there is one. a.mu is held.
func (q *parts) remove(a *Association, id uint64) {
	m := q.list[id]
	if m == nil {
		return
	}
	delete(q.list, id)
	if q.last == m {
		q.last = nil
	}
	if m.buf != nil {
		q.bytes -= len(m.buf.b)
		m.buf.put()
	}
	*m = part{}
	if len(q.free) < maxFreeParts {
		q.free = append(q.free, m)
	}
}

// drop gives up the incomplete messages of a stream, of all if s is nil. a.mu is held.
func (q *parts) drop(a *Association, s *Stream) {
	for id, m := range q.list {
		if s == nil || m.s == s {
			q.remove(a, id)
		}
	}
}
