//go:build unix

package process

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketOf makes a connection of a duplicate of the socket fd. Both have one set of flags, which restore
// makes what they were: package net sets O_NONBLOCK.
func socketOf(fd int) (conn net.Conn, restore func(), err error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil, nil, err
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(dup), "socket")
	defer f.Close()
	if conn, err = net.FileConn(f); err != nil {
		return nil, nil, err
	}
	return conn, func() { _, _ = unix.FcntlInt(uintptr(fd), syscall.F_SETFL, flags) }, nil
}
