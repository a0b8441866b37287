package cbinding

import (
	"context"

	"github.com/weftstack/weft/mpi"
)

// A process joins its job once, but a program may begin a session after the end of all others (MPI-4.1,
// Section 11.3), and sessions may outlive MPI_Finalize. So a process that has had a session leaves its job
// when it exits: after MPI_Finalize, if it has called MPI_Init, and MPI_Session_finalize of all sessions.
// The others leave it in MPI_Finalize.

// leaving is guarded by state.mu.
var leaving struct {
	stays *mpi.Session                // keeps the process in its job; nil: it has had no session
	end   func(context.Context) error // leaves the job
}

// StayUntilExit keeps the process, which has a session, in its job. state.mu is held.
func StayUntilExit() error {
	if leaving.stays != nil {
		return nil
	}
	s, err := mpi.SessionInit(Background, nil)
	if err != nil {
		return err
	}
	leaving.stays = s
	if leaving.end == nil {
		leaving.end = s.Finalize
	}
	AtExit(leave)
	return nil
}

// StaysUntilExit tells whether the process has had a session. state.mu is held.
func StaysUntilExit() bool { return leaving.stays != nil }

// LeaveAtExit makes end what leaves the job. state.mu is held.
func LeaveAtExit(end func(context.Context) error) { leaving.end = end }

// leave leaves the job at the exit of a process that has ended all its uses of MPI; one that has not
// leaves it without a word, so that the launcher calls it failed.
func leave() {
	State.Mu.Lock()
	defer State.Mu.Unlock()
	if State.Live.Load() == 0 && leaving.end != nil {
		_ = leaving.end(Background) // there is nobody left to tell
	}
}
