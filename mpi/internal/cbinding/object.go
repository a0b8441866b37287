package cbinding

import (
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// An Object is what communicators, windows, files and sessions have in common: a handle, an error
// handler and attributes.
type Object struct {
	Handle      abi.Handle
	Kind        ObjectKind
	Handler     atomic.Pointer[Errhandler] // nil: MPI_ERRORS_ARE_FATAL
	Attrs       Attributes
	BsendBuffer atomic.Pointer[BsendBuffer] // that the program has attached; nil: none

	holds atomic.Int32 // persistent requests, less one if the object was freed
	last  func()       // see FreeLater
}

// hold keeps what o refers to although the program may free o, until Unhold: persistent requests on a
// communicator can be started after MPI_Comm_free, which leaves it there until nothing refers to it any
// more (MPI-4.1, Section 7.4.3).
func (o *Object) hold() { o.holds.Add(1) }

// Unhold ends a hold.
func (o *Object) Unhold() {
	if o.holds.Add(-1) < 0 {
		o.last()
	}
}

// FreeLater calls f once nothing holds o.
func (o *Object) FreeLater(f func()) {
	o.last = f
	o.Unhold()
}

// An ObjectKind says what an object is.
type ObjectKind uint8

const (
	OfComm ObjectKind = iota
	OfWin
	OfFile
	OfSession
)

// Done ends a call on o: it gives err, if not nil, to the error handler, and returns the code.
func (o *Object) Done(proc string, err error) int {
	if err == nil {
		return 0
	}
	return o.raise(proc, err)
}

// Fail ends a call that has no object: MPI_COMM_SELF stands for it (MPI-4.1, Section 9.3), or before
// MPI_Init and after MPI_Finalize the initial error handler. If the program has set a handler of
// MPI_COMM_WORLD only, it is that one: before MPI-4.0 it was for such errors, and programs rely on it.
func Fail(proc string, err error) int {
	if err == nil {
		return 0
	}
	return NoObject().raise(proc, err)
}

// NoObject stands for the object of a call without one.
func NoObject() *Object {
	c := Comms.Get(abi.CommSelf)
	if c == nil {
		return &Outside
	}
	if w := Comms.Get(abi.CommWorld); w != nil && c.Handler.Load() == nil && w.Handler.Load() != nil {
		return &w.Object
	}
	return &c.Object
}
