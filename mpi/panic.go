package mpi

import (
	"fmt"
	"runtime/debug"
)

// A PanicError is returned for a function of the program that panicked on a
// goroutine of this package: that of a rank of RunLocal, or an operator of a
// nonblocking collective.
type PanicError struct {
	Value any    // what the function gave to panic
	Stack []byte // of the goroutine at that moment, as runtime/debug.Stack has it
}

// Error gives the value and the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("mpi: panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// goRecover calls f on a goroutine of its own and then done. A panic or a runtime.Goexit of f is recovered and passed
// to done as an error; it ends neither the caller nor the process.
func goRecover(f func() error, done func(error)) {
	go func() {
		err := ErrGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
			done(err)
		}()
		err = f()
	}()
}
