//go:build !linux

package udpio

import (
	"net"
	"net/netip"
)

// ListenIP opens a socket for SCTP packets directly over IP that are sent to addr,
// where the system has such sockets and lets the process have one. The ports in its
// addresses are 0.
func ListenIP(addr netip.Addr, o Options) (Conn, error) {
	network := "ip6:132"
	if addr.Is4() || addr.Is4In6() {
		network, addr = "ip4:132", addr.Unmap()
	}
	ic, err := net.ListenIP(network, &net.IPAddr{IP: addr.AsSlice(), Zone: addr.Zone()})
	if err != nil {
		return nil, err
	}
	return fromIPConn(ic, o)
}

func fromIPConn(ic *net.IPConn, o Options) (Conn, error) {
	return tuned(ic, ipConn{ic}, o), nil
}
