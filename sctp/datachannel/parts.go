package datachannel

import (
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp"
)

const (
	// minPart is the first buffer of an incomplete message in bytes. It bounds the number of
	// incomplete messages, too: each counts as one.
	minPart = 4 << 10
	// maxFreeParts is how many unused parts are kept for later.
	maxFreeParts = 16
)

// part is a message of which not all fragments have come.
type part struct {
	stream uint16
	buf    *bufpool.Buffer
	n      int // bytes in buf
}

// parts has the incomplete messages of a session by Piece.Message.
type parts struct {
	list  map[uint64]*part
	bytes int // of the buffers
	free  []*part
}

// assemble adds p to its message, of at most limit bytes. It returns all of the message and its
// buffer, which is the caller's, when p is the last fragment. mu is held.
func (s *Session) assemble(p *sctp.Piece, limit, hint int) (data []byte, buf *bufpool.Buffer, err error) {
	m := s.parts.list[p.Message]
	if m == nil {
		if !p.Begin {
			return nil, nil, fmt.Errorf("%w: fragment at byte %d of a message that has not begun", ErrProtocol, p.Offset)
		}
		if n := len(s.parts.free); n > 0 {
			m, s.parts.free = s.parts.free[n-1], s.parts.free[:n-1]
		} else {
			m = new(part)
		}
		m.stream, m.n = p.Stream, 0
		s.parts.list[p.Message] = m
	}
	n := m.n + len(p.Data)
	if n > limit {
		return nil, nil, fmt.Errorf("%w: %d bytes have come, at most %d", ErrMessageTooLong, n, limit)
	}
	if m.buf == nil || n > m.buf.Size() {
		grown := bufpool.Get(max(n, min(max(2*m.n, hint, minPart), limit)))
		s.parts.bytes += grown.Size()
		if m.buf != nil {
			s.parts.bytes -= m.buf.Size()
			copy(grown.Bytes(m.n), m.buf.Bytes(m.n))
			m.buf.Put()
		}
		m.buf = grown
		if s.parts.bytes > s.cfg.AssemblyBuffer {
			return nil, nil, fmt.Errorf("%w: %d bytes, at most %d", ErrAssembly, s.parts.bytes, s.cfg.AssemblyBuffer)
		}
	}
	copy(m.buf.Bytes(n)[m.n:], p.Data)
	m.n = n
	if !p.End {
		return nil, nil, nil
	}
	buf, m.buf = m.buf, nil
	s.parts.bytes -= buf.Size()
	s.dropPart(p.Message)
	return buf.Bytes(n), buf, nil
}

// dropPart gives up an incomplete message, if there is one. mu is held.
func (s *Session) dropPart(message uint64) {
	m := s.parts.list[message]
	if m == nil {
		return
	}
	delete(s.parts.list, message)
	if m.buf != nil {
		s.parts.bytes -= m.buf.Size()
		m.buf.Put()
		m.buf = nil
	}
	if len(s.parts.free) < maxFreeParts {
		s.parts.free = append(s.parts.free, m)
	}
}

// dropParts gives up the incomplete messages of a stream. mu is held.
func (s *Session) dropParts(stream uint16) {
	for message, m := range s.parts.list {
		if m.stream == stream {
			s.dropPart(message)
		}
	}
}
