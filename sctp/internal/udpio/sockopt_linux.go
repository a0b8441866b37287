package udpio

import (
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ect0 is the codepoint of ECN-capable datagrams (RFC 3168, Section 5).
const ect0 = 2

// setOptions asks for all the socket can do; what the kernel refuses is done
// without.
func (c *conn) setOptions(o Options) {
	set := func(level, opt, v int) bool {
		return unix.SetsockoptInt(c.fd, level, opt, v) == nil
	}
	setBuffer := func(opt, force, n int) {
		if !set(unix.SOL_SOCKET, force, n) { // beyond net.core.*mem_max needs CAP_NET_ADMIN
			set(unix.SOL_SOCKET, opt, n)
		}
	}
	setBuffer(unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, o.buffer())
	setBuffer(unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, o.buffer())

	c.setDF(true)
	c.listenICMP(o)
	if c.v6 {
		set(unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1)
		if c.wild {
			set(unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
	}
	set(unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	// Most datagrams are ECN-capable: they need no control message then, which
	// takes longer than the rest of a small system call.
	if set(unix.IPPROTO_IP, unix.IP_TOS, ect0) && (!c.v6 || set(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, ect0)) {
		c.ecn = ect0
	}
	if c.wild && !c.v6 {
		set(unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	}
	if !o.NoOffload {
		c.setOffload()
	}
}

// setOffload turns on what the kernel has of GSO and GRO.
func (c *conn) setOffload() {
	set := func(level, opt, v int) bool {
		return unix.SetsockoptInt(c.fd, level, opt, v) == nil
	}
	// Setting 0 changes nothing and tells whether the kernel knows it.
	c.gso.Store(set(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0))
	c.gro = set(unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		c.uneven = equalSegmentsCorrupt(unix.ByteSliceToString(u.Release[:]))
	}
}

// dropped returns how many datagrams the socket fd lost for lack of buffer. The kernel
// is asked when somebody wants to know: with SO_RXQ_OVFL each read would tell, and take
// longer.
func dropped(fd int) uint64 {
	const drops = 8 // SK_MEMINFO_DROPS
	var info [drops + 1]uint32
	n := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(info[drops])
}

// RouteMTU returns the MTU of the route to remote, 0 if there is none.
func RouteMTU(remote netip.AddrPort) int {
	ip := remote.Addr().Unmap()
	family, level, opt := unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU
	var sa unix.Sockaddr = &unix.SockaddrInet6{Addr: ip.As16(), Port: int(remote.Port()), ZoneId: zoneID(ip.Zone())}
	if ip.Is4() {
		family, level, opt = unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU
		sa = &unix.SockaddrInet4{Addr: ip.As4(), Port: int(remote.Port())}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if unix.Connect(fd, sa) != nil {
		return 0
	}
	mtu, err := unix.GetsockoptInt(fd, level, opt)
	if err != nil {
		return 0
	}
	return mtu
}

func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if ifi, err := net.InterfaceByName(zone); err == nil {
		return uint32(ifi.Index)
	}
	n, _ := strconv.Atoi(zone)
	return uint32(n)
}

// zoneCache remembers the name of the zone used last: naming one allocates and
// asks the kernel.
type zoneCache struct{ last atomic.Pointer[zoneName] }

type zoneName struct {
	id   uint32
	name string
}

func (z *zoneCache) name(id uint32) string {
	if l := z.last.Load(); l != nil && l.id == id {
		return l.name
	}
	n := strconv.Itoa(int(id))
	if ifi, err := net.InterfaceByIndex(int(id)); err == nil {
		n = ifi.Name
	}
	z.last.Store(&zoneName{id, n})
	return n
}

func (z *zoneCache) id(name string) uint32 {
	if l := z.last.Load(); l != nil && l.name == name {
		return l.id
	}
	id := zoneID(name)
	z.last.Store(&zoneName{id, name})
	return id
}

// idOf returns the zone of an address as a number, 0 if it has none.
func (z *zoneCache) idOf(ip netip.Addr) uint32 {
	if ip.Zone() == "" {
		return 0
	}
	return z.id(ip.Zone())
}
