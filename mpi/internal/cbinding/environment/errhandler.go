package environment

import (
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// createErrhandler makes an error handler of a function of C. It may be called at any time
// (MPI-4.1, Section 11.4.1).
func createErrhandler(proc string, what cbinding.ObjectKind, fn, result uintptr) int {
	cbinding.NullHandle(result, abi.ErrhandlerNull)
	if fn == 0 {
		return cbinding.Fail(proc, cbinding.NullError("function"))
	}
	if result == 0 {
		return cbinding.Fail(proc, cbinding.NullError("errhandler"))
	}
	e := &cbinding.Errhandler{Fn: fn, Kind: what}
	h, err := e.Get()
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.SetHandle(result, h)
	return 0
}

// setErrhandler attaches an error handler to an object.
func setErrhandler(proc string, what cbinding.ObjectKind, object, handler abi.Handle) int {
	o, err := cbinding.ObjectOf(what, object)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	e, err := cbinding.ErrhandlerFor(what, handler)
	if err == nil {
		o.Handler.Store(e)
	}
	return o.Done(proc, err)
}

// getErrhandler returns the error handler of an object.
func getErrhandler(proc string, what cbinding.ObjectKind, object abi.Handle, result uintptr) int {
	cbinding.NullHandle(result, abi.ErrhandlerNull)
	o, err := cbinding.ObjectOf(what, object)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if result == 0 {
		return o.Done(proc, cbinding.NullError("errhandler"))
	}
	h, err := o.Errhandler().Get()
	if err != nil {
		return o.Done(proc, err)
	}
	cbinding.SetHandle(result, h)
	return 0
}

// callErrhandler calls the error handler of an object with a code of the program.
func callErrhandler(proc string, what cbinding.ObjectKind, object abi.Handle, code int) int {
	o, err := cbinding.ObjectOf(what, object)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	o.Called(proc, code)
	return 0
}

// ErrhandlerFree is MPI_Errhandler_free. Objects keep the handler that they have.
func ErrhandlerFree(handler uintptr) int {
	const proc = "MPI_Errhandler_free"
	if handler == 0 {
		return cbinding.Fail(proc, cbinding.NullError("errhandler"))
	}
	h := *cbinding.At[abi.Handle](handler)
	e, err := cbinding.ErrhandlerOf(h)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if h >= abi.MaxPredefined { // the others stay
		e.Free()
	}
	cbinding.SetHandle(handler, abi.ErrhandlerNull)
	return 0
}

// CommCreateErrhandler is MPI_Comm_create_errhandler.
func CommCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_Comm_create_errhandler", cbinding.OfComm, fn, errhandler)
}

// CommSetErrhandler is MPI_Comm_set_errhandler.
func CommSetErrhandler(comm, errhandler abi.Handle) int {
	return setErrhandler("MPI_Comm_set_errhandler", cbinding.OfComm, comm, errhandler)
}

// CommGetErrhandler is MPI_Comm_get_errhandler.
func CommGetErrhandler(comm abi.Handle, errhandler uintptr) int {
	return getErrhandler("MPI_Comm_get_errhandler", cbinding.OfComm, comm, errhandler)
}

// CommCallErrhandler is MPI_Comm_call_errhandler.
func CommCallErrhandler(comm abi.Handle, errorcode int) int {
	return callErrhandler("MPI_Comm_call_errhandler", cbinding.OfComm, comm, errorcode)
}

// WinCreateErrhandler is MPI_Win_create_errhandler.
func WinCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_Win_create_errhandler", cbinding.OfWin, fn, errhandler)
}

// WinSetErrhandler is MPI_Win_set_errhandler.
func WinSetErrhandler(win, errhandler abi.Handle) int {
	return setErrhandler("MPI_Win_set_errhandler", cbinding.OfWin, win, errhandler)
}

// WinGetErrhandler is MPI_Win_get_errhandler.
func WinGetErrhandler(win abi.Handle, errhandler uintptr) int {
	return getErrhandler("MPI_Win_get_errhandler", cbinding.OfWin, win, errhandler)
}

// WinCallErrhandler is MPI_Win_call_errhandler.
func WinCallErrhandler(win abi.Handle, errorcode int) int {
	return callErrhandler("MPI_Win_call_errhandler", cbinding.OfWin, win, errorcode)
}

// FileCreateErrhandler is MPI_File_create_errhandler.
func FileCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_File_create_errhandler", cbinding.OfFile, fn, errhandler)
}

// FileSetErrhandler is MPI_File_set_errhandler.
func FileSetErrhandler(file, errhandler abi.Handle) int {
	return setErrhandler("MPI_File_set_errhandler", cbinding.OfFile, file, errhandler)
}

// FileGetErrhandler is MPI_File_get_errhandler.
func FileGetErrhandler(file abi.Handle, errhandler uintptr) int {
	return getErrhandler("MPI_File_get_errhandler", cbinding.OfFile, file, errhandler)
}

// FileCallErrhandler is MPI_File_call_errhandler.
func FileCallErrhandler(file abi.Handle, errorcode int) int {
	return callErrhandler("MPI_File_call_errhandler", cbinding.OfFile, file, errorcode)
}

// SessionCreateErrhandler is MPI_Session_create_errhandler.
func SessionCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_Session_create_errhandler", cbinding.OfSession, fn, errhandler)
}

// SessionSetErrhandler is MPI_Session_set_errhandler.
func SessionSetErrhandler(session, errhandler abi.Handle) int {
	return setErrhandler("MPI_Session_set_errhandler", cbinding.OfSession, session, errhandler)
}

// SessionGetErrhandler is MPI_Session_get_errhandler.
func SessionGetErrhandler(session abi.Handle, errhandler uintptr) int {
	return getErrhandler("MPI_Session_get_errhandler", cbinding.OfSession, session, errhandler)
}

// SessionCallErrhandler is MPI_Session_call_errhandler.
func SessionCallErrhandler(session abi.Handle, errorcode int) int {
	return callErrhandler("MPI_Session_call_errhandler", cbinding.OfSession, session, errorcode)
}
