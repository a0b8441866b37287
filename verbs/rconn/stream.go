package rconn

import (
	"os"
	"sync"
	"time"
)

// Stream is a connection as a stream of bytes. It implements net.Conn.
type Stream struct {
	*Conn
	read, write *deadline
}

// Stream returns the connection as a net.Conn. Do not use both forms in the same direction.
// Deadlines apply to the returned Stream only.
func (c *Conn) Stream() *Stream {
	return &Stream{Conn: c, read: newDeadline(), write: newDeadline()}
}

// Read implements net.Conn.
func (s *Stream) Read(p []byte) (int, error) {
	u := s.read.until()
	if err := s.lock(s.reading, u); err != nil {
		return 0, err
	}
	defer func() { <-s.reading }()
	if len(p) == 0 {
		return 0, nil
	}
	for len(s.current.data) == 0 {
		if s.current.data != nil {
			s.emptied() // an empty message is nothing in a stream
		}
		if err := s.next(u); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.current.data)
	if s.current.data = s.current.data[n:]; len(s.current.data) == 0 {
		s.emptied()
	}
	return n, nil
}

// Write implements net.Conn. It copies p, and blocks while the peer has no receive buffer
// for it.
func (s *Stream) Write(p []byte) (n int, err error) {
	u := s.write.until()
	if err := s.lock(s.writing, u); err != nil {
		return 0, err
	}
	defer func() { <-s.writing }()
	for n < len(p) {
		k := min(len(p)-n, s.room())
		if err := s.send(p[n:n+k], false, u); err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// SetDeadline implements net.Conn.
func (s *Stream) SetDeadline(t time.Time) error {
	s.read.set(t)
	s.write.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.read.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.write.set(t)
	return nil
}

// deadline is a point in time that calls wait for.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer   // guarded by mu
	past  chan struct{} // guarded by mu: closed at the deadline, then replaced
	over  bool          // guarded by mu: past is closed
	round int           // guarded by mu: counts calls of set
}

func newDeadline() *deadline { return &deadline{past: make(chan struct{})} }

// set changes the deadline; the zero time means none.
func (s *deadline) set(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	wait := time.Until(t)
	if !t.IsZero() && wait <= 0 {
		if !s.over {
			s.over = true
			close(s.past)
		}
		return
	}
	if s.over {
		s.over, s.past = false, make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	round := s.round
	s.timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.round == round {
			s.over = true
			close(s.past)
		}
	})
}

// until returns what waits for the deadline.
func (s *deadline) until() until {
	s.mu.Lock()
	defer s.mu.Unlock()
	return until{s.past, func() error { return os.ErrDeadlineExceeded }}
}
