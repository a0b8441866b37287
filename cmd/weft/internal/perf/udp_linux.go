package perf

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// udpSocket reads and writes a UDP socket with segmentation offload.
type udpSocket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	gso  bool
	oob  []byte

	// Of tryRead: what it reads to, and what came of it.
	try    func(fd uintptr) bool
	into   []byte
	n      int
	errno  syscall.Errno
	from   unix.RawSockaddrAny
	length uint32
}

// maxSegments is how many datagrams the kernel takes at once.
const maxSegments = 64

func (s *udpSocket) init(conn *net.UDPConn, gso bool) (err error) {
	s.conn, s.gso, s.try = conn, gso, s.recvfrom
	if s.raw, err = conn.SyscallConn(); err != nil || !gso {
		return err
	}
	controlErr := s.raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) })
	if err = errors.Join(err, controlErr); err != nil {
		return os.NewSyscallError("UDP_GRO", err)
	}
	s.oob = make([]byte, unix.CmsgSpace(2))
	return nil
}

// batch returns how many bytes of datagrams of the given size one write takes.
func (s *udpSocket) batch(size int) int {
	if !s.gso {
		return size
	}
	return min(maxSegments, 65507/size) * size
}

// write sends one batch of datagrams from buf.
func (s *udpSocket) write(buf []byte, size int) error {
	if !s.gso {
		_, err := s.conn.Write(buf[:size])
		return err
	}
	oob := s.oob[:unix.CmsgSpace(2)]
	binary.NativeEndian.PutUint64(oob, uint64(unix.CmsgLen(2)))
	binary.NativeEndian.PutUint32(oob[8:], unix.IPPROTO_UDP)
	binary.NativeEndian.PutUint32(oob[12:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(oob[16:], uint16(size))
	_, _, err := s.conn.WriteMsgUDP(buf[:s.batch(size)], oob, nil)
	return err
}

// read reads what one system call gives: a datagram or several joined.
func (s *udpSocket) read(buf []byte) (int, error) { return s.conn.Read(buf) }

// tries is how often tryRead asks the system.
const tries = 16

// tryRead reads a datagram if one comes soon. It spends its time in the system's
// calls: mode udp is what others are compared with.
func (s *udpSocket) tryRead(buf []byte) (int, netip.AddrPort, error) {
	s.into = buf
	if err := s.raw.Read(s.try); err != nil {
		return 0, netip.AddrPort{}, err
	}
	switch s.errno {
	case 0:
		return s.n, addrPort(&s.from), nil
	case unix.EAGAIN:
		return 0, netip.AddrPort{}, errWouldBlock
	}
	return 0, netip.AddrPort{}, os.NewSyscallError("recvfrom", s.errno)
}

// recvfrom asks the socket fd for a datagram.
func (s *udpSocket) recvfrom(fd uintptr) bool {
	for range tries {
		s.length = unix.SizeofSockaddrAny
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.into))),
			uintptr(len(s.into)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&s.from)), uintptr(unsafe.Pointer(&s.length)))
		s.n, s.errno = int(n), errno
		if errno != unix.EAGAIN {
			break
		}
	}
	return true
}

// addrPort returns the address in sa.
func addrPort(sa *unix.RawSockaddrAny) netip.AddrPort {
	switch sa.Addr.Family {
	case unix.AF_INET:
		a := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), hostOrder(a.Port))
	case unix.AF_INET6:
		a := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), hostOrder(a.Port))
	}
	return netip.AddrPort{}
}

// hostOrder returns a port that is in network byte order.
func hostOrder(port uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], port)
	return binary.BigEndian.Uint16(b[:])
}

// tcpControl returns a hook that makes TCP send packets of the given MTU.
func tcpControl(mtu int) func(network, address string, c syscall.RawConn) error {
	if mtu == 0 {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		controlErr := c.Control(func(fd uintptr) {
			// The option of 12 bytes that carries time stamps counts too.
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, mtu-40)
		})
		return errors.Join(err, controlErr)
	}
}
