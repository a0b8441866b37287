//go:build unix

package rma

import "golang.org/x/sys/unix"

// leastTested is how much memory is worth two system calls to find out whether there is room for it, in bytes.
const leastTested = 64 << 20

// Room reports whether the system has n bytes of memory for the process. The Go runtime ends the process if it asks for
// more than that.
func Room(n int) bool {
	if n < leastTested {
		return true
	}
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	return err == nil && unix.Munmap(mem) == nil
}
