package main

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/transport/v5"
)

// maxDelayed is how many packets a link delays at once, each way; more are lost.
const maxDelayed = 1 << 16

// maxPacket is the size of the largest packet of a link with a delay, in bytes.
const maxPacket = 2048

// link says what happens to packets that are written.
type link struct {
	loss  float64 // of 1
	delay time.Duration
}

func (l link) plain() bool { return l.loss == 0 && l.delay == 0 }

// delayed is a packet on its way.
type delayed struct {
	due time.Time
	to  netip.AddrPort
	n   int
	b   [maxPacket]byte
}

var packets = sync.Pool{New: func() any { return new(delayed) }}

// path carries packets one way.
type path struct {
	link
	queue chan *delayed // nil without a delay
	send  func(b []byte, to netip.AddrPort) (int, error)
	done  chan struct{}
	once  sync.Once
}

func newPath(l link, send func([]byte, netip.AddrPort) (int, error)) *path {
	p := &path{link: l, send: send, done: make(chan struct{})}
	if l.delay > 0 {
		p.queue = make(chan *delayed, maxDelayed)
		go p.run()
	}
	return p
}

func (p *path) write(b []byte, to netip.AddrPort) (int, error) {
	if p.loss > 0 && rand.Float64() < p.loss {
		return len(b), nil
	}
	if p.queue == nil {
		return p.send(b, to)
	}
	d := packets.Get().(*delayed)
	d.due, d.to, d.n = time.Now().Add(p.delay), to, copy(d.b[:], b)
	select {
	case <-p.done:
		return 0, net.ErrClosed
	case p.queue <- d:
	default: // the link is full
		packets.Put(d)
	}
	return len(b), nil
}

func (p *path) run() {
	for {
		select {
		case <-p.done:
			return
		case d := <-p.queue:
			if wait := time.Until(d.due); wait > 0 {
				time.Sleep(wait)
			}
			_, _ = p.send(d.b[:d.n], d.to) // what cannot be sent is lost
			packets.Put(d)
		}
	}
}

func (p *path) close() { p.once.Do(func() { close(p.done) }) }

// linkConn is a connection behind a link.
type linkConn struct {
	net.Conn
	*path
}

func newLinkConn(c net.Conn, l link) net.Conn {
	if l.plain() {
		return c
	}
	return linkConn{c, newPath(l, func(b []byte, _ netip.AddrPort) (int, error) { return c.Write(b) })}
}

func (c linkConn) Write(b []byte) (int, error) { return c.write(b, netip.AddrPort{}) }

func (c linkConn) Close() error {
	c.close()
	return c.Conn.Close()
}

// linkNet is a network of ICE whose UDP sockets are behind links.
type linkNet struct {
	transport.Net
	link link
}

// ListenUDP opens the sockets of ICE's candidates.
func (n linkNet) ListenUDP(network string, laddr *net.UDPAddr) (transport.UDPConn, error) {
	c, err := net.ListenUDP(network, laddr)
	if err != nil {
		return nil, err
	}
	setBuffers(c)
	return linkSocket{c, newPath(n.link, c.WriteToUDPAddrPort)}, nil
}

// linkSocket writes to its link what ICE writes.
type linkSocket struct {
	*net.UDPConn
	path *path
}

func (s linkSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	return s.path.write(b, to.(*net.UDPAddr).AddrPort())
}

func (s linkSocket) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	return s.ReadFromUDPAddrPort(b)
}

func (s linkSocket) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	return s.path.write(b, to)
}

func (s linkSocket) Close() error {
	s.path.close()
	return s.UDPConn.Close()
}
