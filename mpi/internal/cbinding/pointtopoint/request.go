package pointtopoint

import (
	"errors"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// goesOn reports whether err, with which a wait or a test has returned, leaves the operation as it is.
func goesOn(err error) bool { return err != nil && errors.Is(err, mpi.ErrProcFailedPending) }

// Wait is MPI_Wait.
func Wait(request, status uintptr) int {
	const proc = "MPI_Wait"
	q, err := cbinding.RequestAt(request)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if !q.Active() {
		cbinding.EmptyStatus(status)
		return 0
	}
	o := q.Owner
	st, err := q.Operation.Wait(cbinding.Background)
	if !goesOn(err) {
		err = q.Complete(request, status, st, err)
	}
	if err != nil {
		return cbinding.DoneOf(o, proc, err)
	}
	return 0
}

// Test is MPI_Test.
func Test(request, flag, status uintptr) int {
	const proc = "MPI_Test"
	q, err := cbinding.RequestAt(request)
	if err == nil {
		err = cbinding.Out("flag", flag)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if !q.Active() {
		*cbinding.At[int32](flag) = 1
		cbinding.EmptyStatus(status)
		return 0
	}
	st, done, err := q.Operation.Test()
	if !done && err == nil {
		*cbinding.At[int32](flag) = 0
		return 0
	}
	o := q.Owner
	*cbinding.At[int32](flag) = 0
	if done {
		*cbinding.At[int32](flag) = 1
		err = q.Complete(request, status, st, err)
	}
	if err != nil {
		return cbinding.DoneOf(o, proc, err)
	}
	return 0
}

// RequestGetStatus is MPI_Request_get_status: MPI_Test that leaves the request as it is.
func RequestGetStatus(request abi.Handle, flag, status uintptr) int {
	const proc = "MPI_Request_get_status"
	q, err := cbinding.RequestAtOf(request)
	if err == nil {
		err = cbinding.Out("flag", flag)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	done, err := q.Look(status)
	*cbinding.At[int32](flag) = 0
	if done {
		*cbinding.At[int32](flag) = 1
	}
	if err != nil {
		return cbinding.DoneOf(q.Owner, proc, err)
	}
	return 0
}

// RequestFree is MPI_Request_free. An operation that is not done goes on.
func RequestFree(request uintptr) int {
	const proc = "MPI_Request_free"
	if request == 0 {
		return cbinding.Fail(proc, cbinding.NullError("request"))
	}
	q, err := cbinding.RequestOf(*cbinding.At[abi.Handle](request))
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	o, r, drop := q.Owner, q.Operation, q.Drop
	if q.User == nil {
		cbinding.Requests.Delete(q.Handle)
	} else {
		err = q.User.GiveUp(q)
	}
	cbinding.SetHandle(request, abi.RequestNull)
	switch {
	case r != nil && drop != nil:
		// The end of a persistent operation frees what its starts share.
		go func() {
			_, _ = r.Wait(cbinding.Background)
			drop()
		}()
	case drop != nil:
		drop()
	case r != nil && q.User == nil:
		r.Free()
	}
	if q.Start != nil {
		o.Unhold()
	}
	if err != nil {
		return cbinding.DoneOf(o, proc, err)
	}
	return 0
}

// Cancel is MPI_Cancel. It marks the operation, which completes then, cancelled or not: a receive that has
// matched, or a send whose message has left, completes as if it had not been called.
func Cancel(request uintptr) int {
	const proc = "MPI_Cancel"
	if request == 0 {
		return cbinding.Fail(proc, cbinding.NullError("request"))
	}
	q, err := cbinding.RequestOf(*cbinding.At[abi.Handle](request))
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	switch {
	case q.User != nil:
		err = q.User.Cancel()
	case !q.Cancels:
		err = cbinding.ArgError(abi.ErrRequest, "request", q.Handle, "is of an operation that cannot be cancelled")
	case q.Operation == nil:
		err = cbinding.ArgError(abi.ErrRequest, "request", q.Handle, "is inactive")
	default:
		q.Operation.Cancel()
	}
	if err != nil {
		return cbinding.DoneOf(q.Owner, proc, err)
	}
	return 0
}

// TestCancelled is MPI_Test_cancelled.
func TestCancelled(status, flag uintptr) int {
	const proc = "MPI_Test_cancelled"
	s, err := statusAt(status)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetFlag(flag, cbinding.StatusCancelled(s)))
}

// Start is MPI_Start.
func Start(request uintptr) int {
	const proc = "MPI_Start"
	if request == 0 {
		return cbinding.Fail(proc, cbinding.NullError("request"))
	}
	q, err := startable(*cbinding.At[abi.Handle](request))
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if q.Operation, err = q.Start(); err != nil {
		return cbinding.DoneOf(q.Owner, proc, err)
	}
	return 0
}

// Startall is MPI_Startall. It starts nothing unless all requests may be started.
func Startall(count int, requests uintptr) int {
	const proc = "MPI_Startall"
	hs, err := requestArray(count, requests)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	for _, h := range hs {
		if _, err := startable(h); err != nil {
			return cbinding.Fail(proc, err)
		}
	}
	for _, h := range hs {
		q, err := startable(h) // again: the same request may be there twice
		if err != nil {
			return cbinding.Fail(proc, err)
		}
		if q.Operation, err = q.Start(); err != nil {
			return cbinding.DoneOf(q.Owner, proc, err)
		}
	}
	return 0
}

// startable returns the request of a handle if it is persistent and inactive.
func startable(h abi.Handle) (*cbinding.Request, error) {
	q, err := cbinding.RequestOf(h)
	switch {
	case err != nil:
		return nil, err
	case q.Start == nil:
		return nil, cbinding.ArgError(abi.ErrRequest, "request", cbinding.HandleName(h), "is not persistent")
	case q.Operation != nil:
		return nil, cbinding.ArgError(abi.ErrRequest, "request", cbinding.HandleName(h), "is active already")
	}
	return q, nil
}

// requestArray returns the handles of an array.
func requestArray(n int, p uintptr) ([]abi.Handle, error) {
	if n < 0 {
		return nil, cbinding.Negative("count", n)
	}
	return cbinding.Handles("array_of_requests", p, n)
}
