//go:build unix

package process

import (
	"fmt"
	"os"
	"syscall"
)

// TermSignal asks a process to end.
var TermSignal os.Signal = syscall.SIGTERM

// PassedSignals lists what is passed on to the ranks.
func PassedSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// QuitSignal asks what the ranks wait for.
const QuitSignal = syscall.SIGQUIT

// SignalGroup signals a rank and everything it started.
func SignalGroup(p *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		syscall.Kill(-p.Pid, s)
	}
}

// ExitStatus returns the status that a shell would show, and words for it.
func ExitStatus(st *os.ProcessState) (int, string) {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), fmt.Sprintf("was killed by signal %d (%v)", ws.Signal(), ws.Signal())
	}
	return st.ExitCode(), fmt.Sprintf("exited with status %d", st.ExitCode())
}
