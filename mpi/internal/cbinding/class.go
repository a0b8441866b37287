package cbinding

import (
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// classTexts are the texts of the predefined error classes (MPI-5.0, Section 9.4).
var classTexts = [...]string{
	abi.Success:                 "MPI_SUCCESS: no error",
	abi.ErrBuffer:               "MPI_ERR_BUFFER: invalid buffer pointer",
	abi.ErrCount:                "MPI_ERR_COUNT: invalid count argument",
	abi.ErrType:                 "MPI_ERR_TYPE: invalid datatype argument",
	abi.ErrTag:                  "MPI_ERR_TAG: invalid tag argument",
	abi.ErrComm:                 "MPI_ERR_COMM: invalid communicator",
	abi.ErrRank:                 "MPI_ERR_RANK: invalid rank",
	abi.ErrRequest:              "MPI_ERR_REQUEST: invalid request",
	abi.ErrRoot:                 "MPI_ERR_ROOT: invalid root",
	abi.ErrGroup:                "MPI_ERR_GROUP: invalid group",
	abi.ErrOp:                   "MPI_ERR_OP: invalid operation",
	abi.ErrTopology:             "MPI_ERR_TOPOLOGY: invalid topology",
	abi.ErrDims:                 "MPI_ERR_DIMS: invalid dimensions",
	abi.ErrArg:                  "MPI_ERR_ARG: invalid argument",
	abi.ErrUnknown:              "MPI_ERR_UNKNOWN: unknown error",
	abi.ErrTruncate:             "MPI_ERR_TRUNCATE: message truncated on receive",
	abi.ErrOther:                "MPI_ERR_OTHER: other error",
	abi.ErrIntern:               "MPI_ERR_INTERN: internal error",
	abi.ErrPending:              "MPI_ERR_PENDING: pending request",
	abi.ErrInStatus:             "MPI_ERR_IN_STATUS: error code is in the status",
	abi.ErrAccess:               "MPI_ERR_ACCESS: permission denied",
	abi.ErrAmode:                "MPI_ERR_AMODE: invalid access mode",
	abi.ErrAssert:               "MPI_ERR_ASSERT: invalid assertion",
	abi.ErrBadFile:              "MPI_ERR_BAD_FILE: invalid file name",
	abi.ErrBase:                 "MPI_ERR_BASE: invalid base address",
	abi.ErrConversion:           "MPI_ERR_CONVERSION: error in a data conversion function",
	abi.ErrDisp:                 "MPI_ERR_DISP: invalid displacement",
	abi.ErrDupDatarep:           "MPI_ERR_DUP_DATAREP: data representation is registered already",
	abi.ErrFileExists:           "MPI_ERR_FILE_EXISTS: file exists",
	abi.ErrFileInUse:            "MPI_ERR_FILE_IN_USE: file is in use",
	abi.ErrFile:                 "MPI_ERR_FILE: invalid file handle",
	abi.ErrInfoKey:              "MPI_ERR_INFO_KEY: invalid info key",
	abi.ErrInfoNokey:            "MPI_ERR_INFO_NOKEY: no such info key",
	abi.ErrInfoValue:            "MPI_ERR_INFO_VALUE: invalid info value",
	abi.ErrInfo:                 "MPI_ERR_INFO: invalid info object",
	abi.ErrIo:                   "MPI_ERR_IO: input/output error",
	abi.ErrKeyval:               "MPI_ERR_KEYVAL: invalid attribute key",
	abi.ErrLocktype:             "MPI_ERR_LOCKTYPE: invalid lock type",
	abi.ErrName:                 "MPI_ERR_NAME: service name is not published",
	abi.ErrNoMem:                "MPI_ERR_NO_MEM: out of memory",
	abi.ErrNotSame:              "MPI_ERR_NOT_SAME: collective argument differs between processes",
	abi.ErrNoSpace:              "MPI_ERR_NO_SPACE: no space left",
	abi.ErrNoSuchFile:           "MPI_ERR_NO_SUCH_FILE: no such file",
	abi.ErrPort:                 "MPI_ERR_PORT: invalid port",
	abi.ErrQuota:                "MPI_ERR_QUOTA: quota exceeded",
	abi.ErrReadOnly:             "MPI_ERR_READ_ONLY: file or file system is read-only",
	abi.ErrRmaAttach:            "MPI_ERR_RMA_ATTACH: memory cannot be attached",
	abi.ErrRmaConflict:          "MPI_ERR_RMA_CONFLICT: conflicting accesses to a window",
	abi.ErrRmaRange:             "MPI_ERR_RMA_RANGE: target memory is not part of the window",
	abi.ErrRmaShared:            "MPI_ERR_RMA_SHARED: memory cannot be shared",
	abi.ErrRmaSync:              "MPI_ERR_RMA_SYNC: invalid synchronization of a window",
	abi.ErrService:              "MPI_ERR_SERVICE: invalid service name",
	abi.ErrSize:                 "MPI_ERR_SIZE: invalid size",
	abi.ErrSpawn:                "MPI_ERR_SPAWN: processes could not be spawned",
	abi.ErrUnsupportedDatarep:   "MPI_ERR_UNSUPPORTED_DATAREP: unsupported data representation",
	abi.ErrUnsupportedOperation: "MPI_ERR_UNSUPPORTED_OPERATION: unsupported operation",
	abi.ErrWin:                  "MPI_ERR_WIN: invalid window",
	abi.ErrRmaFlavor:            "MPI_ERR_RMA_FLAVOR: wrong flavor of window",
	abi.ErrProcAborted:          "MPI_ERR_PROC_ABORTED: a peer process has aborted or failed",
	abi.ErrValueTooLarge:        "MPI_ERR_VALUE_TOO_LARGE: value does not fit its type",
	abi.ErrSession:              "MPI_ERR_SESSION: invalid session",
	abi.ErrErrhandler:           "MPI_ERR_ERRHANDLER: invalid error handler",
	abi.ErrAbi:                  "MPI_ERR_ABI: error of the ABI",
}

// toolTexts are those of the tool information interface (MPI-5.0, Section 15.3.10).
var toolTexts = map[int]string{
	abi.TErrCannotInit:      "MPI_T_ERR_CANNOT_INIT: interface cannot be initialized",
	abi.TErrNotAccessible:   "MPI_T_ERR_NOT_ACCESSIBLE: requested functionality is not accessible",
	abi.TErrNotInitialized:  "MPI_T_ERR_NOT_INITIALIZED: interface is not initialized",
	abi.TErrNotSupported:    "MPI_T_ERR_NOT_SUPPORTED: requested functionality is not supported",
	abi.TErrMemory:          "MPI_T_ERR_MEMORY: out of memory",
	abi.TErrInvalid:         "MPI_T_ERR_INVALID: invalid use of the interface",
	abi.TErrInvalidIndex:    "MPI_T_ERR_INVALID_INDEX: invalid index",
	abi.TErrInvalidItem:     "MPI_T_ERR_INVALID_ITEM: item index out of range",
	abi.TErrInvalidSession:  "MPI_T_ERR_INVALID_SESSION: invalid session",
	abi.TErrInvalidHandle:   "MPI_T_ERR_INVALID_HANDLE: invalid handle",
	abi.TErrInvalidName:     "MPI_T_ERR_INVALID_NAME: no such name",
	abi.TErrOutOfHandles:    "MPI_T_ERR_OUT_OF_HANDLES: no more handles",
	abi.TErrOutOfSessions:   "MPI_T_ERR_OUT_OF_SESSIONS: no more sessions",
	abi.TErrCvarSetNotNow:   "MPI_T_ERR_CVAR_SET_NOT_NOW: variable cannot be set now",
	abi.TErrCvarSetNever:    "MPI_T_ERR_CVAR_SET_NEVER: variable cannot be set",
	abi.TErrPvarNoWrite:     "MPI_T_ERR_PVAR_NO_WRITE: variable cannot be written",
	abi.TErrPvarNoStartstop: "MPI_T_ERR_PVAR_NO_STARTSTOP: variable cannot be started or stopped",
	abi.TErrPvarNoAtomic:    "MPI_T_ERR_PVAR_NO_ATOMIC: variable cannot be read and written atomically",
}

// added are the error classes and codes of the program (MPI-5.0, Section 9.5). They begin behind
// MPI_ERR_LASTCODE.
var added = struct {
	sync.Mutex
	next  int
	codes map[int]addedCode
}{next: abi.ErrLastcode + 1, codes: make(map[int]addedCode)}

// An addedCode is a code, or if its class is its own number a class.
type addedCode struct {
	class int
	text  string
	codes int // of a class: its codes that are not removed
}

// ClassOf returns the class of a code, and whether there is such a code.
func ClassOf(code int) (int, bool) {
	if code >= 0 && code < len(classTexts) || toolTexts[code] != "" || code == abi.ErrLastcode {
		return code, true
	}
	added.Lock()
	defer added.Unlock()
	c, ok := added.codes[code]
	return c.class, ok
}

// ClassText returns the text of the class or code itself.
func ClassText(code int) string {
	switch {
	case code >= 0 && code < len(classTexts):
		return classTexts[code]
	case toolTexts[code] != "":
		return toolTexts[code]
	case code == abi.ErrLastcode:
		return "MPI_ERR_LASTCODE: last error code"
	}
	added.Lock()
	defer added.Unlock()
	if c, ok := added.codes[code]; ok {
		return c.text
	}
	return fmt.Sprintf("error code %d", code)
}

// CodeText is what MPI_Error_string returns.
func CodeText(code int) string {
	text := ClassText(code)
	if code > 0 && code < len(classTexts) {
		lastMessages.Lock()
		defer lastMessages.Unlock()
		if m := lastMessages.text[code]; m != "" {
			text += " (last: " + m + ")"
		}
	}
	return text
}

// AddClass makes an error class.
func AddClass() int {
	added.Lock()
	defer added.Unlock()
	n := added.next
	added.next++
	added.codes[n] = addedCode{class: n}
	return n
}

// AddCode makes an error code of a class.
func AddCode(class int) (int, error) {
	if c, ok := ClassOf(class); !ok || c != class {
		return 0, ArgError(abi.ErrArg, "errorclass", class, "is no error class")
	}
	added.Lock()
	defer added.Unlock()
	n := added.next
	added.next++
	added.codes[n] = addedCode{class: class}
	if c, ok := added.codes[class]; ok {
		c.codes++
		added.codes[class] = c
	}
	return n, nil
}

// SetCodeText gives a class or a code of the program its text.
func SetCodeText(code int, text string) error {
	added.Lock()
	defer added.Unlock()
	c, ok := added.codes[code]
	if !ok {
		return notAdded("errorcode", code)
	}
	c.text = text
	added.codes[code] = c
	return nil
}

func notAdded(name string, code int) error {
	return ArgError(abi.ErrArg, name, code, "was not added by the program")
}

// RemoveCode removes a class or a code of the program that has no text and, if it is a class, no codes (MPI-4.1,
// Section 9.5). name is that of the argument.
func RemoveCode(name string, code int, class bool) error {
	added.Lock()
	defer added.Unlock()
	c, ok := added.codes[code]
	switch {
	case !ok || (c.class == code) != class:
		return notAdded(name, code)
	case class && c.codes > 0:
		return ArgError(abi.ErrArg, name, code, fmt.Sprintf("has %d codes that were not removed", c.codes))
	case c.text != "":
		return ArgError(abi.ErrArg, name, code, fmt.Sprintf("has a string that was not removed: %q", c.text))
	}
	delete(added.codes, code)
	if of, ok := added.codes[c.class]; ok && !class {
		of.codes--
		added.codes[c.class] = of
	}
	return nil
}

// LastUsedCode is the value of the attribute MPI_LASTUSEDCODE.
func LastUsedCode() int {
	added.Lock()
	defer added.Unlock()
	return added.next - 1
}
