package mpi

import (
	"os"

	"golang.org/x/sys/unix"
)

// advise tells the system how a file is used. It may not care.
func advise(f *os.File, h *fileHints) {
	advice := unix.FADV_NORMAL
	switch {
	case h.random:
		advice = unix.FADV_RANDOM
	case h.seq:
		advice = unix.FADV_SEQUENTIAL
	}
	conn, err := f.SyscallConn()
	if err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), 0, 0, advice) })
	}
}
