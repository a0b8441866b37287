package sctp

import (
	"fmt"
	"io"
	"time"

	weft "github.com/weftstack/weft/sctp"
)

const (
	// slackShare is the part of the receive buffer by which the association below may be wrong
	// about what is unread.
	slackShare = 16
	// receivedSize is what a message takes in addition to its buffer, in bytes.
	receivedSize = 96
	// acceptSize is what a stream that nobody has accepted takes in bytes. It counts against the
	// receive window, so a peer that opens streams for which nobody waits has to stop.
	acceptSize = 1 << 10
	// unreadShare and unreadMore bound what is unread, in receive buffers and bytes: a peer that
	// goes on although the window is closed gets no further. One that does as it is told has two
	// receive buffers unread before weft refuses its chunks, and while this side is slow to take them
	// weft holds one and a half as messages of a few bytes, which count up to five times as much here.
	unreadShare = 12
	unreadMore  = 256 << 10
)

// received is a message that waits for a reader.
type received struct {
	buf  *buffer
	n    int
	ppid PayloadProtocolIdentifier
}

func (m *received) size() int { return len(m.buf.b) + receivedSize }

// count notes that n more bytes of memory are unread. mu is held.
func (a *Association) count(n int) {
	a.unread += n
	a.held += n
}

// count notes that n more bytes of memory of the stream are unread. a.mu is held.
func (s *Stream) count(n int) {
	s.unread += n
	if !s.over {
		s.a.count(n)
	}
}

// finish ends the count of what is unread: both sides have closed the stream, and what is left may never
// be read. a.mu is held.
func (s *Stream) finish() {
	s.state = StreamStateClosed
	if !s.over {
		s.over = true
		s.a.count(-s.unread)
	}
}

// unlock unlocks mu, tells the association below what is unread, and requests resets.
func (a *Association) unlock() {
	batch := a.nextResets()
	held := 0
	if a.held >= a.slack || a.held <= -a.slack || a.held != 0 && a.unread == 0 {
		held, a.held = a.held, 0
	}
	w := a.weft
	a.mu.Unlock()
	if held != 0 && w != nil {
		w.KeepReceived(held)
	}
	if batch != nil {
		go a.reset(batch)
	}
}

// piece handles a fragment of a message. One goroutine at a time calls it.
func (a *Association) piece(p *weft.Piece) {
	a.mu.Lock()
	err := a.take(p)
	a.unlock()
	if err != nil {
		a.log.Errorf("[%s] stream %d: %v", a.name, p.Stream, err)
		a.weft.Abort(err.Error())
	}
}

// take handles a fragment. mu is held. An error is the end of the association.
func (a *Association) take(p *weft.Piece) error {
	if p.Aborted {
		a.parts.remove(a, p.Message)
		return nil
	}
	s := a.streams[p.Stream]
	if s == nil {
		if a.ended {
			return nil
		}
		s = a.newStream(p.Stream)
		s.accepting = true
		a.accepting.push(s)
		a.count(acceptSize)
		a.acceptors.Signal()
	}
	var m received
	if p.Begin && p.End {
		m = received{getBuffer(len(p.Data)), len(p.Data), PayloadProtocolIdentifier(p.PPID)}
		copy(m.buf.b, p.Data)
	} else {
		var err error
		if m, err = a.parts.add(a, s, p); err != nil || m.buf == nil {
			return err
		}
		s.last = m.n
	}
	s.queue.push(m)
	s.count(m.size())
	if s.waiting {
		s.reader.Signal()
	}
	switch {
	case a.unread > unreadShare*a.recvBuffer+unreadMore:
		return fmt.Errorf("%d bytes are unread, %d may be", a.unread, a.recvBuffer)
	case a.maxQueue > 0 && s.queue.n > a.maxQueue:
		return fmt.Errorf("%d messages are unread, %d may be", s.queue.n, a.maxQueue)
	}
	return nil
}

// Read is ReadSCTP without the identifier.
func (s *Stream) Read(p []byte) (int, error) {
	n, _, err := s.ReadSCTP(p)
	return n, err
}

// ReadSCTP reads a message and its payload protocol identifier. It blocks until there is one. If
// payload is too short it returns io.ErrShortBuffer and how long the message is, which stays for the
// next read.
//
// The error is io.EOF when the peer has reset the stream or shut the association down, and all
// messages were read; ErrReadDeadlineExceeded after the read deadline; otherwise why the association
// has ended.
func (s *Stream) ReadSCTP(payload []byte) (int, PayloadProtocolIdentifier, error) {
	a := s.a
	a.mu.Lock()
	for s.queue.n == 0 {
		if err := s.readErr; err != nil {
			a.mu.Unlock()
			return 0, 0, err
		}
		if s.deadline.exceeded() {
			a.mu.Unlock()
			return 0, 0, ErrReadDeadlineExceeded
		}
		s.waiting = true
		s.reader.Wait()
		s.waiting = false
	}
	if m := s.queue.front(); len(payload) < m.n {
		n, ppid := m.n, m.ppid
		a.mu.Unlock()
		return n, ppid, io.ErrShortBuffer
	}
	m := s.queue.pop()
	if s.queue.n > 0 {
		s.reader.Signal() // another reader may wait
	}
	s.count(-m.size())
	a.unlock()
	copy(payload, m.buf.b[:m.n])
	m.buf.put()
	return m.n, m.ppid, nil
}

// endRead has reads return err once all is read. mu is held.
func (s *Stream) endRead(err error) {
	if s.readErr == nil {
		s.readErr = err
	}
	s.deadline.stop()
	s.reader.Broadcast()
}

// readDeadline is when reads stop to wait. Its field is guarded by the mutex of the association.
type readDeadline struct {
	timer *time.Timer
	over  bool
}

func (d *readDeadline) exceeded() bool { return d != nil && d.over }

func (d *readDeadline) stop() {
	if d != nil && d.timer != nil {
		d.timer.Stop()
	}
}

// SetReadDeadline sets until when reads wait: those that wait, too. The zero Time is no deadline.
// Messages that are there can be read after it.
func (s *Stream) SetReadDeadline(deadline time.Time) error {
	a := s.a
	a.mu.Lock()
	defer a.mu.Unlock()
	s.deadline.stop()
	s.deadline = nil
	if deadline.IsZero() || s.readErr != nil {
		return nil
	}
	d := new(readDeadline)
	s.deadline = d
	left := time.Until(deadline)
	if left <= 0 {
		d.over = true
		s.reader.Broadcast()
		return nil
	}
	d.timer = time.AfterFunc(left, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		d.over = true
		s.reader.Broadcast()
	})
	return nil
}
