package mpi

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// shmPlace returns a hash that is equal for processes that may share memory: of the running kernel,
// the user, the layout, and the network and process namespaces. Processes in different network
// namespaces use the network, as if they were on different hosts.
func shmPlace() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	names := string(boot[:max(len(boot)-1, 0)])
	for _, ns := range []string{"net", "pid"} {
		name, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return "", err
		}
		names += " " + name
	}
	return fmt.Sprintf("%016x", hashOf(names, fmt.Sprint(os.Geteuid(), shmLayout))), nil
}

// newShmFile makes a memory file (memfd). It has no name, so it is freed with its last user.
func newShmFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("weft-messages", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "weft-messages"), nil
}

// openShmFile opens the file of another process.
func openShmFile(pid, fd int) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), os.O_RDWR, 0)
}

// mapShm sizes a file to n bytes, unless another process has done so, seals the size, and maps it.
func mapShm(f *os.File, n int) (*shmSegment, error) {
	fd := int(f.Fd())
	if err := unix.Ftruncate(fd, int64(n)); err != nil {
		return nil, err
	}
	// Seal the size: an access behind the end of a file that was cut would end a process.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return nil, err
	}
	if err := unix.Fallocate(fd, 0, 0, int64(n)); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	s := &shmSegment{mem: mem}
	runtime.AddCleanup(s, func(b []byte) { _ = unix.Munmap(b) }, mem)
	return s, nil
}

// yieldProcessor yields the processor to other processes.
func yieldProcessor() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// copyVectors are arguments of the system calls below. They escape, so they are pooled.
type copyVectors struct {
	local  [1]unix.Iovec
	remote [aggregatePieces]unix.RemoteIovec
	probe  [shmNonceLen]byte
}

var vectorPool = sync.Pool{New: func() any { return new(copyVectors) }}

// readProcess copies len(b) bytes from the memory of another process.
func readProcess(pid int, addr uint64, b []byte) error {
	return copyProcess(unix.ProcessVMReadv, pid, addr, b)
}

// writeProcess copies b to the memory of another process.
func writeProcess(pid int, addr uint64, b []byte) error {
	return copyProcess(unix.ProcessVMWritev, pid, addr, b)
}

// processHolds reports whether a process has the bytes want at addr.
func processHolds(pid int, addr uint64, want *[shmNonceLen]byte) bool {
	v := vectorPool.Get().(*copyVectors)
	defer vectorPool.Put(v)
	return readProcess(pid, addr, v.probe[:]) == nil && v.probe == *want
}

func copyProcess(call func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error), pid int, addr uint64, b []byte) error {
	v := vectorPool.Get().(*copyVectors)
	defer vectorPool.Put(v)
	for len(b) > 0 {
		v.local[0].Base = &b[0]
		v.local[0].SetLen(len(b))
		v.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
		n, err := call(pid, v.local[:], v.remote[:1], 0)
		if err != nil {
			v.local[0].Base = nil
			return err
		}
		if n <= 0 {
			return io.ErrUnexpectedEOF
		}
		b, addr = b[n:], addr+uint64(n) // a call copies 2 GiB at most
	}
	v.local[0].Base = nil
	return nil
}

// writePieces copies b to up to aggregatePieces places in the memory of another process, relative
// to base, by one system call.
func writePieces(pid int, base uint64, b []byte, pieces []piece) error {
	v := vectorPool.Get().(*copyVectors)
	defer vectorPool.Put(v)
	v.local[0].Base = &b[0]
	v.local[0].SetLen(len(b))
	for i, p := range pieces {
		v.remote[i] = unix.RemoteIovec{Base: uintptr(base) + uintptr(p.off), Len: p.n}
	}
	n, err := unix.ProcessVMWritev(pid, v.local[:], v.remote[:len(pieces)], 0)
	v.local[0].Base = nil
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	return err
}
