package process

import (
	"fmt"
	"os"
	"syscall"
)

// TermSignal asks a process to end; here nothing milder than a kill exists.
var TermSignal os.Signal = os.Kill

// PassedSignals lists what is passed on to the ranks.
func PassedSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// QuitSignal asks what the ranks wait for; no signal here does.
const QuitSignal = syscall.Signal(-1)

// SignalGroup ends a rank: other signals do not exist here.
func SignalGroup(p *os.Process, _ os.Signal) { p.Kill() }

// ExitStatus returns the exit status and words for it.
func ExitStatus(st *os.ProcessState) (int, string) {
	return st.ExitCode(), fmt.Sprintf("exited with status %d", st.ExitCode())
}

// ChildAttr has nothing to ask for.
func ChildAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
