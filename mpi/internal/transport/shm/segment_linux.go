package shm

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/weftstack/weft/mpi/internal/hashid"
)

// hostPlace returns a hash that is equal for processes that may share memory: of the running kernel,
// the user, the layout, and the network and process namespaces. Processes in different network
// namespaces use the network, as if they were on different hosts.
func hostPlace() (string, error) {
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
	return fmt.Sprintf("%016x", hashid.Of(names, fmt.Sprint(os.Geteuid(), layoutVersion))), nil
}

// newFile makes a memory file (memfd). It has no name, so it is freed with its last user.
func newFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("weft-messages", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "weft-messages"), nil
}

// openFile opens the file of another process.
func openFile(pid, fd int) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), os.O_RDWR, 0)
}

// mapFile sizes a file to n bytes, unless another process has done so, seals the size, and maps it.
func mapFile(f *os.File, n int) (*mapping, error) {
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
	s := &mapping{mem: mem}
	runtime.AddCleanup(s, func(b []byte) { _ = unix.Munmap(b) }, mem)
	return s, nil
}
