package cbinding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/consent"
)

// A CallError is an error of a call that is not one of package mpi.
type CallError struct {
	Class int // of the ABI, or added by the program
	Text  string
	early bool // found in the arguments alone, before the object is looked at; see raise
}

// Error returns the text.
func (e *CallError) Error() string { return e.Text }

// ErrorClass returns the class, which other ranks get with the error.
func (e *CallError) ErrorClass() mpi.Class { return mpi.Class(e.Class) }

// ArgError makes the error of an argument: its class, its name in the standard, its value, and what
// is wrong with it, as in "count -1: is negative".
func ArgError(class int, name string, value any, wrong string) error {
	return &CallError{Class: class, Text: fmt.Sprintf("%s %v: %s", name, value, wrong)}
}

// WithClass gives err, an error of an argument, another class.
func WithClass(err error, class int) error { return &CallError{Class: class, Text: err.Error()} }

// Negative returns the error of a count that is negative, or nil.
func Negative(name string, n int) error {
	if n < 0 {
		return ArgError(abi.ErrCount, name, n, "is negative")
	}
	return nil
}

// NullError returns the error of a parameter that must not be a null pointer.
func NullError(name string) error { return early(ArgError(abi.ErrArg, name, "NULL", "is needed")) }

// early marks an error of ArgError as one that has nothing to do with the object of the call.
func early(err error) error {
	var call *CallError
	if errors.As(err, &call) {
		call.early = true
	}
	return err
}

// A userCode is a code that a C function of the program returned. It is passed on as it is.
type userCode int

// Error returns the text of the code.
func (c userCode) Error() string { return CodeText(int(c)) }

// CodeOf returns the code of err: the class of the ABI, or the code of a function of the program.
func CodeOf(err error) int {
	if err == nil {
		return abi.Success
	}
	var user userCode
	if errors.As(err, &user) {
		return int(user)
	}
	var call *CallError
	if errors.As(err, &call) {
		return call.Class
	}
	class := mpi.ErrorClass(err)
	if c, ok := goClasses[class]; ok {
		return c
	}
	if class < 0 || class > abi.ErrLastcode {
		return abi.ErrUnknown
	}
	return int(class)
}

// goClasses are the classes of the ABI for those of package mpi that it does not have; the others have its numbers.
var goClasses = map[mpi.Class]int{
	mpi.ClassRMAAccess: abi.ErrAccess,
	// The ABI has no classes for failed processes but one.
	mpi.ClassProcFailed: abi.ErrProcAborted, mpi.ClassProcFailedPending: abi.ErrPending, mpi.ClassRevoked: abi.ErrComm,
}

// lastMessages holds the message of the last error of each class, for MPI_Error_string.
var lastMessages struct {
	sync.Mutex
	text [lastClass + 1]string
}

// raisedOn returns the object whose error handler gets err, an error of a call on o. An early error, as that of a null
// pointer, goes to the handler of calls without an object if o has none but the fatal one: programs that test for such
// errors set that.
func (o *Object) raisedOn(err error) *Object {
	var call *CallError
	if errors.As(err, &call) && call.early && o.Errhandler() == errorsAreFatal {
		return NoObject()
	}
	return o
}

// RefuseCall is Refuse of a call of package mpi that asks all ranks for consent: it gets a context to make the call
// with, and arguments that serve to reach the other ranks.
func (o *Object) RefuseCall(err error, call func(context.Context)) error {
	return o.Refuse(err, func() { call(consent.Refuse(Background, err)) })
}

// Refuse has a rank that has found err in the arguments of a collective call on o take part in it as one that has
// failed, so that the others, which wait for it, get an error too. It returns err. If err ends the job takePart is not
// called: the others may never make the call.
func (o *Object) Refuse(err error, takePart func()) error {
	if h := o.raisedOn(err).Errhandler(); h != errorsAreFatal && h != errorsAbort {
		takePart()
	}
	return err
}

// raise gives err to the error handler of o and returns its code, or what the handler makes of that.
func (o *Object) raise(proc string, err error) int {
	o = o.raisedOn(err)
	code := CodeOf(err)
	message := proc + ": " + inC(proc, err)
	if code >= 0 && code <= lastClass {
		lastMessages.Lock()
		lastMessages.text[code] = message
		lastMessages.Unlock()
	}
	return o.Errhandler().Call(o, code, message)
}

// Called gives a code that the program calls the error handler of o with to it. If it is a code that
// the program has added, its text is the message, which MPI_Error_string then has for the class.
func (o *Object) Called(proc string, code int) {
	message := proc + ": called by the program with " + CodeText(code)
	if class, ok := ClassOf(code); ok && class != code && ClassText(code) != "" {
		message = ClassText(code)
		if class <= lastClass {
			lastMessages.Lock()
			lastMessages.text[class] = message
			lastMessages.Unlock()
		}
	}
	o.Errhandler().Call(o, code, message)
}

// Errhandler returns the handler of o.
func (o *Object) Errhandler() *Errhandler {
	if h := o.Handler.Load(); h != nil {
		return h
	}
	return o.Kind.defaultHandler()
}

// peerFailureDelay is how long a rank waits before it ends the job because a peer has failed: the launcher,
// if it knows of that failure, ends the job with the reason and the status of the peer meanwhile.
const peerFailureDelay = time.Second

// die ends the job because of an error that no handler returns. It does not return.
func (o *Object) die(code int, message string) {
	on := ""
	if o.Handle != 0 {
		on = " on " + o.String()
	}
	text := fmt.Sprintf("fatal error%s: %s: %s", on, className(code), message)
	FlushOutput() // the launcher may end this process as soon as it knows
	if code == abi.ErrProcAborted {
		time.Sleep(peerFailureDelay)
	}
	if w := TheWorld(); w != nil {
		fmt.Fprintf(os.Stderr, "weft [rank %d]: %s\n", w.Rank(), text)
		// The launcher prints this, too: without what was printed.
		call, _, _ := strings.Cut(message, ":")
		w.Abort(ExitCode(code), fmt.Sprintf("%s in %s", className(code), call))
	} else {
		fmt.Fprintf(os.Stderr, "weft: %s\n", text)
	}
	ExitProcess(ExitCode(code))
}

// ExitCode makes an error code an exit code of a process, which is a byte and not 0.
func ExitCode(code int) int {
	if code&0xff == 0 {
		return 1
	}
	return code & 0xff
}
