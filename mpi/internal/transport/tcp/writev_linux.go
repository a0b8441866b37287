//go:build !race

package tcp

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vector is the argument of writev(2): unix.Writev allocates one for each call.
type vector struct {
	iov  [maxRuns]unix.Iovec
	used int // entries that refer to memory
}

// writev is writev(2). bufs has at most maxRuns.
func (v *vector) writev(fd int, bufs [][]byte) (int, error) {
	for i, b := range bufs {
		v.iov[i].Base = unsafe.SliceData(b)
		v.iov[i].SetLen(len(b))
	}
	v.used = max(v.used, len(bufs))
	n, _, errno := unix.Syscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&v.iov)), uintptr(len(bufs)))
	runtime.KeepAlive(bufs)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// forget clears what the last calls have referred to.
func (d *direct) forget() {
	clear(d.iov[:d.used])
	clear(d.bufs[:d.used])
	d.used = 0
}
