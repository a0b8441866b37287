//go:build unix

package interop

import "syscall"

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
