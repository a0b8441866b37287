package main

import "syscall"

// childAttr puts a rank in a process group of its own and ends it with us.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
