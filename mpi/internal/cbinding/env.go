package cbinding

import (
	"context"
	"fmt"
	"os"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// background is the context of all calls: those of C block until they are done.
var background = context.Background()

// hooks of the files of this package; registered by their init functions.
var (
	startHooks []func()           // before MPI is first used in the process: predefined handles
	worldHooks []func(*mpi.World) // MPI_Init has succeeded
	leaveHooks []func()           // MPI_Finalize has been called, all of MPI still works
)

// atStart registers f to be called once, before the first MPI_Init or MPI_Session_init.
func atStart(f func()) { startHooks = append(startHooks, f) }

// atInit registers f to be called by MPI_Init.
func atInit(f func(*mpi.World)) { worldHooks = append(worldHooks, f) }

// atFinalize registers f to be called by MPI_Finalize at its beginning, but after the functions of the
// program that attributes of MPI_COMM_SELF call.
func atFinalize(f func()) { leaveHooks = append(leaveHooks, f) }

// start calls the hooks of atStart once. state.mu is held.
func start() {
	for _, f := range startHooks {
		f()
	}
	startHooks = nil
}

// Init is MPI_Init. The arguments of the program are neither read nor changed.
func Init(argc, argv uintptr) int {
	return outside.done("MPI_Init", initialize(abi.ThreadSingle))
}

// InitThread is MPI_Init_thread.
func InitThread(argc, argv uintptr, required int, provided uintptr) int {
	const proc = "MPI_Init_thread"
	if provided == 0 {
		return outside.done(proc, nullError("provided"))
	}
	level := threadLevel(required)
	if err := initialize(level); err != nil {
		return fail(proc, err)
	}
	return fail(proc, setInt(provided, level, false))
}

// threadLevel returns the thread level that a program gets: the one that it requires or, if there is no
// such level, the next higher one or else the highest (MPI-4.1, Section 11.6.2). All are supported.
func threadLevel(required int) int {
	for _, level := range []int{abi.ThreadSingle, abi.ThreadFunneled, abi.ThreadSerialized} {
		if required <= level {
			return level
		}
	}
	return abi.ThreadMultiple
}

func initialize(level int) error {
	state.mu.Lock()
	defer state.mu.Unlock()
	switch state.phase.Load() {
	case running:
		return &callError{class: abi.ErrOther, text: "called twice"}
	case finalized:
		return &callError{class: abi.ErrOther, text: "called after MPI_Finalize"}
	}
	start()
	w, err := mpi.Init(background)
	if err != nil {
		return err
	}
	state.threads.Store(int32(level))
	state.main.Store(ThreadID())
	state.live.Add(1)
	state.world.Store(w)
	state.rank.Store(int32(w.Rank()))
	addComm(abi.CommWorld, "MPI_COMM_WORLD", w.Comm())
	addComm(abi.CommSelf, "MPI_COMM_SELF", w.Self())
	for _, f := range worldHooks {
		f(w)
	}
	state.phase.Store(running)
	CachePhase(running)
	return nil
}

// addComm makes a predefined handle refer to a communicator.
func addComm(h Handle, name string, c *mpi.Comm) {
	c.SetName(name)
	o := &communicator{Comm: c}
	o.handle = h
	if e := outside.handler.Load(); e != nil {
		o.handler.Store(e)
	}
	comms.set(h, o)
	CacheComm(h, c.Rank(), c.Size())
}

// Finalize is MPI_Finalize.
func Finalize() int {
	const proc = "MPI_Finalize"
	self, err := beginFinalize()
	if err != nil {
		return fail(proc, err)
	}
	if err = self.attrs.drop(self.handle); err == nil { // functions of the program, which may call MPI or exit
		err = leaveWorld(self)
	}
	state.finalizing.Store(false)
	if err != nil {
		return self.done(proc, err)
	}
	return 0
}

// beginFinalize returns MPI_COMM_SELF if this is the call that finalizes MPI.
func beginFinalize() (*communicator, error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	switch {
	case state.phase.Load() == beforeInit:
		return nil, &callError{class: abi.ErrOther, text: "called before MPI_Init"}
	case state.phase.Load() == finalized || state.finalizing.Swap(true):
		return nil, &callError{class: abi.ErrOther, text: "called twice"}
	}
	return comms.get(abi.CommSelf), nil
}

// leaveWorld ends the World model. The error handlers of the program are called without its lock.
func leaveWorld(self *communicator) error {
	state.mu.Lock()
	defer state.mu.Unlock()
	for _, f := range leaveHooks {
		f()
	}
	if w := theWorld(); state.live.Load() > 1 {
		leaveAtExit(w.Finalize) // sessions go on
	} else if err := w.Finalize(background); err != nil {
		return err
	}
	state.phase.Store(finalized)
	CachePhase(finalized)
	Uncache(abi.CommWorld)
	Uncache(abi.CommSelf)
	comms.set(abi.CommWorld, nil)
	comms.set(abi.CommSelf, nil)
	outside.handler.Store(self.handler.Load())
	state.world.Store(nil)
	state.live.Add(-1)
	return nil
}

// Initialized is MPI_Initialized.
func Initialized(flag uintptr) int {
	return fail("MPI_Initialized", setFlag(flag, state.phase.Load() != beforeInit))
}

// Finalized is MPI_Finalized.
func Finalized(flag uintptr) int {
	return fail("MPI_Finalized", setFlag(flag, state.phase.Load() == finalized))
}

// QueryThread is MPI_Query_thread.
func QueryThread(provided uintptr) int {
	if err := notRunning(); err != nil {
		return fail("MPI_Query_thread", err)
	}
	return fail("MPI_Query_thread", setInt(provided, int(state.threads.Load()), false))
}

// IsThreadMain is MPI_Is_thread_main.
func IsThreadMain(flag uintptr) int {
	if err := notRunning(); err != nil {
		return fail("MPI_Is_thread_main", err)
	}
	return fail("MPI_Is_thread_main", setFlag(flag, state.main.Load() == ThreadID()))
}

// Abort is MPI_Abort. It does not return.
func Abort(comm Handle, errorcode int) int {
	const proc = "MPI_Abort"
	if err := notRunning(); err != nil {
		return fail(proc, err)
	}
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	text := fmt.Sprintf("%s(%v, %d)", proc, &c.object, errorcode)
	FlushOutput()
	fmt.Fprintf(os.Stderr, "weft [rank %d]: %s\n", c.World().Rank(), text)
	c.Comm.Abort(errorcode, text)
	ExitProcess(errorcode)
	return 0
}

// GetVersion is MPI_Get_version: that of the ABI.
func GetVersion(version, subversion uintptr) int {
	const proc = "MPI_Get_version"
	if err := setInt(version, abi.Version, false); err != nil {
		return fail(proc, err)
	}
	return fail(proc, setInt(subversion, abi.Subversion, false))
}

// GetLibraryVersion is MPI_Get_library_version.
func GetLibraryVersion(version, resultlen uintptr) int {
	return fail("MPI_Get_library_version",
		setStr(version, resultlen, mpi.LibraryVersion(), abi.MaxLibraryVersionString))
}

// GetProcessorName is MPI_Get_processor_name.
func GetProcessorName(name, resultlen uintptr) int {
	const proc = "MPI_Get_processor_name"
	if err := notRunning(); err != nil {
		return fail(proc, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fail(proc, setStr(name, resultlen, host, abi.MaxProcessorName))
}

// Pcontrol is MPI_Pcontrol, which is for tools that replace it: it does nothing.
func Pcontrol(level int) int { return abi.Success }
