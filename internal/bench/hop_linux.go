package bench

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// apart gives the calling goroutine the kth of the processors that this process may
// use, for good.
func apart(k int) {
	runtime.LockOSThread() // the thread ends with the goroutine
	var may, one unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil || may.Count() < 2 {
		return
	}
	for cpu := 0; ; cpu++ {
		if may.IsSet(cpu) {
			if k == 0 {
				one.Set(cpu)
				_ = unix.SchedSetaffinity(0, &one)
				return
			}
			k--
		}
	}
}
