package main

import (
	"fmt"
	"os"
	"syscall"
)

// termSignal asks a process to end; here nothing milder than a kill exists.
var termSignal os.Signal = os.Kill

// passedSignals lists what is passed on to the ranks.
func passedSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// blockedSignal asks what the ranks wait for; no signal here does.
const blockedSignal = syscall.Signal(-1)

// signalGroup ends a rank: other signals do not exist here.
func signalGroup(p *os.Process, _ os.Signal) { p.Kill() }

// exitStatus returns the exit status and words for it.
func exitStatus(st *os.ProcessState) (int, string) {
	return st.ExitCode(), fmt.Sprintf("exited with status %d", st.ExitCode())
}

// childAttr has nothing to ask for.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
