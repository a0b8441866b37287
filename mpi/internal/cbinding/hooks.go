package cbinding

import "github.com/weftstack/weft/mpi"

// Functions that the chapters have registered in their init functions.
var (
	startHooks []func()           // before MPI is first used in the process: predefined handles
	worldHooks []func(*mpi.World) // MPI_Init has succeeded
	leaveHooks []func()           // MPI_Finalize has been called, all of MPI still works
)

// AtStart registers f to be called once, before the first MPI_Init or MPI_Session_init.
func AtStart(f func()) { startHooks = append(startHooks, f) }

// AtInit registers f to be called by MPI_Init.
func AtInit(f func(*mpi.World)) { worldHooks = append(worldHooks, f) }

// AtFinalize registers f to be called by MPI_Finalize at its beginning, but after the functions of the
// program that attributes of MPI_COMM_SELF call.
func AtFinalize(f func()) { leaveHooks = append(leaveHooks, f) }

// CallStartHooks calls the functions of AtStart once. state.mu is held.
func CallStartHooks() {
	for _, f := range startHooks {
		f()
	}
	startHooks = nil
}

// CallInitHooks calls those of AtInit. state.mu is held.
func CallInitHooks(w *mpi.World) {
	for _, f := range worldHooks {
		f(w)
	}
}

// CallFinalizeHooks calls those of AtFinalize. state.mu is held.
func CallFinalizeHooks() {
	for _, f := range leaveHooks {
		f()
	}
}
