package sctptest

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// receiveBuffer bounds the bytes that wait in a socket to be read; what comes
// beyond is lost and counted as Counters.Overflow.
const receiveBuffer = 8 << 20

// PacketConn is a UDP socket of a Host. It is a net.PacketConn and has the
// allocation-free methods of *net.UDPConn.
type PacketConn struct {
	host  *Host
	bound netip.AddrPort // the zero Addr for all addresses of the host

	mu       sync.Mutex
	cond     sync.Cond
	queue    []*packet
	head     int
	bytes    int
	closed   bool
	deadline time.Time
	timer    *time.Timer
}

func newPacketConn(h *Host, bound netip.AddrPort) *PacketConn {
	c := &PacketConn{host: h, bound: bound}
	c.cond.L = &c.mu
	return c
}

// push queues a packet that arrived.
func (c *PacketConn) push(p *packet) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return unreachable
	}
	if c.bytes+len(p.b) > receiveBuffer {
		return overflow
	}
	c.bytes += len(p.b)
	c.queue = append(c.queue, p)
	c.cond.Signal()
	return delivered
}

// wait returns with mu locked and a packet queued, or with mu unlocked and an
// error.
func (c *PacketConn) wait() error {
	c.mu.Lock()
	for c.head == len(c.queue) {
		if c.closed {
			c.mu.Unlock()
			return &net.OpError{Op: "read", Net: "udp", Err: net.ErrClosed}
		}
		if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
			c.mu.Unlock()
			return &net.OpError{Op: "read", Net: "udp", Err: os.ErrDeadlineExceeded}
		}
		c.cond.Wait()
	}
	return nil
}

// pop takes the first packet; mu is locked and there is one.
func (c *PacketConn) pop() *packet {
	p := c.queue[c.head]
	c.queue[c.head] = nil
	c.head++
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	} else if c.head >= 1024 && c.head > len(c.queue)/2 {
		n := copy(c.queue, c.queue[c.head:])
		clear(c.queue[n:])
		c.queue, c.head = c.queue[:n], 0
	}
	c.bytes -= len(p.b)
	return p
}

// ReadTrain waits for a packet and reads as many as are there of the same
// size, addresses and ECN codepoint into b, back to back; the last may be
// shorter. b should hold 64 KiB.
func (c *PacketConn) ReadTrain(b []byte) (n, size int, local netip.Addr, remote netip.AddrPort, ecn uint8, err error) {
	if err := c.wait(); err != nil {
		return 0, 0, local, remote, 0, err
	}
	defer c.mu.Unlock()
	first := c.pop()
	n = copy(b, first.b)
	size, local, remote, ecn = n, first.to.Addr(), first.from, first.ecn
	first.free()
	for c.head < len(c.queue) && size > 0 {
		p := c.queue[c.head]
		if p.from != remote || p.ecn != ecn || len(p.b) > size || p.to.Addr() != local || n+len(p.b) > len(b) ||
			len(p.b) == 0 {
			break
		}
		c.pop()
		last := copy(b[n:], p.b)
		n += last
		p.free()
		if last < size {
			break
		}
	}
	return n, size, local, remote, ecn, nil
}

// ReadFromUDPAddrPort reads one packet.
func (c *PacketConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	if err := c.wait(); err != nil {
		return 0, netip.AddrPort{}, err
	}
	p := c.pop()
	c.mu.Unlock()
	n, from := copy(b, p.b), p.from
	p.free()
	return n, from, nil
}

// ReadFrom implements net.PacketConn.
func (c *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromUDPAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteTrain sends b as packets of the given size, the last may be shorter.
// The zero local address leaves the choice to the host.
func (c *PacketConn) WriteTrain(b []byte, size int, local netip.Addr, remote netip.AddrPort, ecn uint8) error {
	return c.write(b, size, local, remote, ecn, false)
}

// WriteFragmented sends one packet that the network may fragment: Link.MTU does
// not count for it.
func (c *PacketConn) WriteFragmented(b []byte, local netip.Addr, remote netip.AddrPort, ecn uint8) error {
	return c.write(b, 0, local, remote, ecn, true)
}

func (c *PacketConn) write(
	b []byte, size int, local netip.Addr, remote netip.AddrPort, ecn uint8, fragment bool,
) error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return &net.OpError{Op: "write", Net: "udp", Err: net.ErrClosed}
	}
	from := netip.AddrPortFrom(c.source(local, remote.Addr()), c.bound.Port())
	l := c.host.net.link(from.Addr(), remote.Addr())
	for {
		n := len(b)
		if size > 0 {
			n = min(n, size)
		}
		l.send(from, remote, b[:n], ecn, fragment)
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
}

// source chooses the address to send from.
func (c *PacketConn) source(local, remote netip.Addr) netip.Addr {
	if c.bound.Addr().IsValid() {
		return c.bound.Addr()
	}
	if slices.Contains(c.host.addrs, local) {
		return local
	}
	for _, a := range c.host.addrs {
		if a.Is4() == remote.Is4() {
			return a
		}
	}
	return c.host.addrs[0]
}

// WriteToUDPAddrPort sends one packet.
func (c *PacketConn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if err := c.WriteTrain(b, 0, netip.Addr{}, to, 0); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteTo implements net.PacketConn. The address must be a *net.UDPAddr.
func (c *PacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	ua, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, &net.OpError{Op: "write", Net: "udp", Addr: to, Err: net.InvalidAddrError("not a *net.UDPAddr")}
	}
	ap := ua.AddrPort()
	return c.WriteToUDPAddrPort(b, netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
}

// LocalAddr returns the bound address as a *net.UDPAddr.
func (c *PacketConn) LocalAddr() net.Addr {
	ip := c.bound.Addr()
	if !ip.IsValid() {
		ip = netip.IPv4Unspecified()
		if !c.host.addrs[0].Is4() {
			ip = netip.IPv6Unspecified()
		}
	}
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, c.bound.Port()))
}

// Close implements net.PacketConn. Packets on their way to the socket are
// counted as Counters.Unreachable.
func (c *PacketConn) Close() error {
	c.host.mu.Lock()
	if c.host.ports[c.bound] == c {
		delete(c.host.ports, c.bound)
	}
	c.host.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &net.OpError{Op: "close", Net: "udp", Err: net.ErrClosed}
	}
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.cond.Broadcast()
	return nil
}

// SetDeadline implements net.PacketConn. Writes never wait.
func (c *PacketConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements net.PacketConn.
func (c *PacketConn) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.PacketConn.
func (c *PacketConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if !t.IsZero() {
		c.timer = time.AfterFunc(time.Until(t), c.wake)
	}
	c.cond.Broadcast()
	return nil
}

func (c *PacketConn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cond.Broadcast()
}
