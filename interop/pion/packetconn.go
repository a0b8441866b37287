package sctp

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	weft "github.com/weftstack/weft/sctp"
)

const (
	// maxWriteQueue is how many packets wait for the connection at most. Like a full queue of a
	// network card, a full one drops packets, which are sent again, and the congestion window
	// follows. Waiting instead could lock up: two ends of a connection without a buffer would
	// each wait for the other one to read.
	maxWriteQueue = 4096
	// maxFreePackets is how many unused packets are kept for later.
	maxFreePackets = 1024
)

// The addresses of the ends of a connection, which has none of its own (RFC 8261). They are of a block
// for documentation (RFC 5737), and no packet has them.
var (
	localAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), port)
	peerAddr  = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), port)
)

// packetConn makes a net.Conn, each of whose reads and writes carries a packet, a connection of a
// weft.Transport.
type packetConn struct {
	conn           net.Conn
	sent, received atomic.Uint64 // bytes
	dropped        atomic.Uint64 // packets, because the queue was full

	ready     chan struct{} // closed when reading may begin
	readyOnce sync.Once
	closing   chan struct{}
	ended     chan struct{} // closed when a read has failed
	written   chan struct{} // closed when the writer has ended
	closeOnce sync.Once
	closeErr  error

	mu      sync.Mutex
	wake    sync.Cond // of the writer
	idle    sync.Cond // the queue is empty, and nothing is being written
	queue   [][]byte
	free    [][]byte
	waiting bool // the writer waits
	stopped bool // nothing is written any more
	readErr error
}

// newPacketConn returns the connection. A client reads only once its INIT has been sent, so that an
// INIT of the peer's meets an association (RFC 9260, Section 5.2.1).
func newPacketConn(conn net.Conn, client bool) *packetConn {
	c := &packetConn{conn: conn, ready: make(chan struct{}), closing: make(chan struct{}), ended: make(chan struct{}), written: make(chan struct{})}
	c.wake.L, c.idle.L = &c.mu, &c.mu
	if !client {
		c.readyOnce.Do(func() { close(c.ready) })
	}
	go c.writeLoop()
	return c
}

// ReadFromUDPAddrPort implements weft.AddrPortConn.
func (c *packetConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case <-c.ready:
	case <-c.closing:
		return 0, peerAddr, net.ErrClosed
	}
	n, err := c.conn.Read(b)
	if err != nil {
		c.mu.Lock()
		if c.readErr == nil {
			c.readErr = err
			close(c.ended)
		}
		c.mu.Unlock()
		return 0, peerAddr, net.ErrClosed // whatever the error is, it is the end
	}
	c.received.Add(uint64(n))
	return n, peerAddr, nil
}

// WriteToUDPAddrPort implements weft.AddrPortConn. It does not wait for the connection.
func (c *packetConn) WriteToUDPAddrPort(b []byte, _ netip.AddrPort) (int, error) {
	c.mu.Lock()
	switch {
	case c.stopped:
		c.mu.Unlock()
		return 0, net.ErrClosed
	case len(c.queue) >= maxWriteQueue:
		c.mu.Unlock()
		c.dropped.Add(1)
		return len(b), nil
	}
	var p []byte
	if n := len(c.free); n > 0 {
		p, c.free = c.free[n-1], c.free[:n-1]
	}
	c.queue = append(c.queue, append(p[:0], b...))
	if c.waiting {
		c.waiting = false
		c.wake.Signal()
	}
	c.mu.Unlock()
	return len(b), nil
}

// writeLoop writes what is queued until the connection is stopped.
func (c *packetConn) writeLoop() {
	defer close(c.written)
	var batch [][]byte
	c.mu.Lock()
	for {
		for _, p := range batch {
			if len(c.free) < maxFreePackets {
				c.free = append(c.free, p)
			}
		}
		clear(batch)
		batch = batch[:0]
		for len(c.queue) == 0 && !c.stopped {
			c.waiting = true
			c.idle.Broadcast()
			c.wake.Wait()
		}
		if c.stopped {
			c.idle.Broadcast()
			c.mu.Unlock()
			return
		}
		batch, c.queue = c.queue, batch
		c.mu.Unlock()
		for _, p := range batch {
			// What cannot be written is lost, like any packet: when the connection has ended,
			// reading tells.
			if _, err := c.conn.Write(p); err == nil {
				c.sent.Add(uint64(len(p)))
			}
			c.readyOnce.Do(func() { close(c.ready) })
		}
		c.mu.Lock()
	}
}

// flush waits until what is queued is written, for at most d.
func (c *packetConn) flush(d time.Duration) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(d))
	t := time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopped = true
		c.wake.Signal()
		c.idle.Broadcast()
	})
	defer t.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.stopped && !(c.waiting && len(c.queue) == 0) {
		c.idle.Wait()
	}
}

// stop drops what is queued, and all that follows.
func (c *packetConn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.wake.Signal()
}

// Close closes the connection.
func (c *packetConn) Close() error {
	c.closeOnce.Do(func() {
		c.stop()
		close(c.closing)
		// A Close of the connection that writes, as DTLS does, or that does not wake a reader
		// must not wait for ever.
		now := time.Now()
		_ = c.conn.SetReadDeadline(now)
		c.closeErr = c.conn.Close()
	})
	return c.closeErr
}

// err returns why reading ended, or nil.
func (c *packetConn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readErr
}

// ReadFrom implements weft.PacketConn.
func (c *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromUDPAddrPort(b)
	return n, net.UDPAddrFromAddrPort(from), err
}

// WriteTo implements weft.PacketConn.
func (c *packetConn) WriteTo(b []byte, _ net.Addr) (int, error) {
	return c.WriteToUDPAddrPort(b, peerAddr)
}

// LocalAddr implements weft.PacketConn.
func (c *packetConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(localAddr) }

// SetDeadline, SetReadDeadline and SetWriteDeadline implement weft.PacketConn, which does not use
// them.
func (c *packetConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *packetConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *packetConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

var (
	_ weft.PacketConn   = (*packetConn)(nil)
	_ weft.AddrPortConn = (*packetConn)(nil)
)
