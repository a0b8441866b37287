package cbinding

import (
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// state is the state of MPI in the process.
var state struct {
	mu         sync.Mutex                // held while the state changes
	phase      atomic.Int32              // of the World model: MPI_Init and MPI_Finalize
	finalizing atomic.Bool               // MPI_Finalize was called
	world      atomic.Pointer[mpi.World] // of MPI_Init; nil before and after
	live       atomic.Int32              // uses of MPI: MPI_Init and sessions that have not ended
	threads    atomic.Int32              // thread level that MPI_Init_thread returned
	rank       atomic.Int32              // in MPI_COMM_WORLD, also of processes with sessions only
	main       atomic.Uint64             // thread that called MPI_Init
}

// Phases of the World model.
const (
	beforeInit = iota
	running
	finalized
)

// theWorld returns the World of MPI_Init, or nil outside of MPI_Init and MPI_Finalize.
func theWorld() *mpi.World { return state.world.Load() }

// notRunning returns the error of calls that need MPI_Init or a session, or nil.
func notRunning() error {
	if state.live.Load() > 0 {
		return nil
	}
	if state.phase.Load() == finalized {
		return &callError{class: abi.ErrOther, text: "called after MPI_Finalize"}
	}
	return &callError{class: abi.ErrOther, text: "called before MPI_Init"}
}

// needWorld returns the World of MPI_Init, or why there is none.
func needWorld() (*mpi.World, error) {
	if w := theWorld(); w != nil {
		return w, nil
	}
	if err := notRunning(); err != nil {
		return nil, err
	}
	return nil, &callError{class: abi.ErrOther, text: "needs MPI_Init, a session is not enough"}
}
