package cbinding

import "github.com/weftstack/weft/mpi/internal/abi"

// The kinds of handles. Datatypes and requests, of which a program may have many, take several
// prefixes: 16 to 31 and 64 to 127.
var (
	commKind       = kind{"communicator", abi.ErrComm, abi.CommNull, abi.CommNull, 8, 1, 24}
	groupKind      = kind{"group", abi.ErrGroup, abi.GroupNull, abi.GroupNull, 8, 2, 24}
	winKind        = kind{"window", abi.ErrWin, abi.WinNull, abi.WinNull, 8, 3, 24}
	fileKind       = kind{"file", abi.ErrFile, abi.FileNull, abi.FileNull, 8, 4, 24}
	sessionKind    = kind{"session", abi.ErrSession, abi.SessionNull, abi.SessionNull, 8, 5, 24}
	infoKind       = kind{"info", abi.ErrInfo, abi.InfoNull, abi.InfoNull, 8, 6, 24}
	errhandlerKind = kind{"errhandler", abi.ErrErrhandler, abi.ErrhandlerNull, abi.ErrhandlerNull, 8, 7, 24}
	messageKind    = kind{"message", abi.ErrRequest, abi.MessageNull, abi.MessageNull, 8, 8, 24}
	keyvalKind     = kind{"keyval", abi.ErrKeyval, abi.KeyvalInvalid, 500, 200, 9, 24}
	opKind         = kind{"op", abi.ErrOp, abi.OpNull, abi.OpNull, 32, 10, 24}
	typeKind       = kind{"datatype", abi.ErrType, abi.DatatypeNull, abi.DatatypeNull, 256, 16, 28}
	requestKind    = kind{"request", abi.ErrRequest, abi.RequestNull, abi.RequestNull, 8, 64, 30}
)

// The tables of handles.
var (
	comms       = newTable[communicator](commKind)
	groups      = newTable[group](groupKind)
	windows     = newTable[window](winKind)
	files       = newTable[file](fileKind)
	sessions    = newTable[session](sessionKind)
	infos       = newTable[info](infoKind)
	errhandlers = newTable[errhandler](errhandlerKind)
	messages    = newTable[message](messageKind)
	keyvals     = newTable[keyval](keyvalKind)
	ops         = newTable[op](opKind)
	types       = newTable[datatype](typeKind)
	requests    = newTable[request](requestKind)
)

// kindOf names what a handle is the handle of, or returns "". Predefined keyvals, which are plain
// numbers, are not among them.
func kindOf(h Handle) string {
	for _, k := range []kind{commKind, groupKind, winKind, fileKind, sessionKind, infoKind, errhandlerKind,
		messageKind, opKind, typeKind, requestKind, keyvalKind} {
		if h >= k.first && h < k.first+Handle(k.fixed) || h >= maxPredefined && h>>31 == 0 &&
			uint32(h>>k.bits) == k.prefix>>(k.bits-24) {
			return k.name
		}
	}
	return ""
}

// Each kind of handle has a function that returns its object or the error of a bad handle.

func commOf(h Handle) (*communicator, error) {
	if c := comms.get(h); c != nil {
		return c, nil
	}
	return nil, comms.missing(h)
}

func groupOf(h Handle) (*group, error)           { return groups.lookup(h) }
func winOf(h Handle) (*window, error)            { return windows.lookup(h) }
func fileOf(h Handle) (*file, error)             { return files.lookup(h) }
func sessionOf(h Handle) (*session, error)       { return sessions.lookup(h) }
func errhandlerOf(h Handle) (*errhandler, error) { return errhandlers.lookup(h) }
func messageOf(h Handle) (*message, error)       { return messages.lookup(h) }
func opOf(h Handle) (*op, error)                 { return ops.lookup(h) }
func requestOf(h Handle) (*request, error)       { return requests.lookup(h) }
func keyvalOf(h int) (*keyval, error)            { return keyvals.lookup(Handle(uint(h))) }
