package fileio

import (
	"os"

	"golang.org/x/sys/unix"
)

// advise passes the expected access to the system, which may ignore it.
func advise(f *os.File, h *Hints) {
	advice := unix.FADV_NORMAL
	switch {
	case h.Random:
		advice = unix.FADV_RANDOM
	case h.Seq:
		advice = unix.FADV_SEQUENTIAL
	}
	conn, err := f.SyscallConn()
	if err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), 0, 0, advice) })
	}
}
