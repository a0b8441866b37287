package udpio

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// protocolSCTP is the protocol number of SCTP in IP headers.
const protocolSCTP = 132

// errProtocol is returned for a socket of another protocol.
var errProtocol = errors.New("udpio: the socket is not one of SCTP over IP")

// ListenIP opens a socket for SCTP packets directly over IP that are sent to addr. It
// takes CAP_NET_RAW. All such sockets get all packets to their address; an
// unspecified address is that of its own family only. The ports in its addresses
// are 0.
func ListenIP(addr netip.Addr, o Options) (Conn, error) {
	family := unix.AF_INET6
	var sa unix.Sockaddr
	if addr.Is4() || addr.Is4In6() {
		family, addr = unix.AF_INET, addr.Unmap()
		sa = &unix.SockaddrInet4{Addr: addr.As4()}
	} else {
		sa = &unix.SockaddrInet6{Addr: addr.As16(), ZoneId: zoneID(addr.Zone())}
	}
	fail := func(call string, err error) (Conn, error) {
		return nil, &net.OpError{Op: "listen", Net: "ip:132", Addr: &net.IPAddr{IP: addr.AsSlice(), Zone: addr.Zone()},
			Err: os.NewSyscallError(call, err)}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocolSCTP)
	if err != nil {
		return fail("socket", err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		unix.Close(fd)
		return fail("bind", err)
	}
	c, err := newConn(fd, o)
	if err != nil {
		return nil, err
	}
	c.guard(family, sa)
	return c, nil
}

// guard opens a second socket, which drops all packets. Linux tells senders that there
// is no SCTP when no socket has room for a packet, and some of them end their
// associations for that; this one always has room. Without it (it is no less allowed
// than the first one) there is just that risk.
func (c *conn) guard(family int, sa unix.Sockaddr) {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocolSCTP)
	if err != nil {
		return
	}
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err != nil || network(fd) != network(c.fd) { // the first one may be from another namespace
		unix.Close(fd)
		return
	}
	// What came before the filter would stay for good, and may fill it.
	for err == nil || err == unix.EINTR {
		var b [1]byte
		_, _, err = unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT)
	}
	c.guardFD = fd
}

// fromIPConn takes the socket over from ic, which it closes.
func fromIPConn(ic *net.IPConn, o Options) (Conn, error) {
	c, err := takeOver(ic, o)
	if err != nil {
		return nil, err
	}
	if sa, err := unix.Getsockname(c.fd); err == nil {
		family := unix.AF_INET
		if c.v6 {
			family = unix.AF_INET6
		}
		c.guard(family, sa)
	}
	return c, nil
}

// direct finds out whether the socket is one of SCTP over IP.
func (c *conn) direct() error {
	typ, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if c.ip = typ == unix.SOCK_RAW; !c.ip {
		return nil
	}
	if p, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || p != protocolSCTP {
		return errProtocol
	}
	return nil
}

// network returns what tells the network namespace of a socket, 0 if it is not known.
func network(fd int) uint64 {
	n, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0
	}
	return n
}

// minHeader4 is the length of an IPv4 header without options.
const minHeader4 = 20

// payload4 returns the payload of an IPv4 packet, nothing if it is none.
func payload4(b []byte) []byte {
	if len(b) < minHeader4 {
		return nil
	}
	n := int(b[0]&0xf) * 4
	if n < minHeader4 || n > len(b) {
		return nil
	}
	return b[n:]
}
