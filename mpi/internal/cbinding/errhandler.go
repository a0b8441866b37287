package cbinding

import (
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// An errhandler is an MPI_Errhandler.
type errhandler struct {
	handle Handle
	fn     uintptr // of the program; 0 for a predefined handler
	what   objectKind

	mu   sync.Mutex
	refs int // how often the program may free the handle: MPI_Comm_get_errhandler returns one more
}

// get returns a handle of h that is for the program to free, which makes a new one if it has freed the
// last (MPI-4.1, Section 9.3.4).
func (h *errhandler) get() (Handle, error) {
	if h.handle < maxPredefined && h.handle != 0 {
		return h.handle, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refs == 0 {
		handle, err := errhandlers.put(h)
		if err != nil {
			return 0, err
		}
		h.handle = handle
	}
	h.refs++
	return h.handle, nil
}

// free takes one reference of the program away. Objects keep the handler that they have.
func (h *errhandler) free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refs--; h.refs == 0 {
		errhandlers.delete(h.handle)
	}
}

// The predefined error handlers.
var (
	errorsAreFatal = &errhandler{handle: abi.ErrorsAreFatal}
	errorsAbort    = &errhandler{handle: abi.ErrorsAbort}
	errorsReturn   = &errhandler{handle: abi.ErrorsReturn}
)

func init() {
	for _, h := range []*errhandler{errorsAreFatal, errorsAbort, errorsReturn} {
		errhandlers.set(h.handle, h)
	}
}

// outside stands for the object of calls that have none while there is no MPI_COMM_SELF. Its handler is
// the initial error handler (MPI-4.1, Section 9.3.4).
var outside = object{what: ofComm}

// noFile stands for MPI_FILE_NULL, whose handler new files get and which is that of errors of
// MPI_File_open and MPI_File_delete (MPI-4.1, Section 14.7).
var noFile = object{handle: abi.FileNull, what: ofFile}

// defaultHandler returns the handler of objects whose handler was never set.
func (k objectKind) defaultHandler() *errhandler {
	if k == ofFile {
		return errorsReturn
	}
	return errorsAreFatal
}

// names and error classes of what has error handlers, by objectKind.
var objectKinds = [...]kind{ofComm: commKind, ofWin: winKind, ofFile: fileKind, ofSession: sessionKind}

// String names the object for messages.
func (o *object) String() string {
	k := objectKinds[o.what]
	switch o.handle {
	case abi.CommWorld:
		return "MPI_COMM_WORLD"
	case abi.CommSelf:
		return "MPI_COMM_SELF"
	case abi.FileNull:
		return "MPI_FILE_NULL"
	}
	if c := comms.get(o.handle); c != nil && o.what == ofComm {
		return c.Comm.String()
	}
	return fmt.Sprintf("%s %#x", k.name, uintptr(o.handle))
}

// call handles an error of o. It returns the code that the call with the error returns: a function of
// the program gets a pointer to the code, and may change it.
func (h *errhandler) call(o *object, code int, message string) int {
	switch {
	case h.fn != 0:
		return CallErrhandler(h.fn, o.handle, code)
	case h != errorsReturn:
		o.die(code, message)
	}
	return code
}

// objectOf returns the object of a handle of a kind.
func objectOf(what objectKind, h Handle) (*object, error) {
	switch what {
	case ofWin:
		w, err := winOf(h)
		if err != nil {
			return nil, err
		}
		return &w.object, nil
	case ofFile:
		if h == abi.FileNull {
			return &noFile, nil
		}
		f, err := fileOf(h)
		if err != nil {
			return nil, err
		}
		return &f.object, nil
	case ofSession:
		s, err := sessionOf(h)
		if err != nil {
			return nil, err
		}
		return &s.object, nil
	}
	c, err := commOf(h)
	if err != nil {
		return nil, err
	}
	return &c.object, nil
}

// createErrhandler makes an error handler of a function of C. It may be called at any time
// (MPI-4.1, Section 11.4.1).
func createErrhandler(proc string, what objectKind, fn, result uintptr) int {
	if fn == 0 {
		return fail(proc, nullError("function"))
	}
	if result == 0 {
		return fail(proc, nullError("errhandler"))
	}
	e := &errhandler{fn: fn, what: what}
	h, err := e.get()
	if err != nil {
		return fail(proc, err)
	}
	setHandle(result, h)
	return 0
}

// errhandlerFor returns the error handler of a handle, for an object of a kind.
func errhandlerFor(what objectKind, handler Handle) (*errhandler, error) {
	e, err := errhandlerOf(handler)
	if err == nil && e.fn != 0 && e.what != what {
		err = argError(abi.ErrArg, "errhandler", fmt.Sprintf("%#x", uintptr(handler)),
			"was made for a "+objectKinds[e.what].name)
	}
	return e, err
}

// setErrhandler attaches an error handler to an object.
func setErrhandler(proc string, what objectKind, object, handler Handle) int {
	o, err := objectOf(what, object)
	if err != nil {
		return fail(proc, err)
	}
	e, err := errhandlerFor(what, handler)
	if err == nil {
		o.handler.Store(e)
	}
	return o.done(proc, err)
}

// getErrhandler returns the error handler of an object.
func getErrhandler(proc string, what objectKind, object Handle, result uintptr) int {
	o, err := objectOf(what, object)
	if err != nil {
		return fail(proc, err)
	}
	if result == 0 {
		return o.done(proc, nullError("errhandler"))
	}
	h, err := o.errhandler().get()
	if err != nil {
		return o.done(proc, err)
	}
	setHandle(result, h)
	return 0
}

// callErrhandler calls the error handler of an object with a code of the program.
func callErrhandler(proc string, what objectKind, object Handle, code int) int {
	o, err := objectOf(what, object)
	if err != nil {
		return fail(proc, err)
	}
	o.errhandler().call(o, code, proc+": called by the program with "+codeText(code))
	return 0
}

// ErrhandlerFree is MPI_Errhandler_free. Objects keep the handler that they have.
func ErrhandlerFree(handler uintptr) int {
	const proc = "MPI_Errhandler_free"
	if handler == 0 {
		return fail(proc, nullError("errhandler"))
	}
	h := *at[Handle](handler)
	e, err := errhandlerOf(h)
	if err != nil {
		return fail(proc, err)
	}
	if h >= maxPredefined { // the others stay
		e.free()
	}
	setHandle(handler, abi.ErrhandlerNull)
	return 0
}

// CommCreateErrhandler is MPI_Comm_create_errhandler.
func CommCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_Comm_create_errhandler", ofComm, fn, errhandler)
}

// CommSetErrhandler is MPI_Comm_set_errhandler.
func CommSetErrhandler(comm, errhandler Handle) int {
	return setErrhandler("MPI_Comm_set_errhandler", ofComm, comm, errhandler)
}

// CommGetErrhandler is MPI_Comm_get_errhandler.
func CommGetErrhandler(comm Handle, errhandler uintptr) int {
	return getErrhandler("MPI_Comm_get_errhandler", ofComm, comm, errhandler)
}

// CommCallErrhandler is MPI_Comm_call_errhandler.
func CommCallErrhandler(comm Handle, errorcode int) int {
	return callErrhandler("MPI_Comm_call_errhandler", ofComm, comm, errorcode)
}

// WinCreateErrhandler is MPI_Win_create_errhandler.
func WinCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_Win_create_errhandler", ofWin, fn, errhandler)
}

// WinSetErrhandler is MPI_Win_set_errhandler.
func WinSetErrhandler(win, errhandler Handle) int {
	return setErrhandler("MPI_Win_set_errhandler", ofWin, win, errhandler)
}

// WinGetErrhandler is MPI_Win_get_errhandler.
func WinGetErrhandler(win Handle, errhandler uintptr) int {
	return getErrhandler("MPI_Win_get_errhandler", ofWin, win, errhandler)
}

// WinCallErrhandler is MPI_Win_call_errhandler.
func WinCallErrhandler(win Handle, errorcode int) int {
	return callErrhandler("MPI_Win_call_errhandler", ofWin, win, errorcode)
}

// FileCreateErrhandler is MPI_File_create_errhandler.
func FileCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_File_create_errhandler", ofFile, fn, errhandler)
}

// FileSetErrhandler is MPI_File_set_errhandler.
func FileSetErrhandler(file, errhandler Handle) int {
	return setErrhandler("MPI_File_set_errhandler", ofFile, file, errhandler)
}

// FileGetErrhandler is MPI_File_get_errhandler.
func FileGetErrhandler(file Handle, errhandler uintptr) int {
	return getErrhandler("MPI_File_get_errhandler", ofFile, file, errhandler)
}

// FileCallErrhandler is MPI_File_call_errhandler.
func FileCallErrhandler(file Handle, errorcode int) int {
	return callErrhandler("MPI_File_call_errhandler", ofFile, file, errorcode)
}

// SessionCreateErrhandler is MPI_Session_create_errhandler.
func SessionCreateErrhandler(fn, errhandler uintptr) int {
	return createErrhandler("MPI_Session_create_errhandler", ofSession, fn, errhandler)
}

// SessionSetErrhandler is MPI_Session_set_errhandler.
func SessionSetErrhandler(session, errhandler Handle) int {
	return setErrhandler("MPI_Session_set_errhandler", ofSession, session, errhandler)
}

// SessionGetErrhandler is MPI_Session_get_errhandler.
func SessionGetErrhandler(session Handle, errhandler uintptr) int {
	return getErrhandler("MPI_Session_get_errhandler", ofSession, session, errhandler)
}

// SessionCallErrhandler is MPI_Session_call_errhandler.
func SessionCallErrhandler(session Handle, errorcode int) int {
	return callErrhandler("MPI_Session_call_errhandler", ofSession, session, errorcode)
}
