package tcp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout ends a connection on which data is not acknowledged for d
// (tcp(7), TCP_USER_TIMEOUT).
func userTimeout(conn *net.TCPConn, d time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return serr
}
