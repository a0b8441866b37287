package cbinding

import (
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// lastClass is the greatest error class of the standard but for those of the tool interface (MPI-5.0, Section 20.4).
const lastClass = abi.ErrAbi

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
	if code >= 0 && code <= lastClass || toolTexts[code] != "" || code == abi.ErrLastcode {
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
	case code >= 0 && code <= lastClass:
		return mpierr.Class(code).Text()
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
	if code > 0 && code <= lastClass {
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
