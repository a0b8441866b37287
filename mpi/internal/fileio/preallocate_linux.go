package fileio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// preallocate gives a file room for n bytes.
func preallocate(f *os.File, n int64) error {
	if n == 0 {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno error
	if err := conn.Control(func(fd uintptr) {
		for {
			if errno = unix.Fallocate(int(fd), 0, 0, n); errno != unix.EINTR {
				return
			}
		}
	}); err != nil {
		return err
	}
	if errors.Is(errno, unix.EOPNOTSUPP) || errors.Is(errno, unix.ENOSYS) {
		return lengthen(f, n)
	}
	return errno
}
