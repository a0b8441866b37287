package udpio

import (
	"net"
	"net/netip"
)

// ipConn lets a packetConn use a socket of SCTP over IP.
type ipConn struct{ *net.IPConn }

func (c ipConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	n, from, err := c.ReadFromIP(b)
	if err != nil {
		return n, netip.AddrPort{}, err // from is nil
	}
	return n, addrPortOf(from), nil
}

func (c ipConn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	ip := to.Addr()
	return c.WriteToIP(b, &net.IPAddr{IP: ip.AsSlice(), Zone: ip.Zone()})
}
