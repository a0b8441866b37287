package process

import "syscall"

// ChildAttr puts a rank in a process group of its own and ends it with us.
func ChildAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
