package testenv

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// home is the network of the process. It is asked for at once: later the thread whose
// network counts as that of the process may have another one.
var home, _ = os.Readlink("/proc/self/ns/net")

// OwnNetwork gives the goroutine of a test a network of its own, with nothing but
// loopback: raw sockets see, and other stacks answer, what all others on the host
// send. What the goroutine opens from then on, and the processes that it starts, are
// in it; other goroutines, those of subtests too, are not. It may be called again.
// The test skips where that takes privileges.
func OwnNetwork(t testing.TB) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	here, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		Lacking(t, "no network namespaces: %v", err)
	}
	if home != here {
		return
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		Lacking(t, "no network namespace: %v; run as root", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
}
