package udpio

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minMTU6 is the MTU that every link has which carries IPv6 (RFC 8200, Section
// 5).
const minMTU6 = 1280

// sendFragments sends a datagram that IP may fragment: without DF on IPv4, where
// routers do it, and cut by this host on IPv6, small enough for any path. No
// control message asks for that, so the options of the socket change for the time
// of one system call. fdmu keeps other goroutines from using it meanwhile: a probe of
// the path MTU must not be fragmented, nor a batch be cut.
func (c *conn) sendFragments(w *writer, b []byte) error {
	w.useSharedSocket()
	w.fill(&w.hdr, &w.iov, b)
	defer func() { w.iov.Base = nil }() // b is the caller's
	c.fdmu.Lock()
	defer c.fdmu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.setDF(false)
	_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&w.hdr)), unix.MSG_DONTWAIT)
	if pendingError(errno) { // of an earlier datagram, this one was too long for example
		c.icmp.due.Store(true)
		_, _, errno = unix.Syscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&w.hdr)), unix.MSG_DONTWAIT)
	}
	c.setDF(true)
	if errno != 0 {
		return os.NewSyscallError("sendmsg", errno)
	}
	return nil
}

// setDF sets DF on every packet, whatever the kernel takes for the path MTU: it is
// discovered by RFC 8899, and a probe may exceed the kernel's value. Without DF packets are
// fragmented. No other goroutine uses the socket meanwhile.
func (c *conn) setDF(on bool) {
	v4, v6, cut := unix.IP_PMTUDISC_PROBE, unix.IPV6_PMTUDISC_PROBE, 0
	if !on {
		v4, v6, cut = unix.IP_PMTUDISC_DONT, unix.IPV6_PMTUDISC_DONT, minMTU6
	}
	if c.v6 {
		_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, v6)
		_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU, cut)
	}
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, v4)
}
