//go:build unix && !linux

package process

import "syscall"

// ChildAttr puts a rank in a process group of its own.
func ChildAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
