//go:build unix

package ddpmpa

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// emss returns the effective maximum segment size of a TCP connection.
func emss(c Conn) int {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return defaultEMSS
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return defaultEMSS
	}
	n := 0
	err = rc.Control(func(fd uintptr) { n, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) })
	if err != nil || n <= 0 {
		return defaultEMSS
	}
	return n
}
