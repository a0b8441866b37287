package sctptest

import (
	"fmt"
	"io"
	"net"
	"net/netip"
)

// connPort is the port of both ends of a Conn.
const connPort = 5684

// Conn is one end of a connection that keeps the boundaries of messages, and may lose, reorder and
// duplicate them, as DTLS does: for sctp.Client and sctp.Server. It is a net.Conn, safe for
// concurrent use. A message without a byte is its end: Close sends one, which may get lost as any other.
type Conn struct {
	*PacketConn
	peer netip.AddrPort
}

// NewConns returns the two ends of a connection, from a to b over the link l and back over back.
func (n *Network) NewConns(l, back Link) (a, b *Conn) {
	n.mu.Lock()
	n.pairs++
	id := n.pairs
	n.mu.Unlock()
	var ends [2]*Conn
	for i := range ends {
		addr := fmt.Sprintf("fd00:c0::%x:%x:%x", id>>16, id&0xffff, i+1)
		c, err := n.NewHost(addr).ListenPacket(fmt.Sprintf("[%s]:%d", addr, connPort))
		if err != nil {
			panic(err) // the address is new, and valid
		}
		ends[i] = &Conn{PacketConn: c}
	}
	a, b = ends[0], ends[1]
	a.peer, b.peer = b.bound, a.bound
	n.SetLink(a.bound.Addr().String(), b.bound.Addr().String(), l)
	n.SetLink(b.bound.Addr().String(), a.bound.Addr().String(), back)
	return a, b
}

// Read implements net.Conn: it blocks until there is a message.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		switch {
		case err != nil:
			return n, err
		case from == c.peer && n == 0:
			return 0, io.EOF
		case from == c.peer:
			return n, nil
		}
	}
}

// Write implements net.Conn: it sends a message. It does not block.
func (c *Conn) Write(b []byte) (int, error) { return c.WriteToUDPAddrPort(b, c.peer) }

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.WriteToUDPAddrPort(nil, c.peer)
	return c.PacketConn.Close()
}

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(c.peer) }

// String names both ends.
func (c *Conn) String() string { return fmt.Sprintf("sctptest.Conn %v -> %v", c.bound, c.peer) }
