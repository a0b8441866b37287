package udpio

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// conn is a Linux socket, of UDP or of SCTP over IP. The descriptor is not registered with the
// runtime's poller, so that datagrams wake no thread while some goroutine polls the socket;
// instead it is in an epoll instance of its own, and that is registered.
type conn struct {
	source
	v6      bool // AF_INET6 socket
	ip      bool // of SCTP over IP
	guardFD int  // see guard, -1 if there is none
	wild    bool // bound to the unspecified address
	local   netip.AddrPort

	ecn    uint8 // of datagrams without a control message about it
	gso    atomic.Bool
	gro    bool
	uneven bool // equal-length batches must not use GSO, see equalSegmentsCorrupt

	// fdmu is read-locked around every use of fd, so that Close cannot let
	// the number be reused under a system call.
	fdmu   sync.RWMutex
	closed bool   // guarded by fdmu
	lost   uint64 // datagrams, until it was closed; guarded by fdmu

	// caller is the caller's socket that fd is a duplicate of, see connectedUDP; nil for others.
	caller *net.UDPConn

	polled  atomic.Bool     // other goroutines poll the socket, so Read does not read it
	ep      io.Closer       // owns the epoll instance of own; or the caller's socket
	epRaw   syscall.RawConn // of ep: Read waits for it
	watchMu sync.Mutex      // comes after fdmu
	own     watch           // for Read
	pollers []*Poller       // guarded by fdmu

	groDropped atomic.Uint64 // batches that were dropped, see groSwitch
	icmp       icmp
	rd         reader
	dominant   dominantPeer
	peerFD     atomic.Int32 // descriptor of the peer socket, for Pollers; -1 while there is none
	writers    sync.Pool    // of *writer
	zone       zoneCache
}

// Listen opens a UDP socket bound to addr. The unspecified IPv6 address
// accepts IPv4 as well.
func Listen(addr netip.AddrPort, o Options) (Conn, error) {
	ip := addr.Addr()
	if !ip.IsValid() {
		ip = netip.IPv6Unspecified()
	}
	family := unix.AF_INET6
	if ip.Is4() || ip.Is4In6() {
		family, ip = unix.AF_INET, ip.Unmap()
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) && ip == netip.IPv6Unspecified() {
		family, ip = unix.AF_INET, netip.IPv4Unspecified()
		fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	var sa unix.Sockaddr
	if family == unix.AF_INET {
		sa = &unix.SockaddrInet4{Addr: ip.As4(), Port: int(addr.Port())}
	} else {
		only := 1
		if ip.IsUnspecified() {
			only = 0
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
		sa = &unix.SockaddrInet6{Addr: ip.As16(), Port: int(addr.Port()), ZoneId: zoneID(ip.Zone())}
	}
	if err := unix.Bind(fd, sa); err != nil {
		unix.Close(fd)
		return nil, &net.OpError{Op: "listen", Net: "udp", Addr: net.UDPAddrFromAddrPort(addr), Err: os.NewSyscallError("bind", err)}
	}
	c, err := newConn(fd, o)
	if err == nil && !c.wild {
		c.dominant.after = peerSocketAfter
	}
	return c, err
}

// fromUDPConn takes the socket over from uc, which it closes.
func fromUDPConn(uc *net.UDPConn, o Options) (Conn, error) {
	c, err := takeOver(uc, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// takeOver makes a Conn of the socket of pc, which it closes.
func takeOver(pc netConn, o Options) (*conn, error) {
	raw, err := pc.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, err := dup(raw)
	if err != nil {
		return nil, err
	}
	pc.Close()
	return newConn(fd, o)
}

// dup duplicates the descriptor of a socket.
func dup(raw syscall.RawConn) (fd int, err error) {
	if cerr := raw.Control(func(f uintptr) {
		fd, err = unix.FcntlInt(f, unix.F_DUPFD_CLOEXEC, 0)
	}); cerr != nil {
		return -1, cerr
	}
	return fd, os.NewSyscallError("fcntl", err)
}

// netConn is a socket of package net.
type netConn interface {
	syscall.Conn
	Close() error
}

func newConn(fd int, o Options) (*conn, error) {
	c := newConnFD(fd)
	if err := c.setup(o); err != nil {
		unix.Close(fd)
		if c.ep != nil {
			c.ep.Close()
		}
		return nil, err
	}
	return c, nil
}

func newConnFD(fd int) *conn {
	c := &conn{source: source{fd: fd}, guardFD: -1}
	c.peerFD.Store(-1)
	c.writers.New = func() any { return new(writer) }
	return c
}

func (c *conn) setup(o Options) error {
	if err := c.direct(); err != nil {
		return err
	}
	o.NoOffload = o.NoOffload || c.ip
	sa, err := unix.Getsockname(c.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		c.local = netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		c.v6 = true
		ip := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 {
			ip = ip.WithZone(c.zone.name(sa.ZoneId))
		}
		c.local = netip.AddrPortFrom(ip, uint16(sa.Port))
	}
	if c.ip {
		c.local = netip.AddrPortFrom(c.local.Addr(), 0) // the system calls the protocol its port
	}
	c.wild = c.local.Addr().IsUnspecified()
	c.dominant.options = o
	c.setOptions(o)
	c.groSwitch.init(c.gro)

	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	c.own.epfd = epfd
	if err := c.watch(true); err != nil {
		unix.Close(epfd)
		return os.NewSyscallError("epoll_ctl", err)
	}
	if err := unix.SetNonblock(epfd, true); err != nil {
		unix.Close(epfd)
		return os.NewSyscallError("fcntl", err)
	}
	ep := os.NewFile(uintptr(epfd), "udpio")
	c.ep = ep
	c.epRaw, err = ep.SyscallConn()
	if err != nil {
		return err
	}
	c.rd.init(c)
	return nil
}

// Polled implements Conn.
func (c *conn) Polled(on bool) bool {
	c.polled.Store(on) // before the descriptor is armed again, or Read might miss that
	c.fdmu.RLock()
	defer c.fdmu.RUnlock()
	if c.closed {
		return true
	}
	if !on {
		// Arming a descriptor wakes Read only if epoll's ready list does not have it
		// already: this takes it off.
		var was [2]unix.EpollEvent
		_, _ = unix.EpollWait(c.own.epfd, was[:], 0)
	}
	return c.watch(!on) == nil
}

// CanPoll implements Conn.
func (c *conn) CanPoll() bool { return true }

// Direct implements Conn.
func (c *conn) Direct() bool { return c.ip }

// LocalAddr implements Conn.
func (c *conn) LocalAddr() netip.AddrPort { return c.local }

// Segments implements Conn.
func (c *conn) Segments() int { return MaxSegments }

// Info implements Conn.
func (c *conn) Info() Info {
	in := Info{GSO: c.gso.Load(), GRO: c.gro}
	c.fdmu.RLock()
	defer c.fdmu.RUnlock()
	in.Drops = c.lost + c.dominant.drops() + c.groDropped.Load()
	if !c.closed {
		in.Drops += dropped(c.fd)
		in.RecvBuffer, _ = unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	}
	return in
}

// Close implements Conn.
func (c *conn) Close() error {
	c.fdmu.Lock()
	if c.closed {
		c.fdmu.Unlock()
		return ErrClosed
	}
	c.closed = true
	c.fdmu.Unlock()
	c.ep.Close() // wakes Read, and waits for it
	c.fdmu.Lock()
	defer c.fdmu.Unlock()
	c.dominant.close()
	c.peerFD.Store(-1)
	for _, p := range c.pollers {
		p.remove(c)
	}
	c.lost = dropped(c.fd)
	if c.guardFD >= 0 {
		unix.Close(c.guardFD)
	}
	return os.NewSyscallError("close", unix.Close(c.fd))
}
