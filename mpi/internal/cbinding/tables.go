package cbinding

import "github.com/weftstack/weft/mpi/internal/abi"

// The kinds of handles. Datatypes and requests, of which a program may have many, take several
// prefixes: 16 to 31 and 64 to 127.
var (
	commKind       = HandleKind{"communicator", abi.ErrComm, abi.CommNull, abi.CommNull, 8, 1, 24}
	groupKind      = HandleKind{"group", abi.ErrGroup, abi.GroupNull, abi.GroupNull, 8, 2, 24}
	WinKind        = HandleKind{"window", abi.ErrWin, abi.WinNull, abi.WinNull, 8, 3, 24}
	FileKind       = HandleKind{"file", abi.ErrFile, abi.FileNull, abi.FileNull, 8, 4, 24}
	sessionKind    = HandleKind{"session", abi.ErrSession, abi.SessionNull, abi.SessionNull, 8, 5, 24}
	infoKind       = HandleKind{"info", abi.ErrInfo, abi.InfoNull, abi.InfoNull, 8, 6, 24}
	errhandlerKind = HandleKind{"errhandler", abi.ErrErrhandler, abi.ErrhandlerNull, abi.ErrhandlerNull, 8, 7, 24}
	MessageKind    = HandleKind{"message", abi.ErrRequest, abi.MessageNull, abi.MessageNull, 8, 8, 24}
	keyvalKind     = HandleKind{"keyval", abi.ErrKeyval, abi.KeyvalInvalid, 500, 200, 9, 24}
	opKind         = HandleKind{"op", abi.ErrOp, abi.OpNull, abi.OpNull, 32, 10, 24}
	typeKind       = HandleKind{"datatype", abi.ErrType, abi.DatatypeNull, abi.DatatypeNull, 256, 16, 28}
	requestKind    = HandleKind{"request", abi.ErrRequest, abi.RequestNull, abi.RequestNull, 8, 64, 30}
)

// The tables of handles that several chapters need. Those of windows, files and messages are with them.
var (
	Comms       = NewTable[Communicator](commKind)
	Groups      = NewTable[Group](groupKind)
	Sessions    = NewTable[Session](sessionKind)
	Infos       = NewTable[Info](infoKind)
	errhandlers = NewTable[Errhandler](errhandlerKind)
	keyvals     = NewTable[keyval](keyvalKind)
	Ops         = NewTable[Op](opKind)
	Types       = NewTable[Datatype](typeKind)
	Requests    = NewTable[Request](requestKind)
)

// kinds are the kinds of handles.
var kinds = []HandleKind{
	commKind, groupKind, WinKind, FileKind, sessionKind, infoKind, errhandlerKind, MessageKind, opKind, typeKind,
	requestKind, keyvalKind,
}

// KindNames returns the names of the kinds of handles.
func KindNames() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// kindOf names what a handle is the handle of, or returns "". Predefined keyvals, which are plain
// numbers, are not among them.
func kindOf(h abi.Handle) string {
	for _, k := range kinds {
		if h >= k.first && h < k.first+abi.Handle(k.fixed) || h >= abi.MaxPredefined && h>>31 == 0 &&
			uint32(h>>k.Bits) == k.Prefix>>(k.Bits-24) {
			return k.Name
		}
	}
	return ""
}

// CommOf returns the communicator of a handle, or the error of a bad one.
func CommOf(h abi.Handle) (*Communicator, error) {
	if c := Comms.Get(h); c != nil {
		return c, nil
	}
	return nil, Comms.Missing(h)
}

// GroupOf is CommOf of a group.
func GroupOf(h abi.Handle) (*Group, error) { return Groups.Lookup(h) }

// SessionOf is CommOf of a session.
func SessionOf(h abi.Handle) (*Session, error) { return Sessions.Lookup(h) }

// ErrhandlerOf is CommOf of an error handler.
func ErrhandlerOf(h abi.Handle) (*Errhandler, error) { return errhandlers.Lookup(h) }

// OpOf is CommOf of an operator.
func OpOf(h abi.Handle) (*Op, error) { return Ops.Lookup(h) }

// RequestOf is CommOf of a request.
func RequestOf(h abi.Handle) (*Request, error) { return Requests.Lookup(h) }

func keyvalOf(h int) (*keyval, error) { return keyvals.Lookup(abi.Handle(uint(h))) }
