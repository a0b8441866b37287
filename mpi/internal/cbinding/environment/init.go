package environment

import (
	"fmt"
	"os"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Init is MPI_Init. The arguments of the program are neither read nor changed.
func Init(argc, argv uintptr) int {
	return cbinding.Outside.Done("MPI_Init", initialize(abi.ThreadSingle))
}

// InitThread is MPI_Init_thread.
func InitThread(argc, argv uintptr, required int, provided uintptr) int {
	const proc = "MPI_Init_thread"
	if provided == 0 {
		return cbinding.Outside.Done(proc, cbinding.NullError("provided"))
	}
	level := cbinding.ThreadLevel(required)
	if err := initialize(level); err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetInt(provided, level, false))
}

func initialize(level int) error {
	cbinding.State.Mu.Lock()
	defer cbinding.State.Mu.Unlock()
	switch cbinding.State.Phase.Load() {
	case cbinding.Running:
		return &cbinding.CallError{Class: abi.ErrOther, Text: "called twice"}
	case cbinding.Finalized:
		return &cbinding.CallError{Class: abi.ErrOther, Text: "called after MPI_Finalize"}
	}
	cbinding.CallStartHooks()
	w, err := mpi.Init(cbinding.Background)
	if err != nil {
		return err
	}
	cbinding.State.Threads.Store(int32(level))
	cbinding.State.Main.Store(cbinding.ThreadID())
	cbinding.State.Live.Add(1)
	cbinding.State.World.Store(w)
	cbinding.State.Rank.Store(int32(w.Rank()))
	addComm(abi.CommWorld, "MPI_COMM_WORLD", w.Comm())
	addComm(abi.CommSelf, "MPI_COMM_SELF", w.Self())
	cbinding.CallInitHooks(w)
	cbinding.State.Phase.Store(cbinding.Running)
	cbinding.CachePhase(cbinding.Running)
	return nil
}

// addComm makes a predefined handle refer to a communicator.
func addComm(h abi.Handle, name string, c *mpi.Comm) {
	c.SetName(name)
	o := &cbinding.Communicator{Comm: c}
	o.Handle = h
	if e := cbinding.Outside.Handler.Load(); e != nil {
		o.Handler.Store(e)
	}
	cbinding.Comms.Set(h, o)
	cbinding.CacheComm(h, c.Rank(), c.Size())
}

// Finalize is MPI_Finalize.
func Finalize() int {
	const proc = "MPI_Finalize"
	self, err := beginFinalize()
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = self.Attrs.Drop(self.Handle); err == nil { // functions of the program, which may call MPI or exit
		err = leaveWorld(self)
	}
	cbinding.State.Finalizing.Store(false)
	if err != nil {
		return self.Done(proc, err)
	}
	return 0
}

// beginFinalize returns MPI_COMM_SELF if this is the call that finalizes MPI.
func beginFinalize() (*cbinding.Communicator, error) {
	cbinding.State.Mu.Lock()
	defer cbinding.State.Mu.Unlock()
	switch {
	case cbinding.State.Phase.Load() == cbinding.BeforeInit:
		return nil, &cbinding.CallError{Class: abi.ErrOther, Text: "called before MPI_Init"}
	case cbinding.State.Phase.Load() == cbinding.Finalized || cbinding.State.Finalizing.Swap(true):
		return nil, &cbinding.CallError{Class: abi.ErrOther, Text: "called twice"}
	}
	return cbinding.Comms.Get(abi.CommSelf), nil
}

// leaveWorld ends the World model. The error handlers of the program are called without its lock.
func leaveWorld(self *cbinding.Communicator) error {
	cbinding.State.Mu.Lock()
	defer cbinding.State.Mu.Unlock()
	cbinding.CallFinalizeHooks()
	if w := cbinding.TheWorld(); cbinding.State.Live.Load() > 1 || cbinding.StaysUntilExit() {
		cbinding.LeaveAtExit(w.Finalize) // sessions go on, or may begin
	} else if err := w.Finalize(cbinding.Background); err != nil {
		return err
	}
	cbinding.State.Phase.Store(cbinding.Finalized)
	cbinding.CachePhase(cbinding.Finalized)
	cbinding.Uncache(abi.CommWorld)
	cbinding.Uncache(abi.CommSelf)
	cbinding.Comms.Set(abi.CommWorld, nil)
	cbinding.Comms.Set(abi.CommSelf, nil)
	cbinding.Outside.Handler.Store(self.Handler.Load())
	cbinding.State.World.Store(nil)
	cbinding.State.Live.Add(-1)
	return nil
}

// Initialized is MPI_Initialized.
func Initialized(flag uintptr) int {
	return cbinding.Fail("MPI_Initialized", cbinding.SetFlag(flag, cbinding.State.Phase.Load() != cbinding.BeforeInit))
}

// Finalized is MPI_Finalized.
func Finalized(flag uintptr) int {
	return cbinding.Fail("MPI_Finalized", cbinding.SetFlag(flag, cbinding.State.Phase.Load() == cbinding.Finalized))
}

// QueryThread is MPI_Query_thread.
func QueryThread(provided uintptr) int {
	if err := cbinding.NotRunning(); err != nil {
		return cbinding.Fail("MPI_Query_thread", err)
	}
	return cbinding.Fail("MPI_Query_thread", cbinding.SetInt(provided, int(cbinding.State.Threads.Load()), false))
}

// IsThreadMain is MPI_Is_thread_main.
func IsThreadMain(flag uintptr) int {
	if err := cbinding.NotRunning(); err != nil {
		return cbinding.Fail("MPI_Is_thread_main", err)
	}
	return cbinding.Fail("MPI_Is_thread_main", cbinding.SetFlag(flag, cbinding.State.Main.Load() == cbinding.ThreadID()))
}

// Abort is MPI_Abort. It does not return.
func Abort(comm abi.Handle, errorcode int) int {
	const proc = "MPI_Abort"
	if err := cbinding.NotRunning(); err != nil {
		return cbinding.Fail(proc, err)
	}
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	text := fmt.Sprintf("%s(%v, %d)", proc, &c.Object, errorcode)
	cbinding.FlushOutput()
	fmt.Fprintf(os.Stderr, "weft [rank %d]: %s\n", c.World().Rank(), text)
	c.Comm.Abort(errorcode, proc+" was called") // the launcher prints it, too
	cbinding.ExitProcess(cbinding.ExitCode(errorcode))
	return 0
}

// GetVersion is MPI_Get_version: that of the ABI.
func GetVersion(version, subversion uintptr) int {
	const proc = "MPI_Get_version"
	if err := cbinding.SetInt(version, abi.Version, false); err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetInt(subversion, abi.Subversion, false))
}

// GetLibraryVersion is MPI_Get_library_version.
func GetLibraryVersion(version, resultlen uintptr) int {
	return cbinding.Fail("MPI_Get_library_version",
		cbinding.SetStr(version, resultlen, mpi.LibraryVersion(), abi.MaxLibraryVersionString))
}

// GetProcessorName is MPI_Get_processor_name.
func GetProcessorName(name, resultlen uintptr) int {
	const proc = "MPI_Get_processor_name"
	if err := cbinding.NotRunning(); err != nil {
		return cbinding.Fail(proc, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return cbinding.Fail(proc, cbinding.SetStr(name, resultlen, host, abi.MaxProcessorName))
}

// Pcontrol is MPI_Pcontrol, which is for tools that replace it: it does nothing.
func Pcontrol(level int) int { return abi.Success }
