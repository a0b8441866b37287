//go:build !linux

package perf

import (
	"net"
	"net/netip"
	"syscall"
	"time"
)

// udpSocket reads and writes one datagram at a time.
type udpSocket struct{ conn *net.UDPConn }

func (s *udpSocket) init(conn *net.UDPConn, _ bool) error {
	s.conn = conn
	return nil
}

// batch returns how many bytes one write takes.
func (s *udpSocket) batch(size int) int { return size }

func (s *udpSocket) write(buf []byte, size int) error {
	_, err := s.conn.Write(buf[:size])
	return err
}

func (s *udpSocket) read(buf []byte) (int, error) { return s.conn.Read(buf) }

// tryRead reads a datagram if there is one.
func (s *udpSocket) tryRead(buf []byte) (int, netip.AddrPort, error) {
	s.conn.SetReadDeadline(time.Now().Add(time.Microsecond))
	defer s.conn.SetReadDeadline(time.Time{})
	n, from, err := s.conn.ReadFromUDPAddrPort(buf)
	if isTimeout(err) {
		return 0, from, errWouldBlock
	}
	return n, from, err
}

// tcpControl has no way to choose the packet size here.
func tcpControl(int) func(network, address string, c syscall.RawConn) error { return nil }
