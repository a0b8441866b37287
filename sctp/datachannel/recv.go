package datachannel

import (
	"context"
	"fmt"
	"io"
)

// count notes that n more bytes of memory are unread. s.mu is held.
func (c *Channel) count(n int) {
	c.unread += n
	c.s.held += n
}

// enqueue leaves a message for Recv. s.mu is held.
func (c *Channel) enqueue(m received) {
	c.count(m.size())
	c.queue.push(m)
	c.readers.wakeOne()
}

// Recv returns the next message. It blocks until there is one, or ctx is done. The message is
// copied to buf if its capacity suffices, otherwise to new memory; buf may be nil, and must not be
// used by others until Recv returns.
//
// The error is that of ctx; io.EOF when the peer has closed the channel, or the association has
// ended gracefully, and all messages were received; ErrClosed after Close; otherwise as of Err, when
// all messages were received. Recv must not be used with Config.OnMessage.
func (c *Channel) Recv(ctx context.Context, buf []byte) (Message, error) {
	s := c.s
	s.mu.Lock()
	for {
		if m, ok := c.queue.pop(); ok {
			c.count(-m.size())
			if c.queue.len() > 0 {
				c.readers.wakeOne() // another one may have been woken for what is left
			}
			s.unlock()
			if cap(buf) < m.n {
				buf = make([]byte, m.n)
			}
			buf = buf[:m.n]
			if m.n > 0 {
				copy(buf, m.buf.Bytes(m.n))
			}
			m.buf.Put()
			return Message{m.kind, buf}, nil
		}
		if err := c.recvError(); err != nil {
			s.unlock()
			return Message{}, err
		}
		if err := s.wait(ctx, &c.readers, c, 0); err != nil {
			if c.queue.len() > 0 {
				c.readers.wakeOne() // the wake-up may have been for this reader
			}
			s.unlock()
			return Message{}, err
		}
	}
}

// recvError returns why no message will come any more, or nil. s.mu is held.
func (c *Channel) recvError() error {
	switch {
	case c.closed:
		return fmt.Errorf("receive on %q: %w", c.label, ErrClosed)
	case !c.eof:
		return nil
	case c.err != nil:
		return c.err
	}
	return io.EOF
}

// WaitOpen blocks until the peer has acknowledged a channel that this side opened, or has sent on
// it; until ctx is done, and returns its error; or until the channel is closed, and returns ErrClosed or
// the reason as of Err.
func (c *Channel) WaitOpen(ctx context.Context) error {
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	for c.state == Connecting {
		if err := s.wait(ctx, &c.opening, c, 0); err != nil {
			return err
		}
	}
	if c.state == Open {
		return nil
	}
	return c.sendError()
}
