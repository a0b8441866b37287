//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// termSignal asks a process to end.
var termSignal os.Signal = syscall.SIGTERM

// passedSignals lists what is passed on to the ranks.
func passedSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// blockedSignal asks what the ranks wait for.
const blockedSignal = syscall.SIGQUIT

// signalGroup signals a rank and everything it started.
func signalGroup(p *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		syscall.Kill(-p.Pid, s)
	}
}

// exitStatus returns the status that a shell would show, and words for it.
func exitStatus(st *os.ProcessState) (int, string) {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), fmt.Sprintf("was killed by signal %d (%v)", ws.Signal(), ws.Signal())
	}
	return st.ExitCode(), fmt.Sprintf("exited with status %d", st.ExitCode())
}
