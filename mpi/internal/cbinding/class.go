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

// classOf returns the class of a code, and whether there is such a code.
func classOf(code int) (int, bool) {
	if code >= 0 && code < len(classTexts) || toolTexts[code] != "" || code == abi.ErrLastcode {
		return code, true
	}
	added.Lock()
	defer added.Unlock()
	c, ok := added.codes[code]
	return c.class, ok
}

// classText returns the text of the class or code itself.
func classText(code int) string {
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

// codeText is what MPI_Error_string returns.
func codeText(code int) string {
	text := classText(code)
	if code > 0 && code < len(classTexts) {
		lastMessages.Lock()
		defer lastMessages.Unlock()
		if m := lastMessages.text[code]; m != "" {
			text += " (last: " + m + ")"
		}
	}
	return text
}

// ErrorClass is MPI_Error_class.
func ErrorClass(errorcode int, errorclass uintptr) int {
	class, ok := classOf(errorcode)
	if !ok {
		return fail("MPI_Error_class", argError(abi.ErrArg, "errorcode", errorcode, "is no error code"))
	}
	return fail("MPI_Error_class", setInt(errorclass, class, false))
}

// ErrorString is MPI_Error_string.
func ErrorString(errorcode int, text, resultlen uintptr) int {
	if _, ok := classOf(errorcode); !ok {
		return fail("MPI_Error_string", argError(abi.ErrArg, "errorcode", errorcode, "is no error code"))
	}
	return fail("MPI_Error_string", setStr(text, resultlen, codeText(errorcode), abi.MaxErrorString))
}

// AddErrorClass is MPI_Add_error_class.
func AddErrorClass(errorclass uintptr) int {
	const proc = "MPI_Add_error_class"
	if errorclass == 0 {
		return fail(proc, nullError("errorclass"))
	}
	added.Lock()
	n := added.next
	added.next++
	added.codes[n] = addedCode{class: n}
	added.Unlock()
	return fail(proc, setInt(errorclass, n, false))
}

// AddErrorCode is MPI_Add_error_code.
func AddErrorCode(errorclass int, errorcode uintptr) int {
	const proc = "MPI_Add_error_code"
	if errorcode == 0 {
		return fail(proc, nullError("errorcode"))
	}
	if c, ok := classOf(errorclass); !ok || c != errorclass {
		return fail(proc, argError(abi.ErrArg, "errorclass", errorclass, "is no error class"))
	}
	added.Lock()
	n := added.next
	added.next++
	added.codes[n] = addedCode{class: errorclass}
	if c, ok := added.codes[errorclass]; ok {
		c.codes++
		added.codes[errorclass] = c
	}
	added.Unlock()
	return fail(proc, setInt(errorcode, n, false))
}

// AddErrorString is MPI_Add_error_string.
func AddErrorString(errorcode int, text uintptr) int {
	const proc = "MPI_Add_error_string"
	s, err := str("string", text, abi.MaxErrorString)
	if err != nil {
		return fail(proc, err)
	}
	added.Lock()
	c, ok := added.codes[errorcode]
	if ok {
		c.text = s
		added.codes[errorcode] = c
	}
	added.Unlock()
	if !ok {
		return fail(proc, argError(abi.ErrArg, "errorcode", errorcode, "was not added by the program"))
	}
	return 0
}

// remove removes a class or a code that has no text and, if it is a class, no codes (MPI-4.1, Section 9.5).
func remove(name string, code int, class bool) error {
	added.Lock()
	defer added.Unlock()
	c, ok := added.codes[code]
	switch {
	case !ok || (c.class == code) != class:
		return argError(abi.ErrArg, name, code, "was not added by the program")
	case class && c.codes > 0:
		return argError(abi.ErrArg, name, code, fmt.Sprintf("has %d codes that were not removed", c.codes))
	case c.text != "":
		return argError(abi.ErrArg, name, code, fmt.Sprintf("has a string that was not removed: %q", c.text))
	}
	delete(added.codes, code)
	if of, ok := added.codes[c.class]; ok && !class {
		of.codes--
		added.codes[c.class] = of
	}
	return nil
}

// RemoveErrorClass is MPI_Remove_error_class.
func RemoveErrorClass(errorclass int) int {
	return fail("MPI_Remove_error_class", remove("errorclass", errorclass, true))
}

// RemoveErrorCode is MPI_Remove_error_code.
func RemoveErrorCode(errorcode int) int {
	return fail("MPI_Remove_error_code", remove("errorcode", errorcode, false))
}

// RemoveErrorString is MPI_Remove_error_string.
func RemoveErrorString(errorcode int) int {
	added.Lock()
	c, ok := added.codes[errorcode]
	if ok {
		c.text = ""
		added.codes[errorcode] = c
	}
	added.Unlock()
	if !ok {
		return fail("MPI_Remove_error_string", argError(abi.ErrArg, "errorcode", errorcode, "was not added by the program"))
	}
	return 0
}

// lastUsedCode is the value of the attribute MPI_LASTUSEDCODE.
func lastUsedCode() int {
	added.Lock()
	defer added.Unlock()
	return added.next - 1
}
