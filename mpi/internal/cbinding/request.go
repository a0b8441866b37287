package cbinding

import (
	"errors"
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A request is an MPI_Request: of a message, a collective, a window, a file or the program.
type request struct {
	handle Handle
	o      *object      // whose error handler gets the errors; nil: that of MPI_COMM_SELF
	r      *mpi.Request // nil: persistent and inactive

	cancels bool                         // MPI_Cancel applies
	start   func() (*mpi.Request, error) // of a persistent operation, else nil
	drop    func()                       // frees a persistent operation; may be nil
	sends   *mpi.PartitionedSend         // likewise of MPI_Psend_init
	recvs   *mpi.PartitionedRecv         // or of MPI_Precv_init
	user    *generalized                 // of MPI_Grequest_start
}

var requestPool = sync.Pool{New: func() any { return new(request) }}

// putRequest gives the started operation r a handle. Errors of the operation go to o; nil stands for
// MPI_COMM_SELF.
func putRequest(r *mpi.Request, o *object) (Handle, error) {
	q := requestPool.Get().(*request)
	q.o, q.r = o, r
	return q.put()
}

// put gives q a handle.
func (q *request) put() (Handle, error) {
	h, err := requests.put(q)
	q.handle = h
	return h, err
}

// newRequest ends a call on o that has started r, or has not because of err: it stores the handle of r at
// result, which the caller has checked before it started anything.
func (o *object) newRequest(proc string, result uintptr, r *mpi.Request, err error) int {
	if err == nil {
		var h Handle
		if h, err = putRequest(r, o); err == nil {
			setHandle(result, h)
			return 0
		}
	}
	return o.done(proc, err)
}

// newMessage is newRequest of a message, which MPI_Cancel applies to.
func (o *object) newMessage(proc string, result uintptr, r *mpi.Request, err error) int {
	if err == nil {
		q := requestPool.Get().(*request)
		q.o, q.r, q.cancels = o, r, true
		var h Handle
		if h, err = q.put(); err == nil {
			setHandle(result, h)
			return 0
		}
	}
	return o.done(proc, err)
}

// newPersistent ends a call on o that has prepared p, or has not because of err.
func (o *object) newPersistent(proc string, result uintptr, p *mpi.Persistent, err error) int {
	if err != nil {
		return o.done(proc, err)
	}
	return o.prepared(proc, result, &request{o: o, start: p.Start, drop: p.Free})
}

// prepared gives a persistent operation its handle.
func (o *object) prepared(proc string, result uintptr, q *request) int {
	h, err := q.put()
	if err == nil {
		o.hold()
		setHandle(result, h)
	}
	return o.done(proc, err)
}

// doneOf ends a call on a request of o, which may be nil. The request may be freed by now.
func doneOf(o *object, proc string, err error) int {
	if o == nil {
		return fail(proc, err)
	}
	return o.done(proc, err)
}

// requestAt returns the request whose handle is at p: nil for MPI_REQUEST_NULL.
func requestAt(p uintptr) (*request, error) {
	if p == 0 {
		return nil, nullError("request")
	}
	h := *at[Handle](p)
	if h == abi.RequestNull {
		return nil, nil
	}
	return requestOf(h)
}

// active reports whether there is a started operation. q may be nil.
func (q *request) active() bool { return q != nil && q.r != nil }

// complete stores the result of the operation, which is done, at status, and makes the request at p
// inactive, or if it is not persistent frees it (MPI-4.1, Section 3.7.3).
func (q *request) complete(p, status uintptr, st mpi.Status, err error) error {
	err = q.result(status, st, err)
	if freed := q.release(p); err == nil {
		err = freed
	}
	return err
}

// result stores the result of the operation at status and returns its error. That it was cancelled is
// none.
func (q *request) result(status uintptr, st mpi.Status, err error) error {
	if q.user != nil {
		return q.user.query(status)
	}
	if st.Canceled && err != nil {
		err = nil
	}
	setStatus(status, st)
	if st.Canceled {
		setCancelled(status, true)
	}
	return err
}

// release gives the operation up, which is done. A request that is not persistent is freed, and its
// handle at p becomes MPI_REQUEST_NULL. The error is that of the function of the program that frees a
// generalized request.
func (q *request) release(p uintptr) (err error) {
	r := q.r
	q.r = nil
	if q.start == nil {
		requests.delete(q.handle)
		setHandle(p, abi.RequestNull)
		if q.user != nil {
			err = q.user.free()
		} else {
			*q = request{}
			requestPool.Put(q)
		}
	}
	r.Free()
	return err
}

// goesOn reports whether err, with which a wait or a test has returned, leaves the operation as it is.
func goesOn(err error) bool { return err != nil && errors.Is(err, mpi.ErrProcFailedPending) }

// Wait is MPI_Wait.
func Wait(request, status uintptr) int {
	const proc = "MPI_Wait"
	q, err := requestAt(request)
	if err != nil {
		return fail(proc, err)
	}
	if !q.active() {
		emptyStatus(status)
		return 0
	}
	o := q.o
	st, err := q.r.Wait(background)
	if !goesOn(err) {
		err = q.complete(request, status, st, err)
	}
	if err != nil {
		return doneOf(o, proc, err)
	}
	return 0
}

// Test is MPI_Test.
func Test(request, flag, status uintptr) int {
	const proc = "MPI_Test"
	q, err := requestAt(request)
	if err == nil {
		err = out("flag", flag)
	}
	if err != nil {
		return fail(proc, err)
	}
	if !q.active() {
		*at[int32](flag) = 1
		emptyStatus(status)
		return 0
	}
	st, done, err := q.r.Test()
	if !done && err == nil {
		*at[int32](flag) = 0
		return 0
	}
	o := q.o
	*at[int32](flag) = 0
	if done {
		*at[int32](flag) = 1
		err = q.complete(request, status, st, err)
	}
	if err != nil {
		return doneOf(o, proc, err)
	}
	return 0
}

// RequestGetStatus is MPI_Request_get_status: MPI_Test that leaves the request as it is.
func RequestGetStatus(request Handle, flag, status uintptr) int {
	const proc = "MPI_Request_get_status"
	q, err := requestAtOf(request)
	if err == nil {
		err = out("flag", flag)
	}
	if err != nil {
		return fail(proc, err)
	}
	done, err := q.look(status)
	*at[int32](flag) = 0
	if done {
		*at[int32](flag) = 1
	}
	if err != nil {
		return doneOf(q.o, proc, err)
	}
	return 0
}

// requestAtOf is requestAt of a handle.
func requestAtOf(h Handle) (*request, error) {
	if h == abi.RequestNull {
		return nil, nil
	}
	return requestOf(h)
}

// look reports whether the request, which may be nil, is done or inactive, and stores its status then.
func (q *request) look(status uintptr) (done bool, err error) {
	if !q.active() {
		emptyStatus(status)
		return true, nil
	}
	st, done, err := q.r.Test()
	if done {
		err = q.result(status, st, err)
	}
	return done, err
}

// RequestFree is MPI_Request_free. An operation that is not done goes on.
func RequestFree(request uintptr) int {
	const proc = "MPI_Request_free"
	if request == 0 {
		return fail(proc, nullError("request"))
	}
	q, err := requestOf(*at[Handle](request))
	if err != nil {
		return fail(proc, err)
	}
	o, r, drop := q.o, q.r, q.drop
	if q.user == nil {
		requests.delete(q.handle)
	} else {
		err = q.user.giveUp(q)
	}
	setHandle(request, abi.RequestNull)
	switch {
	case r != nil && drop != nil:
		// The end of a persistent operation frees what its starts share.
		go func() {
			_, _ = r.Wait(background)
			drop()
		}()
	case drop != nil:
		drop()
	case r != nil && q.user == nil:
		r.Free()
	}
	if q.start != nil {
		o.unhold()
	}
	if err != nil {
		return doneOf(o, proc, err)
	}
	return 0
}

// Cancel is MPI_Cancel. It marks the operation, which completes then, cancelled or not: a receive that has
// matched, or a send whose message has left, completes as if it had not been called.
func Cancel(request uintptr) int {
	const proc = "MPI_Cancel"
	if request == 0 {
		return fail(proc, nullError("request"))
	}
	q, err := requestOf(*at[Handle](request))
	if err != nil {
		return fail(proc, err)
	}
	switch {
	case q.user != nil:
		err = q.user.cancel()
	case !q.cancels:
		err = argError(abi.ErrRequest, "request", q.handle, "is of an operation that cannot be cancelled")
	case q.r == nil:
		err = argError(abi.ErrRequest, "request", q.handle, "is inactive")
	default:
		q.r.Cancel()
	}
	if err != nil {
		return doneOf(q.o, proc, err)
	}
	return 0
}

// TestCancelled is MPI_Test_cancelled.
func TestCancelled(status, flag uintptr) int {
	const proc = "MPI_Test_cancelled"
	s, err := statusAt(status)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, setFlag(flag, statusCancelled(s)))
}

// Start is MPI_Start.
func Start(request uintptr) int {
	const proc = "MPI_Start"
	if request == 0 {
		return fail(proc, nullError("request"))
	}
	q, err := startable(*at[Handle](request))
	if err != nil {
		return fail(proc, err)
	}
	if q.r, err = q.start(); err != nil {
		return doneOf(q.o, proc, err)
	}
	return 0
}

// Startall is MPI_Startall. It starts nothing unless all requests may be started.
func Startall(count int, requests uintptr) int {
	const proc = "MPI_Startall"
	hs, err := requestArray(count, requests)
	if err != nil {
		return fail(proc, err)
	}
	for _, h := range hs {
		if _, err := startable(h); err != nil {
			return fail(proc, err)
		}
	}
	for _, h := range hs {
		q, err := startable(h) // again: the same request may be there twice
		if err != nil {
			return fail(proc, err)
		}
		if q.r, err = q.start(); err != nil {
			return doneOf(q.o, proc, err)
		}
	}
	return 0
}

// startable returns the request of a handle if it is persistent and inactive.
func startable(h Handle) (*request, error) {
	q, err := requestOf(h)
	switch {
	case err != nil:
		return nil, err
	case q.start == nil:
		return nil, argError(abi.ErrRequest, "request", h, "is not persistent")
	case q.r != nil:
		return nil, argError(abi.ErrRequest, "request", h, "is active already")
	}
	return q, nil
}

// requestArray returns the handles of an array.
func requestArray(n int, p uintptr) ([]Handle, error) {
	if n < 0 {
		return nil, negative("count", n)
	}
	return handles("array_of_requests", p, n)
}
