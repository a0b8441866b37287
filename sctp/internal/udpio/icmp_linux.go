package udpio

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Limits of what is read of ICMP messages.
const (
	// maxICMP bounds the messages that one TryRead takes in.
	maxICMP = 16
	// maxQuote bounds what is looked at of the datagram in a message.
	maxQuote = 64
)

// Types and codes of ICMP messages: "Destination Unreachable", with "Protocol
// Unreachable" or "Port Unreachable" (RFC 792; RFC 4443, Section 3.1), and "Parameter
// Problem, unrecognized Next Header type encountered" (RFC 4443, Section 3.4).
const (
	icmpUnreachable, icmpProtocol, icmpPort = 3, 2, 3
	icmp6Unreachable, icmp6Port             = 1, 4
	icmp6Parameter, icmp6NextHeader         = 4, 1
)

// icmp is the error queue of a socket, on which the kernel leaves ICMP messages
// that answer its datagrams. With it, the kernel also reports each of them as the
// error of the next system call, whatever that has to do with it.
type icmp struct {
	tooBig     func(remote netip.AddrPort, mtu int, quoted []byte)
	noProtocol func(remote netip.AddrPort, quoted []byte)
	noPort     func(remote netip.AddrPort, quoted []byte)
	// due tells that a writer has come upon such an error.
	due atomic.Bool

	buf [maxQuote]byte // for TryRead
	ctl [256]byte      // for TryRead
}

// pendingError reports whether errno may be of an ICMP message about an earlier
// datagram.
func pendingError(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EMSGSIZE, unix.ENOPROTOOPT, unix.EPROTO,
		unix.EACCES, unix.EOPNOTSUPP, unix.EHOSTDOWN, unix.ENONET:
		return true
	}
	return false
}

// listenICMP has the kernel keep ICMP messages.
func (c *conn) listenICMP(o Options) {
	c.icmp.tooBig = o.TooBig
	if c.ip {
		c.icmp.noProtocol = o.NoProtocol
	} else {
		c.icmp.noPort = o.NoPort
	}
	if o.TooBig == nil && c.icmp.noProtocol == nil && c.icmp.noPort == nil {
		return
	}
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	if c.v6 {
		_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
	}
}

// readICMP empties the error queues. It is called by TryRead.
func (c *conn) readICMP() {
	c.icmp.due.Store(false)
	c.readErrors(&c.source)
	if n := c.dominant.open; n != nil {
		c.readErrors(&n.source)
	}
}

func (c *conn) readErrors(s *source) {
	q := &c.icmp
	for range maxICMP {
		c.fdmu.RLock()
		if c.closed {
			c.fdmu.RUnlock()
			return
		}
		n, oobn, _, from, err := unix.Recvmsg(s.fd, q.buf[:], q.ctl[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		c.fdmu.RUnlock()
		if err != nil {
			return
		}
		x := parseICMP(q.ctl[:oobn])
		if x.mtu > 0 && q.tooBig != nil {
			q.tooBig(c.addrPort(from), x.mtu, q.buf[:n])
		}
		if x.noProtocol && q.noProtocol != nil {
			q.noProtocol(c.addrPort(from), q.buf[:n])
		}
		if x.noPort && q.noPort != nil {
			q.noPort(c.addrPort(from), q.buf[:n])
		}
	}
	q.due.Store(true) // there may be more
}

// icmpNews is what an ICMP message says.
type icmpNews struct {
	mtu        int  // that a datagram was larger than this, 0 if it is something else
	noProtocol bool // that the host has no SCTP over IP
	noPort     bool // that nothing uses the UDP port
}

// parseICMP reads the control messages that come with an ICMP message.
func parseICMP(ctl []byte) (x icmpNews) {
	list, err := unix.ParseSocketControlMessage(ctl)
	if err != nil {
		return x
	}
	for _, m := range list {
		known := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR ||
			m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !known || len(m.Data) < 16 { // struct sock_extended_err
			continue
		}
		errno := unix.Errno(binary.NativeEndian.Uint32(m.Data))
		origin, typ, code, info := m.Data[4], m.Data[5], m.Data[6], binary.NativeEndian.Uint32(m.Data[8:])
		switch {
		case errno == unix.EMSGSIZE && (origin == unix.SO_EE_ORIGIN_ICMP || origin == unix.SO_EE_ORIGIN_ICMP6):
			x.mtu = int(min(info, 1<<16))
		case origin == unix.SO_EE_ORIGIN_ICMP && typ == icmpUnreachable && code == icmpProtocol,
			origin == unix.SO_EE_ORIGIN_ICMP6 && typ == icmp6Parameter && code == icmp6NextHeader:
			x.noProtocol = true
		case origin == unix.SO_EE_ORIGIN_ICMP && typ == icmpUnreachable && code == icmpPort,
			origin == unix.SO_EE_ORIGIN_ICMP6 && typ == icmp6Unreachable && code == icmp6Port:
			x.noPort = true
		}
	}
	return x
}

func (c *conn) addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 {
			ip = ip.WithZone(c.zone.name(sa.ZoneId))
		}
		return netip.AddrPortFrom(ip, uint16(sa.Port))
	}
	return netip.AddrPort{}
}
