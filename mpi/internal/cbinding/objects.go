package cbinding

import (
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// An object is what communicators, windows, files and sessions have in common: a handle, an error
// handler and attributes.
type object struct {
	handle  Handle
	what    objectKind
	handler atomic.Pointer[errhandler] // nil: MPI_ERRORS_ARE_FATAL
	attrs   attributes
	bsend   atomic.Pointer[bsendBuffer] // that the program has attached; nil: none

	holds atomic.Int32 // persistent requests, less one if the object was freed
	last  func()       // see freeLater
}

// hold keeps what o refers to although the program may free o, until unhold: persistent requests on a
// communicator can be started after MPI_Comm_free, which leaves it there until nothing refers to it any
// more (MPI-4.1, Section 7.4.3).
func (o *object) hold() { o.holds.Add(1) }

func (o *object) unhold() {
	if o.holds.Add(-1) < 0 {
		o.last()
	}
}

// freeLater calls f once nothing holds o.
func (o *object) freeLater(f func()) {
	o.last = f
	o.unhold()
}

type objectKind uint8

const (
	ofComm objectKind = iota
	ofWin
	ofFile
	ofSession
)

// done ends a call on o: it gives err, if not nil, to the error handler, and returns the code.
func (o *object) done(proc string, err error) int {
	if err == nil {
		return 0
	}
	return o.raise(proc, err)
}

// fail ends a call that has no object: MPI_COMM_SELF stands for it (MPI-4.1, Section 9.3), or before
// MPI_Init and after MPI_Finalize the initial error handler. If the program has set a handler of
// MPI_COMM_WORLD only, it is that one: before MPI-4.0 it was for such errors, and programs rely on it.
func fail(proc string, err error) int {
	if err == nil {
		return 0
	}
	return noObject().raise(proc, err)
}

// noObject stands for the object of a call without one.
func noObject() *object {
	c := comms.get(abi.CommSelf)
	if c == nil {
		return &outside
	}
	if w := comms.get(abi.CommWorld); w != nil && c.handler.Load() == nil && w.handler.Load() != nil {
		return &w.object
	}
	return &c.object
}
