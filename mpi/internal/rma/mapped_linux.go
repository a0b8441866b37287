//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64

package rma

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// newHostBytes returns n new bytes that begin at a multiple of align, and the memory file (memfd)
// that holds them, which other processes map, for writing only if writable is set. The bytes belong
// to an object of the Go heap with pages of the file mapped over it, and are collected like any
// other. So a program may keep the memory of a window after Free, and the collector counts it.
func newHostBytes(n, align int, writable bool) (mem []byte, f *os.File, err error) {
	page := os.Getpagesize()
	size := (n + page - 1) &^ (page - 1)
	fd, err := unix.MemfdCreate("weft-window", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, err
	}
	f = os.NewFile(uintptr(fd), "weft-window")
	if err = unix.Ftruncate(fd, int64(size)); err == nil && strictMemory() {
		// Reserve the memory now: running out of it later would end the program.
		err = unix.Fallocate(fd, 0, 0, int64(size))
	}
	if err == nil {
		mem, err = mapOver(f, size, max(align, page))
	}
	if err == nil {
		// Seal the size: an access behind the end of a file that was cut would end a process.
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	if !writable { // other processes cannot write, if Linux supports this seal
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE)
	}
	return mem[:n:n], f, nil
}

// strictMemory reports whether the system refuses to allocate memory that it does not have, instead
// of ending a process when there is none left.
var strictMemory = sync.OnceValue(func() bool {
	b, _ := os.ReadFile("/proc/sys/vm/overcommit_memory")
	return strings.TrimSpace(string(b)) == "2"
})

// mapOver allocates memory of whole pages and maps those of a file in their place. The collector
// does not scan memory without pointers, nor move it, and whole pages within an object belong to no
// other object. A finalizer runs while the object still exists, so it can map fresh pages before
// the memory is reused.
func mapOver(f *os.File, size, align int) ([]byte, error) {
	words := make([]uint64, (size+align)/8)
	base := unsafe.Pointer(&words[0])
	skip := 0
	if over := int(uintptr(base) % uintptr(align)); over > 0 {
		skip = align - over
	}
	at := unsafe.Add(base, skip)
	if err := mapAt(at, size, unix.MAP_SHARED, int(f.Fd())); err != nil {
		unmapOver(&words[0], skip, size) // what failed may have taken pages away
		return nil, fmt.Errorf("mpi: mapping a window: %w", err)
	}
	runtime.SetFinalizer(&words[0], func(base *uint64) { unmapOver(base, skip, size) })
	return unsafe.Slice((*byte)(at), size), nil
}

// lostMemory keeps memory that could not get fresh pages again and must not be reused.
var lostMemory struct {
	sync.Mutex
	bases []*uint64
}

// unmapOver undoes mapOver.
func unmapOver(base *uint64, skip, size int) {
	if mapAt(unsafe.Add(unsafe.Pointer(base), skip), size, unix.MAP_PRIVATE|unix.MAP_ANON, -1) != nil {
		lostMemory.Lock()
		lostMemory.bases = append(lostMemory.bases, base)
		lostMemory.Unlock()
	}
}

// mapAt maps a file from its beginning, or fresh pages, in the place of others. Package unix has no
// such function that passes checkptr: its result would be a pointer.
func mapAt(at unsafe.Pointer, size, flags, fd int) error {
	_, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(at), uintptr(size),
		unix.PROT_READ|unix.PROT_WRITE, uintptr(flags|unix.MAP_FIXED), uintptr(fd), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// fileID returns the inode number of a file, which tells it from other memory files of the host.
func fileID(f *os.File) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return st.Ino, err
}

// mapHostBytes maps the file of another process that newHostBytes made, for writing if writable is
// set. Before that it checks that the file has the given identity and cannot become shorter than n.
func mapHostBytes(pid, fd int, id uint64, n int, writable bool) ([]byte, error) {
	mode, prot := os.O_RDONLY, unix.PROT_READ
	if writable {
		mode, prot = os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), mode|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, err
	}
	if st.Ino != id || st.Size < int64(n) || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, fmt.Errorf("%w: not the memory of the window", mpierr.ErrWindow)
	}
	return unix.Mmap(int(f.Fd()), 0, n, prot, unix.MAP_SHARED)
}

func unmapHostBytes(b []byte) { _ = unix.Munmap(b) }
