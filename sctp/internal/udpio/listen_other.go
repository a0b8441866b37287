//go:build !linux

package udpio

import (
	"net"
	"net/netip"
	"syscall"
)

// Listen opens a UDP socket bound to addr. The unspecified IPv6 address
// accepts IPv4 as well.
func Listen(addr netip.AddrPort, o Options) (Conn, error) {
	ip, network := addr.Addr(), "udp"
	switch {
	case !ip.IsValid() || ip == netip.IPv6Unspecified():
		addr = netip.AddrPortFrom(netip.IPv6Unspecified(), addr.Port())
	case ip.Is4():
		network = "udp4"
	default:
		network = "udp6"
	}
	uc, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	return fromUDPConn(uc, o)
}

// fromUDPConn makes the best of a socket: large buffers, and DF on every
// packet where the system has it.
func fromUDPConn(uc *net.UDPConn, o Options) (Conn, error) { return tuned(uc, uc, o), nil }

// netConn is a socket of package net.
type netConn interface {
	syscall.Conn
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
}

// tuned is newPacketConn(pc) with the options of its socket set.
func tuned(socket netConn, pc net.PacketConn, o Options) *packetConn {
	for n := o.buffer(); n >= 64<<10 && socket.SetReadBuffer(n) != nil; {
		n /= 2
	}
	for n := o.buffer(); n >= 64<<10 && socket.SetWriteBuffer(n) != nil; {
		n /= 2
	}
	c := newPacketConn(pc)
	if raw, err := socket.SyscallConn(); err == nil {
		c.df = func(on bool) {
			_ = raw.Control(func(fd uintptr) { setDontFragment(fd, on) })
		}
		c.df(true)
	}
	return c
}

// RouteMTU returns the MTU of the interface that a datagram to remote would
// leave through, 0 if that cannot be told.
func RouteMTU(remote netip.AddrPort) int {
	if remote.Port() == 0 {
		remote = netip.AddrPortFrom(remote.Addr(), 9) // any: nothing is sent
	}
	uc, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(remote))
	if err != nil {
		return 0
	}
	defer uc.Close()
	local := addrPortOf(uc.LocalAddr()).Addr()
	ifs, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, ifi := range ifs {
		addrs, _ := ifi.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == local.WithZone("") {
					return ifi.MTU
				}
			}
		}
	}
	return 0
}
