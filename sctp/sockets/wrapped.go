package sockets

import (
	"fmt"
	"net"
	"syscall"
	"time"
)

// SCTPSndRcvInfoWrappedConn is an SCTPConn whose Read and Write have the SndRcvInfo of each
// message in front of it, as 32 bytes in the layout of Linux.
type SCTPSndRcvInfoWrappedConn struct{ conn *SCTPConn }

// NewSCTPSndRcvInfoWrappedConn wraps a socket, and subscribes to SCTP_EVENT_DATA_IO only.
func NewSCTPSndRcvInfoWrappedConn(conn *SCTPConn) *SCTPSndRcvInfoWrappedConn {
	conn.SubscribeEvents(SCTP_EVENT_DATA_IO)
	return &SCTPSndRcvInfoWrappedConn{conn}
}

func (c *SCTPSndRcvInfoWrappedConn) short(op string, n int) error {
	return c.conn.opError(op, withErrno(fmt.Errorf("%d bytes: %d for the SndRcvInfo at least", n, sndRcvInfoLen), syscall.EINVAL))
}

// Write sends b without its first 32 bytes, as they say: see [SCTPConn.SCTPWrite]. It returns
// syscall.EINVAL if there are fewer.
func (c *SCTPSndRcvInfoWrappedConn) Write(b []byte) (int, error) {
	if len(b) < sndRcvInfoLen {
		return 0, c.short("write", len(b))
	}
	var info SndRcvInfo
	info.parse(b)
	if _, err := c.conn.SCTPWrite(b[sndRcvInfoLen:], &info); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Read reads a message behind 32 bytes that describe it: see [SCTPConn.SCTPRead]. It returns
// syscall.EINVAL if b is not longer.
func (c *SCTPSndRcvInfoWrappedConn) Read(b []byte) (int, error) {
	if len(b) <= sndRcvInfoLen {
		return 0, c.short("read", len(b))
	}
	n, info, err := c.conn.SCTPRead(b[sndRcvInfoLen:])
	if err != nil {
		return 0, err
	}
	if info == nil {
		info = &SndRcvInfo{}
	}
	info.append(b[:0])
	return sndRcvInfoLen + n, nil
}

// String names the socket by its addresses.
func (c *SCTPSndRcvInfoWrappedConn) String() string { return c.conn.String() }

// Close is that of the SCTPConn, as are the other methods.
func (c *SCTPSndRcvInfoWrappedConn) Close() error { return c.conn.Close() }

func (c *SCTPSndRcvInfoWrappedConn) LocalAddr() net.Addr           { return c.conn.LocalAddr() }
func (c *SCTPSndRcvInfoWrappedConn) RemoteAddr() net.Addr          { return c.conn.RemoteAddr() }
func (c *SCTPSndRcvInfoWrappedConn) SetDeadline(t time.Time) error { return c.conn.SetDeadline(t) }
func (c *SCTPSndRcvInfoWrappedConn) SetReadDeadline(t time.Time) error {
	return c.conn.SetReadDeadline(t)
}
func (c *SCTPSndRcvInfoWrappedConn) SetWriteDeadline(t time.Time) error {
	return c.conn.SetWriteDeadline(t)
}
func (c *SCTPSndRcvInfoWrappedConn) SetWriteBuffer(bytes int) error {
	return c.conn.SetWriteBuffer(bytes)
}
func (c *SCTPSndRcvInfoWrappedConn) GetWriteBuffer() (int, error) { return c.conn.GetWriteBuffer() }
func (c *SCTPSndRcvInfoWrappedConn) SetReadBuffer(bytes int) error {
	return c.conn.SetReadBuffer(bytes)
}
func (c *SCTPSndRcvInfoWrappedConn) GetReadBuffer() (int, error) { return c.conn.GetReadBuffer() }

var _ net.Conn = (*SCTPSndRcvInfoWrappedConn)(nil)
