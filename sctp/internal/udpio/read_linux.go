package udpio

import (
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// controlSize holds every control message asked for: GRO size, TOS or traffic
// class, packet info.
const controlSize = 160

// reader is the state of the reading side, guarded by the locker given to
// Read.
type reader struct {
	msgs  [MaxMessages]mmsghdr
	iovs  [MaxMessages]unix.Iovec
	names [MaxMessages]unix.RawSockaddrInet6
	ctls  [MaxMessages][controlSize]byte

	// Arguments and results of the Read in progress: its closure is made once.
	mu    sync.Locker
	bufs  []*slab.Buf
	metas []Meta
	n     int
	err   error
	try   func(uintptr) bool
}

func (r *reader) init(c *conn) {
	for i := range r.msgs {
		h := &r.msgs[i].hdr
		h.Iov = &r.iovs[i]
		h.SetIovlen(1)
		h.Control = &r.ctls[i][0]
	}
	r.try = func(uintptr) bool {
		if c.polled.Load() {
			return false
		}
		r.mu.Lock()
		r.n, r.err = c.TryRead(r.bufs, r.metas)
		if r.n > 0 {
			return true
		}
		r.mu.Unlock()
		return r.err != nil
	}
}

// Read implements Conn.
func (c *conn) Read(mu sync.Locker, bufs []*slab.Buf, metas []Meta) (int, error) {
	r := &c.rd
	r.mu, r.bufs, r.metas = mu, bufs, metas
	if err := c.epRaw.Read(r.try); err != nil {
		if c.caller == nil {
			err = ErrClosed
		}
		return 0, err
	}
	return r.n, r.err
}

// TryRead implements Conn.
func (c *conn) TryRead(bufs []*slab.Buf, metas []Meta) (int, error) {
	return c.read(bufs, metas, false)
}

// Poll implements Conn.
func (c *conn) Poll(bufs []*slab.Buf, metas []Meta) (int, error) {
	return c.read(bufs, metas, true)
}

// source is a socket that is read: the shared one or that of the dominant peer.
type source struct {
	fd   int
	more int // how many GRO batches beyond one the next system call asks for
	groSwitch

	// Of a connected socket.
	remote    netip.AddrPort
	connected bool // it still is
	only      bool // all that is there to read came since it was connected
	onHost    bool // the peer is on this host
	dataOnly  int  // datagrams since the last read with control messages
}

// maxDataOnly is how many datagrams in a row are read without control messages, at most: a
// sixteenth of the datagrams still tells of ECN marks.
const maxDataOnly = 15

// readsDataOnly reports whether the next datagram is read without sender and control
// messages, which takes two thirds of the time. The sender is known, because the socket is
// connected; the datagram is alone, because GRO is off; and ECN marks are rare between two
// sockets of a host, where a queue that marks one datagram marks more.
func (s *source) readsDataOnly() bool {
	return s.onHost && s.only && !s.on && s.dataOnly < maxDataOnly && !lateRecvfrom
}

// lateRecvfrom is true on the systems on which recvfrom is a system call only since Linux 4.3.
const lateRecvfrom = runtime.GOARCH == "386" || runtime.GOARCH == "s390x"

// readFrom reads s. It asks for one GRO batch while no more than one is there, and for
// about twice as many as before while reads are full: looking for one more batch costs the
// kernel as much as a poll that finds nothing.
func (c *conn) readFrom(s *source, bufs []*slab.Buf, metas []Meta) (int, error) {
	r := &c.rd
	for {
		want := min(len(bufs), len(metas), s.more+1)
		dataOnly := want == 1 && s.readsDataOnly()
		r.ask(s, bufs[:want])
		c.fdmu.RLock()
		if c.closed {
			c.fdmu.RUnlock()
			return 0, ErrClosed
		}
		n, errno := r.receive(s.fd, want, dataOnly)
		c.fdmu.RUnlock()
		switch errno {
		case 0:
			for i := range n {
				c.decode(s, i, bufs[i], &metas[i])
			}
			if dataOnly {
				s.dataOnly++
			} else {
				s.dataOnly = 0
			}
			if n == want {
				s.more = min(2*s.more+1, MaxMessages-1)
			} else {
				s.more = n - 1
			}
			c.noteSenders(metas[:n])
			if s.able && s.noteSizes(bufs[:n]) {
				c.groDropped.Add(uint64(n))
				continue
			}
			return n, nil
		case unix.EAGAIN:
			s.more, s.maybeMerged = 0, false
			s.only = s.connected
			if c.icmp.due.Load() {
				c.readICMP()
			}
			return 0, nil
		case unix.EINTR:
			continue
		default:
			if c.caller == nil && pendingError(errno) {
				c.readICMP()
				continue
			}
			return 0, os.NewSyscallError("recvmmsg", errno)
		}
	}
}

// ask prepares for a system call that reads s.
func (r *reader) ask(s *source, bufs []*slab.Buf) {
	for i, buf := range bufs {
		buf.B = buf.B[:slab.Size]
		r.iovs[i].Base = &buf.B[0]
		r.iovs[i].SetLen(slab.Size)
		h := &r.msgs[i].hdr
		if h.Name, h.Namelen = nil, 0; !s.only {
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&r.names[i])), unix.SizeofSockaddrInet6
		}
		h.SetControllen(controlSize)
		h.Flags = 0
	}
}

// receive makes the system call, for up to want GRO batches, or for one datagram without
// control messages. It copies 512 KiB at most, which takes tens of microseconds, so the
// runtime's scheduler is not told of it (RawSyscall): each call of which it is told, even one
// that finds nothing, wakes the runtime's monitor thread in a process that was idle before, and
// so costs a message that comes alone a second wake-up.
func (r *reader) receive(fd, want int, dataOnly bool) (int, unix.Errno) {
	if dataOnly {
		m := &r.msgs[0]
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(m.hdr.Iov.Base)), slab.Size,
			unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		m.n = uint32(n)
		m.hdr.SetControllen(0)
		return 1, 0
	}
	if want == 1 {
		m := &r.msgs[0]
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.hdr)), unix.MSG_DONTWAIT)
		if errno != 0 {
			return 0, errno
		}
		m.n = uint32(n)
		return 1, 0
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msgs[0])), uintptr(want),
		unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// decode fills in the Meta of GRO batch i, which was read from s, from its sender and control
// messages.
func (c *conn) decode(s *source, i int, buf *slab.Buf, m *Meta) {
	r := &c.rd
	h := &r.msgs[i].hdr
	n := int(r.msgs[i].n)
	buf.B = buf.B[:n]
	if c.ip && !c.v6 {
		// The buffer begins where it did, for the next read to have all of it.
		n = copy(buf.B, payload4(buf.B))
		buf.B = buf.B[:n]
	}
	*m = Meta{SegSize: n}
	if !c.wild {
		m.Local = c.local.Addr()
	}
	name := &r.names[i]
	if s.only {
		m.Remote = s.remote
	} else if name.Family == unix.AF_INET {
		p := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		m.Remote = netip.AddrPortFrom(netip.AddrFrom4(p.Addr), ntohs(p.Port))
	} else {
		ip := netip.AddrFrom16(name.Addr).Unmap()
		if name.Scope_id != 0 {
			ip = ip.WithZone(c.zone.name(name.Scope_id))
		}
		m.Remote = netip.AddrPortFrom(ip, ntohs(name.Port))
	}
	ctl := r.ctls[i][:min(int(h.Controllen), controlSize)]
	for len(ctl) >= unix.SizeofCmsghdr {
		ch := (*unix.Cmsghdr)(unsafe.Pointer(&ctl[0]))
		l := int(ch.Len)
		if l < unix.CmsgLen(0) || l > len(ctl) {
			break
		}
		c.control(int(ch.Level), int(ch.Type), ctl[unix.CmsgLen(0):l], m)
		ctl = ctl[min(unix.CmsgSpace(l-unix.CmsgLen(0)), len(ctl)):]
	}
}

func (c *conn) control(level, typ int, data []byte, m *Meta) {
	switch {
	case level == unix.IPPROTO_UDP && typ == unix.UDP_GRO && len(data) >= 4:
		if s := int(int32(binary.NativeEndian.Uint32(data))); s > 0 {
			m.SegSize = s
		}
	case level == unix.IPPROTO_IP && typ == unix.IP_TOS && len(data) >= 1:
		m.ECN = data[0] & 3
	case level == unix.IPPROTO_IPV6 && typ == unix.IPV6_TCLASS && len(data) >= 4:
		m.ECN = uint8(binary.NativeEndian.Uint32(data)) & 3
	case level == unix.IPPROTO_IP && typ == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		m.Local = netip.AddrFrom4([4]byte(data[8:12])) // ipi_addr, after ipi_ifindex and ipi_spec_dst
	case level == unix.IPPROTO_IPV6 && typ == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		m.Local = netip.AddrFrom16([16]byte(data[:16])).Unmap()
		if m.Local.IsLinkLocalUnicast() && m.Local.Is6() {
			m.Local = m.Local.WithZone(c.zone.name(binary.NativeEndian.Uint32(data[16:])))
		}
	}
}

// ntohs reads a port that sits in memory in network order.
func ntohs(p uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&p))
	return binary.BigEndian.Uint16(b[:])
}
