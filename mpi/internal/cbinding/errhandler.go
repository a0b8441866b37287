package cbinding

import (
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// An Errhandler is an MPI_Errhandler.
type Errhandler struct {
	handle abi.Handle
	Fn     uintptr // of the program; 0 for a predefined handler
	Kind   ObjectKind

	mu   sync.Mutex
	refs int // how often the program may free the handle: MPI_Comm_get_errhandler returns one more
}

// Get returns a handle of h that is for the program to free, which makes a new one if it has freed the
// last (MPI-4.1, Section 9.3.4).
func (h *Errhandler) Get() (abi.Handle, error) {
	if h.handle < abi.MaxPredefined && h.handle != 0 {
		return h.handle, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refs == 0 {
		handle, err := errhandlers.Put(h)
		if err != nil {
			return 0, err
		}
		h.handle = handle
	}
	h.refs++
	return h.handle, nil
}

// Free takes one reference of the program away. Objects keep the handler that they have.
func (h *Errhandler) Free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refs--; h.refs == 0 {
		errhandlers.Delete(h.handle)
	}
}

// The predefined error handlers.
var (
	errorsAreFatal = &Errhandler{handle: abi.ErrorsAreFatal}
	errorsAbort    = &Errhandler{handle: abi.ErrorsAbort}
	errorsReturn   = &Errhandler{handle: abi.ErrorsReturn}
)

func init() {
	for _, h := range []*Errhandler{errorsAreFatal, errorsAbort, errorsReturn} {
		errhandlers.Set(h.handle, h)
	}
}

// Outside stands for the object of calls that have none while there is no MPI_COMM_SELF. Its handler is
// the initial error handler (MPI-4.1, Section 9.3.4).
var Outside = Object{Kind: OfComm}

// NoFile stands for MPI_FILE_NULL, whose handler new files get and which is that of errors of
// MPI_File_open and MPI_File_delete (MPI-4.1, Section 14.7).
var NoFile = Object{Handle: abi.FileNull, Kind: OfFile}

// defaultHandler returns the handler of objects whose handler was never set.
func (k ObjectKind) defaultHandler() *Errhandler {
	if k == OfFile {
		return errorsReturn
	}
	return errorsAreFatal
}

// names and error classes of what has error handlers, by ObjectKind.
var objectKinds = [...]HandleKind{OfComm: commKind, OfWin: WinKind, OfFile: FileKind, OfSession: sessionKind}

// String names the object for messages.
func (o *Object) String() string {
	k := objectKinds[o.Kind]
	switch o.Handle {
	case abi.CommWorld:
		return "MPI_COMM_WORLD"
	case abi.CommSelf:
		return "MPI_COMM_SELF"
	case abi.FileNull:
		return "MPI_FILE_NULL"
	}
	if c := Comms.Get(o.Handle); c != nil && o.Kind == OfComm {
		return c.Comm.String()
	}
	return fmt.Sprintf("%s %#x", k.Name, uintptr(o.Handle))
}

// Call handles an error of o. It returns the code that the call with the error returns: a function of
// the program gets a pointer to the code, and may change it.
func (h *Errhandler) Call(o *Object, code int, message string) int {
	switch {
	case h.Fn != 0:
		return CallErrhandler(h.Fn, o.Handle, code)
	case h != errorsReturn:
		o.die(code, message)
	}
	return code
}

// handled find the objects of handles, by ObjectKind. The chapters of windows and files set theirs.
var handled = [...]func(abi.Handle) (*Object, error){
	OfComm: func(h abi.Handle) (*Object, error) {
		c, err := CommOf(h)
		if err != nil {
			return nil, err
		}
		return &c.Object, nil
	},
	OfWin:  nil,
	OfFile: nil,
	OfSession: func(h abi.Handle) (*Object, error) {
		s, err := SessionOf(h)
		if err != nil {
			return nil, err
		}
		return &s.Object, nil
	},
}

// HaveHandlers lets f find objects of a kind. It is called by init functions.
func HaveHandlers(what ObjectKind, f func(abi.Handle) (*Object, error)) { handled[what] = f }

// ObjectOf returns the object of a handle of a kind.
func ObjectOf(kind ObjectKind, h abi.Handle) (*Object, error) {
	switch f := handled[kind]; {
	case kind == OfFile && h == abi.FileNull:
		return &NoFile, nil
	case f != nil:
		return f(h)
	}
	k := objectKinds[kind]
	return nil, ArgError(k.Class, k.Name, fmt.Sprintf("%#x", uint(h)), "is no handle")
}

// ErrhandlerFor returns the error handler of a handle, for an object of a kind.
func ErrhandlerFor(what ObjectKind, handler abi.Handle) (*Errhandler, error) {
	e, err := ErrhandlerOf(handler)
	if err == nil && e.Fn != 0 && e.Kind != what {
		err = ArgError(abi.ErrArg, "errhandler", fmt.Sprintf("%#x", uintptr(handler)),
			"was made for a "+objectKinds[e.Kind].Name)
	}
	return e, err
}
