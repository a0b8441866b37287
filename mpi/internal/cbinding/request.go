package cbinding

import (
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A Request is an MPI_Request: of a message, a collective, a window, a file or the program.
type Request struct {
	Handle    abi.Handle
	Owner     *Object      // whose error handler gets the errors; nil: that of MPI_COMM_SELF
	Operation *mpi.Request // nil: persistent and inactive

	Cancels bool                         // MPI_Cancel applies
	Start   func() (*mpi.Request, error) // of a persistent operation, else nil
	Drop    func()                       // frees a persistent operation; may be nil
	Sends   *mpi.PartitionedSend         // likewise of MPI_Psend_init
	Recvs   *mpi.PartitionedRecv         // or of MPI_Precv_init
	User    *Generalized                 // of MPI_Grequest_start
}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

// PutRequest gives the started operation r a handle. Errors of the operation go to o; nil stands for
// MPI_COMM_SELF.
func PutRequest(r *mpi.Request, o *Object) (abi.Handle, error) {
	q := requestPool.Get().(*Request)
	q.Owner, q.Operation = o, r
	return q.Put()
}

// PutMessage is PutRequest of a message, which MPI_Cancel applies to.
func PutMessage(r *mpi.Request, o *Object) (abi.Handle, error) {
	q := requestPool.Get().(*Request)
	q.Owner, q.Operation, q.Cancels = o, r, true
	return q.Put()
}

// Put gives q a handle.
func (q *Request) Put() (abi.Handle, error) {
	h, err := Requests.Put(q)
	q.Handle = h
	return h, err
}

// RequestRoom checks where the handle of a request is to be stored, and that there is room for one: calls ask before
// they start the operation.
func RequestRoom(result uintptr) error {
	if err := Out("request", result); err != nil {
		return err
	}
	return Requests.Room()
}

// NewRequest ends a call on o that has started r, or has not because of err: it stores the handle of r at
// result, which the caller has checked with RequestRoom before it started anything.
func (o *Object) NewRequest(proc string, result uintptr, r *mpi.Request, err error) int {
	if err == nil {
		var h abi.Handle
		if h, err = PutRequest(r, o); err == nil {
			SetHandle(result, h)
			return 0
		}
	}
	return o.Done(proc, err)
}

// NewMessage is NewRequest of a message, which MPI_Cancel applies to.
func (o *Object) NewMessage(proc string, result uintptr, r *mpi.Request, err error) int {
	if err == nil {
		var h abi.Handle
		if h, err = PutMessage(r, o); err == nil {
			SetHandle(result, h)
			return 0
		}
	}
	return o.Done(proc, err)
}

// NewPersistent ends a call on o that has prepared p, or has not because of err.
func (o *Object) NewPersistent(proc string, result uintptr, p *mpi.Persistent, err error) int {
	if err != nil {
		return o.Done(proc, err)
	}
	return o.Prepared(proc, result, &Request{Owner: o, Start: p.Start, Drop: p.Free})
}

// Prepared gives a persistent operation its handle.
func (o *Object) Prepared(proc string, result uintptr, q *Request) int {
	h, err := q.Put()
	if err == nil {
		o.hold()
		SetHandle(result, h)
	}
	return o.Done(proc, err)
}

// DoneOf ends a call on a request of o, which may be nil. The request may be freed by now.
func DoneOf(o *Object, proc string, err error) int {
	if o == nil {
		return Fail(proc, err)
	}
	return o.Done(proc, err)
}

// RequestAt returns the request whose handle is at p: nil for MPI_REQUEST_NULL.
func RequestAt(p uintptr) (*Request, error) {
	if p == 0 {
		return nil, NullError("request")
	}
	h := *At[abi.Handle](p)
	if h == abi.RequestNull {
		return nil, nil
	}
	return RequestOf(h)
}

// Active reports whether there is a started operation. q may be nil.
func (q *Request) Active() bool { return q != nil && q.Operation != nil }

// Complete stores the result of the operation, which is done, at status, and makes the request at p
// inactive, or if it is not persistent frees it (MPI-4.1, Section 3.7.3).
func (q *Request) Complete(p, status uintptr, st mpi.Status, err error) error {
	err = q.result(status, st, err)
	if freed := q.release(p); err == nil {
		err = freed
	}
	return err
}

// result stores the result of the operation at status and returns its error. That it was cancelled is
// none.
func (q *Request) result(status uintptr, st mpi.Status, err error) error {
	if q.User != nil {
		return q.User.query(status)
	}
	if st.Canceled && err != nil {
		err = nil
	}
	SetStatus(status, st)
	if st.Canceled {
		SetCancelled(status, true)
	}
	return err
}

// release gives the operation up, which is done. A request that is not persistent is freed, and its
// handle at p becomes MPI_REQUEST_NULL. The error is that of the function of the program that frees a
// generalized request.
func (q *Request) release(p uintptr) (err error) {
	r := q.Operation
	q.Operation = nil
	if q.Start == nil {
		Requests.Delete(q.Handle)
		SetHandle(p, abi.RequestNull)
		if q.User != nil {
			err = q.User.Free()
		} else {
			*q = Request{}
			requestPool.Put(q)
		}
	}
	r.Free()
	return err
}

// RequestAtOf is RequestAt of a handle.
func RequestAtOf(h abi.Handle) (*Request, error) {
	if h == abi.RequestNull {
		return nil, nil
	}
	return RequestOf(h)
}

// Look reports whether the request, which may be nil, is done or inactive, and stores its status then.
func (q *Request) Look(status uintptr) (done bool, err error) {
	if !q.Active() {
		EmptyStatus(status)
		return true, nil
	}
	st, done, err := q.Operation.Test()
	if done {
		err = q.result(status, st, err)
	}
	return done, err
}

// PersistentMessage is NewPersistent of a message, which MPI_Cancel applies to.
func (o *Object) PersistentMessage(proc string, result uintptr, p *mpi.Persistent, err error) int {
	if err != nil {
		return o.Done(proc, err)
	}
	return o.Prepared(proc, result, &Request{Owner: o, Start: p.Start, Drop: p.Free, Cancels: true})
}

// Object returns whose error handler gets the errors; nil for MPI_COMM_SELF.
func (q *Request) Object() *Object {
	if q == nil {
		return nil
	}
	return q.Owner
}
