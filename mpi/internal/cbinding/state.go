package cbinding

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// State is the state of MPI in the process.
var State struct {
	Mu         sync.Mutex                // held while the state changes
	Phase      atomic.Int32              // of the World model: MPI_Init and MPI_Finalize
	Finalizing atomic.Bool               // MPI_Finalize was called
	World      atomic.Pointer[mpi.World] // of MPI_Init; nil before and after
	Live       atomic.Int32              // uses of MPI: MPI_Init and sessions that have not ended
	Threads    atomic.Int32              // thread level that MPI_Init_thread returned
	Rank       atomic.Int32              // in MPI_COMM_WORLD, also of processes with sessions only
	Main       atomic.Uint64             // thread that called MPI_Init
}

// Phases of the World model.
const (
	BeforeInit = iota
	Running
	Finalized
)

// TheWorld returns the World of MPI_Init, or nil outside of MPI_Init and MPI_Finalize.
func TheWorld() *mpi.World { return State.World.Load() }

// NotRunning returns the error of calls that need MPI_Init or a session, or nil.
func NotRunning() error {
	if State.Live.Load() > 0 {
		return nil
	}
	if State.Phase.Load() == Finalized {
		return &CallError{Class: abi.ErrOther, Text: "called after MPI_Finalize"}
	}
	return &CallError{Class: abi.ErrOther, Text: "called before MPI_Init"}
}

// NeedWorld returns the World of MPI_Init, or that of a communicator of a session, or why there is none.
func NeedWorld() (*mpi.World, error) {
	c, err := AnyComm()
	if err != nil {
		return nil, err
	}
	return c.World(), nil
}

// Background is the context of all calls: those of C block until they are done.
var Background = context.Background()

// ThreadLevel returns the thread level that a program gets: the one that it requires or, if there is no
// such level, the next higher one or else the highest (MPI-4.1, Section 11.6.2). All are supported.
func ThreadLevel(required int) int {
	for _, level := range []int{abi.ThreadSingle, abi.ThreadFunneled, abi.ThreadSerialized} {
		if required <= level {
			return level
		}
	}
	return abi.ThreadMultiple
}
