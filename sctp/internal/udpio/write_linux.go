package udpio

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// writer is the state of one Write; a Conn keeps a few of them.
type writer struct {
	hdr  unix.Msghdr
	iov  unix.Iovec
	name unix.RawSockaddrInet6
	ctl  [controlSize]byte
	nctl int // bytes of ctl in use
	to   *peerSocket

	// For sending a batch of which parts are elsewhere.
	parts [2*MaxIOVecs + 1]unix.Iovec

	// For sending a batch datagram by datagram.
	msgs [MaxSegments]mmsghdr
	iovs [MaxSegments]unix.Iovec
}

// Write implements Conn.
func (c *conn) Write(b []byte, m *Meta) error {
	if len(b) == 0 {
		return nil
	}
	seg := m.SegSize
	if seg <= 0 || seg > len(b) {
		seg = len(b)
	}
	if len(b) > MaxBatchBytes || (len(b)+seg-1)/seg > MaxSegments {
		return errTooLong
	}
	if c.caller == nil && !c.reaches(m.Remote.Addr()) {
		return errFamily
	}
	w := c.writers.Get().(*writer)
	err := c.write(w, b, seg, m)
	c.writers.Put(w)
	return err
}

// WriteGather implements Conn.
func (c *conn) WriteGather(b []byte, holes []slab.IOVec, m *Meta) error {
	if c.caller == nil && !c.reaches(m.Remote.Addr()) {
		return errFamily
	}
	n := (len(b) + max(m.SegSize, 1) - 1) / max(m.SegSize, 1)
	one := m.SegSize <= 0 || n == 1
	if len(holes) == 0 || len(holes) > MaxIOVecs || m.Fragment || len(b) > MaxBatchBytes ||
		!one && (n > MaxSegments || !c.gso.Load() || c.uneven && len(b)%m.SegSize == 0) {
		slab.Fill(b, holes)
		return c.Write(b, m)
	}
	w := c.writers.Get().(*writer)
	w.address(c, m)
	if !one {
		binary.NativeEndian.PutUint16(w.cmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2), uint16(m.SegSize))
	}
	err := c.sendParts(w, w.gather(b, holes))
	c.writers.Put(w)
	if !one && (errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL)) {
		slab.Fill(b, holes)
		return c.Write(b, m) // which knows what to do about it
	}
	return err
}

// errFamily is returned for a peer of a family that the socket does not have.
var errFamily = errors.New("udpio: address of another family than the socket's")

// reaches reports whether the socket has the family of ip. One of IPv6 has both, unless
// it is of SCTP over IP: the kernel takes an IPv4 address then, and sends to none.
func (c *conn) reaches(ip netip.Addr) bool {
	if v4 := ip.Is4() || ip.Is4In6(); c.v6 {
		return !v4 || !c.ip
	} else {
		return v4
	}
}

// gather lists the parts of a batch and returns how many there are.
func (w *writer) gather(b []byte, holes []slab.IOVec) (n int) {
	from := 0
	for i := range holes {
		h := &holes[i]
		if h.At > from {
			w.parts[n].Base = &b[from]
			w.parts[n].SetLen(h.At - from)
			n++
		}
		w.parts[n].Base = &h.B[0]
		w.parts[n].SetLen(len(h.B))
		n++
		from = h.At + len(h.B)
	}
	if from < len(b) {
		w.parts[n].Base = &b[from]
		w.parts[n].SetLen(len(b) - from)
		n++
	}
	return n
}

// sendParts sends the n parts that w lists, as one datagram or as the control
// messages say.
func (c *conn) sendParts(w *writer, n int) error {
	h := &w.hdr
	h.Iov = &w.parts[0]
	h.SetIovlen(n)
	h.Control = nil
	if w.nctl > 0 {
		h.Control = &w.ctl[0]
	}
	h.SetControllen(w.nctl)
	err := c.call(w, func(fd uintptr) (int, unix.Errno) {
		_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(h)), unix.MSG_DONTWAIT)
		return 1, errno
	}, "sendmsg")
	clear(w.parts[:n]) // they are the caller's
	return err
}

func (c *conn) write(w *writer, b []byte, seg int, m *Meta) error {
	w.address(c, m)
	if m.Fragment && c.caller == nil {
		return c.sendFragments(w, b)
	}
	if len(b) <= seg {
		if w.nctl == 0 {
			return c.sendto(w, b)
		}
		return c.sendmsg(w, b)
	}
	if !c.gso.Load() || c.uneven && len(b)%seg == 0 {
		return c.sendEach(w, b, seg)
	}
	plain := w.nctl
	binary.NativeEndian.PutUint16(w.cmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2), uint16(seg))
	err := c.sendmsg(w, b)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) {
		// EIO: the device cannot checksum for us. EINVAL: it cannot segment,
		// or, where newer kernels say EMSGSIZE, a datagram exceeds its MTU; then
		// the single ones fail as well and the socket keeps its offload.
		w.nctl = plain
		if err = c.sendEach(w, b, seg); err == nil {
			c.gso.Store(false)
		}
	}
	return err
}

// address sets the name and the control messages that a datagram needs.
func (w *writer) address(c *conn, m *Meta) {
	w.nctl = 0
	if c.caller != nil { // it has one peer
		w.hdr.Name, w.hdr.Namelen, w.to = nil, 0, nil
		return
	}
	ip, port := m.Remote.Addr(), m.Remote.Port()
	v4 := ip.Is4() || ip.Is4In6()
	if c.v6 {
		w.hdr.Namelen = unix.SizeofSockaddrInet6
		w.name.Family = unix.AF_INET6
		w.name.Port = htons(port)
		w.name.Addr = ip.As16()
		w.name.Scope_id = c.zone.idOf(ip)
	} else {
		w.hdr.Namelen = unix.SizeofSockaddrInet4
		n := (*unix.RawSockaddrInet4)(unsafe.Pointer(&w.name))
		n.Family = unix.AF_INET
		n.Port = htons(port)
		n.Addr = ip.Unmap().As4()
	}
	w.hdr.Name = (*byte)(unsafe.Pointer(&w.name))
	if w.to = c.dominant.to.Load(); w.to != nil && w.to.remote != m.Remote {
		w.to = nil
	}
	if tos := m.DSCP<<2 | m.ECN; tos != c.ecn {
		level, typ := unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		if v4 {
			level, typ = unix.IPPROTO_IP, unix.IP_TOS
		}
		binary.NativeEndian.PutUint32(w.cmsg(level, typ, 4), uint32(tos))
	}
	if c.wild && m.Local.IsValid() && !m.Local.IsUnspecified() {
		if v4 {
			d := w.cmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
			src := m.Local.Unmap().As4()
			copy(d[4:8], src[:]) // ipi_spec_dst
		} else {
			d := w.cmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
			src := m.Local.As16()
			copy(d, src[:])
			binary.NativeEndian.PutUint32(d[16:], c.zone.idOf(m.Local))
		}
	}
}

// cmsg appends a control message of n zero bytes and returns these.
func (w *writer) cmsg(level, typ, n int) []byte {
	b := w.ctl[w.nctl : w.nctl+unix.CmsgSpace(n)]
	clear(b)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = int32(level), int32(typ)
	h.SetLen(unix.CmsgLen(n))
	w.nctl += len(b)
	return b[unix.CmsgLen(0):unix.CmsgLen(n)]
}

// fill completes a message header for one buffer.
func (w *writer) fill(h *unix.Msghdr, iov *unix.Iovec, b []byte) {
	iov.Base = &b[0]
	iov.SetLen(len(b))
	h.Iov = iov
	h.SetIovlen(1)
	h.Control = nil
	if w.nctl > 0 {
		h.Control = &w.ctl[0]
	}
	h.SetControllen(w.nctl)
}

// sendto sends one datagram without control messages: the kernel has less to copy
// and to check than with sendmsg. It takes microseconds, so the runtime's scheduler is not
// told of the call (RawSyscall).
func (c *conn) sendto(w *writer, b []byte) error {
	return c.call(w, func(fd uintptr) (int, unix.Errno) {
		// Without a name its length means nothing.
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(w.hdr.Name)), uintptr(w.hdr.Namelen))
		return 1, errno
	}, "sendto")
}

// sendmsg sends one datagram or batch. The runtime's scheduler is not told of the call here
// either. It takes 10 to 35 µs, and while the scheduler knows of calls of more than 20 µs the
// runtime's monitor wakes up thousands of times a second and takes the processor from the
// sender.
func (c *conn) sendmsg(w *writer, b []byte) error {
	w.fill(&w.hdr, &w.iov, b)
	err := c.call(w, func(fd uintptr) (int, unix.Errno) {
		_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&w.hdr)), unix.MSG_DONTWAIT)
		return 1, errno
	}, "sendmsg")
	w.iov.Base = nil // b is the caller's
	return err
}

// sendEach sends a batch datagram by datagram with sendmmsg. A refused
// datagram does not keep the later ones back; the first error is returned.
func (c *conn) sendEach(w *writer, b []byte, seg int) error {
	n := 0
	w.useSharedSocket()
	for len(b) > 0 {
		h := &w.msgs[n].hdr
		h.Name, h.Namelen = w.hdr.Name, w.hdr.Namelen
		d := b[:min(seg, len(b))]
		w.fill(h, &w.iovs[n], d)
		b = b[len(d):]
		n++
	}
	var first error
	for i := 0; i < n; {
		sent := 0
		err := c.call(w, func(fd uintptr) (int, unix.Errno) {
			r, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&w.msgs[i])), uintptr(n-i),
				unix.MSG_DONTWAIT, 0, 0)
			sent = int(r)
			return sent, errno
		}, "sendmmsg")
		if err != nil {
			if first == nil {
				first = err
			}
			if errors.Is(err, ErrClosed) {
				break
			}
			sent = 1
		}
		i += sent
	}
	for i := range n {
		w.iovs[i].Base = nil
	}
	return first
}

// call makes a system call on the socket for what w has, again after EINTR and,
// once there is room in the socket buffer, after EAGAIN.
func (c *conn) call(w *writer, f func(fd uintptr) (int, unix.Errno), name string) error {
	if c.caller != nil {
		if err := c.mayWrite(); err != nil {
			return err
		}
	}
	refused := 0
	for pending := false; ; {
		c.fdmu.RLock()
		if c.closed {
			c.fdmu.RUnlock()
			return ErrClosed
		}
		fd := c.fd
		if w.to != nil {
			fd = w.usePeerSocket(c)
		}
		_, errno := f(uintptr(fd))
		if errno == unix.EAGAIN && c.caller == nil {
			p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			_, _ = unix.Poll(p[:], writePoll)
		}
		c.fdmu.RUnlock()
		if errno == unix.EAGAIN && c.caller != nil {
			if err := c.waitToWrite(fd); err != nil {
				return err
			}
		}
		switch errno {
		case 0:
			return nil
		case unix.EAGAIN, unix.EINTR:
			continue
		case unix.ECONNREFUSED, unix.EHOSTUNREACH: // of an earlier datagram, or of the route
			c.icmp.due.Store(true)
			if refused++; refused < maxRefused {
				continue
			}
			return os.NewSyscallError(name, errno)
		default:
			if !pending && pendingError(errno) {
				pending = true
				c.icmp.due.Store(true)
				continue // it may be of an earlier one
			}
			return os.NewSyscallError(name, errno)
		}
	}
}

// maxRefused is how many ICMP messages about earlier datagrams one Write puts up
// with; the error of a route that says that hosts are unreachable comes every time.
const maxRefused = 64

// writePoll is how many milliseconds one wait for room in the socket buffer
// lasts before Write looks whether the socket was closed.
const writePoll = 100

// htons returns p as it sits in memory in network order.
func htons(p uint16) uint16 { return ntohs(p) }
