package tool

import (
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// The tool information interface (MPI-5.0, Chapter 15). It may be used before MPI_Init and after
// MPI_Finalize. Its functions return error codes and call no error handler. A null pointer for a result
// says that it is not wanted, where the standard allows that, and is MPI_T_ERR_INVALID elsewhere.

// tool is the state of the interface.
var tool struct {
	sync.Mutex     // guards all below, and the handles
	users      int // calls of MPI_T_init_thread without MPI_T_finalize
	last       mpi.Stats
}

// The kinds of handles of the interface. They have no handles that are predefined.
var (
	cvarHandleKind  = toolKind("control variable handle", abi.TErrInvalidHandle, abi.TCvarHandleNull, 11)
	pvarHandleKind  = toolKind("performance variable handle", abi.TErrInvalidHandle, abi.TPvarHandleNull, 12)
	pvarSessionKind = toolKind("performance session", abi.TErrInvalidSession, abi.TPvarSessionNull, 13)
)

func toolKind(name string, class int, null abi.Handle, prefix uint32) cbinding.HandleKind {
	return cbinding.HandleKind{Name: name, Class: class, Null: null, Prefix: prefix, Bits: 24}
}

var (
	cvarHandles  = cbinding.NewTable[cvarHandle](cvarHandleKind)
	pvarHandles  = cbinding.NewTable[pvarHandle](pvarHandleKind)
	pvarSessions = cbinding.NewTable[pvarSession](pvarSessionKind)
)

// enterTool begins a call of the interface: it returns an error code unless the interface is in use.
// leaveTool must be called if it is 0.
func enterTool() int {
	tool.Lock()
	if tool.users == 0 {
		tool.Unlock()
		return abi.TErrNotInitialized
	}
	return 0
}

func leaveTool() { tool.Unlock() }

// TInitThread is MPI_T_init_thread. It may be called several times.
func TInitThread(required int, provided uintptr) int {
	if provided == 0 {
		return abi.TErrInvalid
	}
	tool.Lock()
	defer tool.Unlock()
	tool.users++
	cbinding.StoreInt(provided, cbinding.ThreadLevel(required), false)
	return 0
}

// TFinalize is MPI_T_finalize. The last call frees all handles and sessions.
func TFinalize() int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if tool.users--; tool.users == 0 {
		cvarHandles.DeleteAll()
		pvarHandles.DeleteAll()
		pvarSessions.DeleteAll()
	}
	return 0
}

// setToolStr stores s at p with a 0 at its end, cut to the size at size, and there its length with the
// 0. If p is null, or the size 0, it stores only how much room is needed (MPI-5.0, Section 15.3.3).
func setToolStr(p, size uintptr, s string) {
	if size == 0 {
		return
	}
	n := cbinding.At[int32](size)
	if p == 0 || *n <= 0 {
		*n = int32(len(s) + 1)
		return
	}
	s = s[:min(len(s), int(*n)-1)]
	b := cbinding.Array[byte](p, len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	*n = int32(len(s) + 1)
}

// setToolInt stores an int at p unless that is null.
func setToolInt(p uintptr, v int) {
	if p != 0 {
		cbinding.StoreInt(p, v, false)
	}
}

// setToolHandle stores a handle at p unless that is null.
func setToolHandle(p uintptr, h abi.Handle) {
	if p != 0 {
		cbinding.SetHandle(p, h)
	}
}

// needInt stores an int at p, which must not be null, and returns the error code.
func needInt(p uintptr, v int) int {
	if p == 0 {
		return abi.TErrInvalid
	}
	cbinding.StoreInt(p, v, false)
	return 0
}

// maxToolName bounds the length of names of variables.
const maxToolName = 256

// indexOf stores the index of a name at p.
func indexOf(name, p uintptr, n int, at func(i int) (name string, ok bool)) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if name == 0 || p == 0 {
		return abi.TErrInvalid
	}
	s, err := cbinding.Str("name", name, maxToolName)
	if err != nil {
		return abi.TErrInvalidName
	}
	for i := range n {
		if x, ok := at(i); ok && x == s {
			cbinding.StoreInt(p, i, false)
			return 0
		}
	}
	return abi.TErrInvalidName
}

// count stores how many there are of something at p.
func toolCount(p uintptr, n int) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	return needInt(p, n)
}
