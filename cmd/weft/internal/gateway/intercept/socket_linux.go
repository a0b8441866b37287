package intercept

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// ip6OriginalDst is IP6T_SO_ORIGINAL_DST of linux/netfilter_ipv6/ip6_tables.h.
const ip6OriginalDst = 80

// Listen listens for the connections that rules of a mode lead to a port. Mode TProxy needs root (CAP_NET_ADMIN).
func Listen(ctx context.Context, m Mode, address string) (net.Listener, error) {
	var c net.ListenConfig
	if m == TProxy {
		c.Control = transparent
	}
	return c.Listen(ctx, "tcp", address)
}

// transparent has a socket accept and use addresses that are not this host's.
func transparent(network, _ string, c syscall.RawConn) error {
	var err error
	e := c.Control(func(fd uintptr) {
		level, option := unix.SOL_IP, unix.IP_TRANSPARENT
		if network == "tcp6" {
			level, option = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
		}
		err = unix.SetsockoptInt(int(fd), level, option, 1)
	})
	if e != nil {
		return e
	}
	if err != nil {
		return fmt.Errorf("transparent sockets need root (CAP_NET_ADMIN): %w", err)
	}
	return nil
}

// From returns a dialer that connects from an address that is another host's. It needs root (CAP_NET_ADMIN), and
// rules of mode TProxy, by which the answers come back to this process.
func From(a netip.AddrPort) net.Dialer {
	return net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(a), Control: transparent}
}

// OriginalDst returns where a connection that was taken in wanted to go.
func OriginalDst(m Mode, c *net.TCPConn) (netip.AddrPort, error) {
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	if m == TProxy {
		return local, nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var a netip.AddrPort
	e := raw.Control(func(fd uintptr) {
		if local.Addr().Is4() {
			// struct sockaddr_in is as long as the group of struct ipv6_mreq.
			var m *unix.IPv6Mreq
			if m, err = unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, unix.SO_ORIGINAL_DST); err == nil {
				s := m.Multiaddr
				a = netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:8])), uint16(s[2])<<8|uint16(s[3]))
			}
			return
		}
		// struct sockaddr_in6 is the beginning of struct ip6_mtuinfo.
		var m *unix.IPv6MTUInfo
		if m, err = unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, ip6OriginalDst); err == nil {
			var port [2]byte // in network order
			binary.NativeEndian.PutUint16(port[:], m.Addr.Port)
			a = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), binary.BigEndian.Uint16(port[:]))
		}
	})
	if e != nil {
		err = e
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("no original destination: was the connection redirected? %w", err)
	}
	return a, nil
}
