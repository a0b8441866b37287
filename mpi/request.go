package mpi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A Request is a started operation (MPI_Request). It stays valid after it is done; [Request.Free]
// gives it back for reuse. Its methods may be called from any goroutine.
type Request struct {
	request p2p.Request

	// told is true once Waitany, Waitsome, Testany or Testsome has returned r.
	told        atomic.Bool
	w           *World
	comm        *Comm     // whose error handler gets the error; may be nil
	generalized *Grequest // set for a generalized request
}

var userRequests = sync.Pool{New: func() any { return new(Request) }}

// newRequest returns a blank request of the program from the pool.
func newRequest(w *World) *Request {
	r := userRequests.Get().(*Request)
	r.w = w
	r.request.Init(w.eng)
	r.told.Store(false)
	return r
}

// doneRequest returns a request that is complete from the start.
func doneRequest(w *World, st Status, err error) *Request {
	r := newRequest(w)
	r.request.Status = p2p.Status(st)
	r.request.Complete(err)
	return r
}

// goRequest runs f on a goroutine of its own; the request is done when f returns, see goRecover. It
// makes operations of several messages nonblocking.
func goRequest(w *World, f func() (Status, error)) *Request {
	r := newRequest(w)
	goRecover(func() error {
		st, err := f()
		r.request.Status = p2p.Status(st)
		return err
	}, r.request.Complete)
	return r
}

// Wait blocks until the operation is done and returns its result; the buffer may then be used again
// (MPI_Wait). If ctx ends first it returns ctx.Err(), and the operation goes on with its buffer. It
// also goes on after ErrProcFailedPending, which a receive from [AnySource] returns while a failure
// is not acknowledged: see [Comm.AckFailed].
func (r *Request) Wait(ctx context.Context) (Status, error) {
	w := r.w
	t := w.enter()
	st, err := r.request.Wait(ctx)
	if err != nil && r.request.Finished.Load() { // perhaps only since ctx ended: that it is done counts
		st, err = r.request.Status, r.raise()
	}
	w.leave(t, "Wait", st.Bytes, err)
	return Status(st), err
}

// Test reports whether the operation is done, and its result if so (MPI_Test). It does not block;
// it polls the transport once. err may be ErrProcFailedPending if done is false: see
// [Request.Wait].
func (r *Request) Test() (st Status, done bool, err error) {
	w := r.w
	t := w.enter()
	got, done, err := r.request.Test()
	if err != nil && done {
		err = r.raise()
	}
	w.leave(t, "Test", got.Bytes, err)
	return Status(got), done, err
}

// Free gives up r, which must not be used afterwards by any goroutine. It is optional: it lets the
// memory be reused at once. If r is not done, the operation goes on and uses its buffer until it is
// done (MPI-4.1, Section 3.7.3).
func (r *Request) Free() {
	if r.request.Finished.Load() && r.request.Clear() {
		r.w, r.comm, r.generalized = nil, nil, nil
		userRequests.Put(r)
	}
}

// Cancel withdraws an operation that no other one has matched (MPI-4.1, Section
// 3.8.4). A receive is then done at once, with ErrCanceled. A send that waits
// for its receive, because it is long or synchronous, is withdrawn if the
// receiver has not matched it either, which it is asked: the request is done
// when it has answered, with ErrCanceled, or as if Cancel had not been called.
// Other sends go on: their message has been delivered to the receiver. Either
// the operation is withdrawn or it is completed, never half of it. Generalized
// requests decide themselves.
//
// Cancel does not block. It reports whether the operation is withdrawn already.
func (r *Request) Cancel() bool {
	if g := r.generalized; g != nil {
		if g.canceled != nil {
			g.canceled(r.request.Finished.Load())
		}
		return r.request.Finished.Load() && errors.Is(r.request.Err, ErrCanceled)
	}
	return r.request.Cancel(ErrCanceled)
}
