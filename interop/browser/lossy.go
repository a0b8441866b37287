package main

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/pion/transport/v5"
)

// A lossyNet is a network whose UDP sockets lose packets at random, in both directions, below ICE and DTLS. With a
// loss of zero they pass everything. Each peer has its own.
type lossyNet struct {
	transport.Net
	loss    atomic.Uint32 // of 10,000 packets
	dropped atomic.Uint64
}

// setLoss sets the share of packets that are lost, in percent.
func (n *lossyNet) setLoss(percent float64) { n.loss.Store(uint32(min(max(percent, 0), 100) * 100)) }

// drop decides about one packet.
func (n *lossyNet) drop() bool {
	loss := n.loss.Load()
	if loss == 0 || rand.Uint32N(10_000) >= loss {
		return false
	}
	n.dropped.Add(1)
	return true
}

// ListenUDP opens the sockets of ICE's candidates.
func (n *lossyNet) ListenUDP(network string, laddr *net.UDPAddr) (transport.UDPConn, error) {
	c, err := net.ListenUDP(network, laddr)
	if err != nil {
		return nil, err
	}
	return &lossyConn{c, n}, nil
}

// A lossyConn loses packets in the calls that ICE makes. The two with AddrPort are those that ICE takes if there
// are any.
type lossyConn struct {
	*net.UDPConn
	net *lossyNet
}

func (c *lossyConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, addr, err := c.UDPConn.ReadFrom(p)
		if err != nil || !c.net.drop() {
			return n, addr, err
		}
	}
}

func (c *lossyConn) WriteTo(p []byte, addr net.Addr) (int, error) {
	if c.net.drop() {
		return len(p), nil
	}
	return c.UDPConn.WriteTo(p, addr)
}

func (c *lossyConn) ReadFromAddrPort(p []byte) (int, netip.AddrPort, error) {
	for {
		n, addr, err := c.ReadFromUDPAddrPort(p)
		if err != nil || !c.net.drop() {
			return n, addr, err
		}
	}
}

func (c *lossyConn) WriteToAddrPort(p []byte, addr netip.AddrPort) (int, error) {
	if c.net.drop() {
		return len(p), nil
	}
	return c.WriteToUDPAddrPort(p, addr)
}
