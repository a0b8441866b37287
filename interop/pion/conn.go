package sctp

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// conn is the connection below an association. It counts bytes, and keeps why reading it ended, unless the
// association below reads and writes the connection itself, see lower.
type conn struct {
	net.Conn
	sent, received atomic.Uint64 // bytes
	failed         atomic.Pointer[error]

	closing  atomic.Bool
	closed   chan struct{} // closed once closeErr is set
	closeErr error
}

// lower returns what the association below gets: a UDP socket itself, which it reads and writes in batches, and
// c for any other connection.
func (c *conn) lower() net.Conn {
	if c.isUDP() {
		return c.Conn
	}
	return c
}

func (c *conn) isUDP() bool {
	_, ok := c.Conn.(*net.UDPConn)
	return ok
}

// Read reads a packet.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		last := err // err itself stays on the stack
		c.failed.Store(&last)
		return n, err
	}
	c.received.Add(uint64(n))
	return n, nil
}

// Write writes a packet.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil {
		c.sent.Add(uint64(n))
	}
	return n, err
}

// Close closes the connection. A second one waits for the first, and returns what it has returned.
func (c *conn) Close() error {
	// Not a sync.Once: one that waits for it would hold up the virtual time of testing/synctest.
	if c.closing.CompareAndSwap(false, true) {
		// A Close that writes, as that of DTLS does, or that does not wake a reader must not wait for ever.
		now := time.Now()
		_ = c.Conn.SetReadDeadline(now)
		_ = c.Conn.SetWriteDeadline(now.Add(closeTimeout))
		c.closeErr = c.Conn.Close()
		close(c.closed)
	}
	<-c.closed
	return c.closeErr
}

// ended returns the error of the last Read if err, the end of the association, is because of it, and nil
// otherwise.
func (c *conn) ended(err error) error {
	if c.isUDP() {
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	last := c.failed.Load()
	switch {
	case last == nil || err == nil:
		return nil
	case errors.Is(err, *last), errors.Is(*last, io.EOF) && errors.Is(err, io.ErrUnexpectedEOF):
		return *last
	}
	return nil
}
