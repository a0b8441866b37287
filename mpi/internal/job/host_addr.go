package job

import (
	"net"
	"net/netip"
)

// hostAddr returns the address that this host reaches others from: the
// launcher, host:port, if it is on another address than those of one host; any, which needs
// a default route; else that of an interface, or a loopback address if there is
// none.
func hostAddr(launcher string) netip.Addr {
	if host, _, err := net.SplitHostPort(launcher); err == nil {
		if a := addrTo(host); a.IsValid() && !a.IsLoopback() {
			return a
		}
	}
	if a := addrTo("192.0.2.1"); a.IsValid() {
		return a
	}
	all, err := net.InterfaceAddrs()
	for _, n := range all {
		p, ok := n.(*net.IPNet)
		if err == nil && ok && p.IP.IsGlobalUnicast() {
			if a, ok := netip.AddrFromSlice(p.IP); ok {
				return a.Unmap()
			}
		}
	}
	return Loopback.Addr()
}

// addrTo returns the address that packets to a host come from, if there is a
// route.
func addrTo(host string) netip.Addr {
	// Connecting a UDP socket sends nothing; it only asks for a route.
	c, err := net.Dial("udp", net.JoinHostPort(host, "9"))
	if err != nil {
		return netip.Addr{}
	}
	defer func() { _ = c.Close() }()
	ap, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// Loopback is where the network transports listen in RunLocal.
var Loopback = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
