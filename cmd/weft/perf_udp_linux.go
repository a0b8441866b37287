package main

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// udpSocket reads and writes a UDP socket with segmentation offload.
type udpSocket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	gso  bool
	oob  []byte
}

// maxSegments is how many datagrams the kernel takes at once.
const maxSegments = 64

func (s *udpSocket) init(conn *net.UDPConn, gso bool) (err error) {
	s.conn, s.gso = conn, gso
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

// tryRead reads a datagram if there is one.
func (s *udpSocket) tryRead(buf []byte) (n int, from netip.AddrPort, err error) {
	var sa unix.Sockaddr
	controlErr := s.raw.Read(func(fd uintptr) bool {
		n, sa, err = unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
		return true
	})
	switch {
	case controlErr != nil:
		return 0, from, controlErr
	case errors.Is(err, unix.EAGAIN):
		return 0, from, errWouldBlock
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		from = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		from = netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return n, from, err
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
