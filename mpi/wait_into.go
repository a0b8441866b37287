package mpi

import (
	"context"
	"errors"
	"fmt"
)

// The calls of this file are those of waitall.go that store their results where the caller says, each request's
// status and error by itself, and allocate nothing: for programs that wait again and again.

// WaitallInto is [Waitall] that stores the statuses and the errors of the requests in sts and errs, in the order of
// the requests (MPI_Waitall). Either may be nil; else it must be as long as reqs. It allocates nothing unless a
// request has failed. An entry of errs is nil for a request that has succeeded, and ErrProcFailedPending for one that
// goes on. If ctx ends first it returns ctx.Err(), and the operations go on; otherwise, if some have failed, their
// errors joined.
func WaitallInto(ctx context.Context, reqs []*Request, sts []Status, errs []error) error {
	w, t := enterAll(reqs)
	err := waitallInto(ctx, reqs, sts, errs)
	w.leaveAll(t, "Waitall", err)
	return err
}

// waitallInto is WaitallInto without profiling.
func waitallInto(ctx context.Context, reqs []*Request, sts []Status, errs []error) error {
	for _, r := range reqs {
		if r == nil {
			continue
		}
		if err := r.request.Await(ctx); err != nil && !errors.Is(err, ErrProcFailedPending) {
			return err
		}
	}
	return results(reqs, sts, errs)
}

// TestallInto is [Testall] that stores results as [WaitallInto] does, if all requests are done (MPI_Testall). It does
// not block; it polls the transport.
func TestallInto(reqs []*Request, sts []Status, errs []error) (done bool, err error) {
	w, t := enterAll(reqs)
	if done = testall(reqs); done {
		err = results(reqs, sts, errs)
	}
	w.leaveAll(t, "Testall", err)
	return done, err
}

// results stores the results of requests that are done, or cannot be, and returns their errors joined.
func results(reqs []*Request, sts []Status, errs []error) error {
	var failed []error
	for i, r := range reqs {
		st, err := r.result()
		if sts != nil {
			sts[i] = st
		}
		if errs != nil {
			errs[i] = err
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("request %d: %w", i, err))
		}
	}
	return errors.Join(failed...)
}

// result returns the result of a request that is done or cannot be; of nil the empty one.
func (r *Request) result() (Status, error) {
	switch {
	case r == nil:
		return Status{}, nil
	case r.request.Finished.Load():
		return Status(r.request.Status), r.raise()
	}
	return Status{}, r.request.PendingFailure()
}

// WaitsomeInto is [Waitsome] that stores the indices of the requests that are done in done, which must be as long as
// reqs, and their statuses and errors at the same places of sts and errs, either of which may be nil
// (MPI_Waitsome). It returns how many there are; [Undefined] if no request is active. It allocates nothing. err is
// why it has waited in vain: ctx.Err(), or ErrProcFailedPending if no request is done and a receive from
// [AnySource] cannot complete.
func WaitsomeInto(ctx context.Context, reqs []*Request, done []int, sts []Status, errs []error) (n int, err error) {
	w, t := enterAll(reqs)
	n, err = waitsomeInto(ctx, reqs, done, sts, errs)
	w.leaveAll(t, "Waitsome", err)
	return n, err
}

// waitsomeInto is WaitsomeInto without profiling.
func waitsomeInto(ctx context.Context, reqs []*Request, done []int, sts []Status, errs []error) (int, error) {
	for {
		i, err := awaitAny(ctx, reqs)
		if err != nil {
			return 0, err
		}
		if i < 0 {
			return Undefined, nil
		}
		if n := retireInto(reqs, done, sts, errs); n > 0 {
			return n, nil
		}
		if err := reqs[i].request.PendingFailure(); err != nil { // nil: acknowledged meanwhile, or done
			return 0, err
		}
	}
}

// TestsomeInto is [WaitsomeInto] that does not block: it returns 0 if no active request is done (MPI_Testsome). It
// polls the transport.
func TestsomeInto(reqs []*Request, done []int, sts []Status, errs []error) int {
	w, t := enterAll(reqs)
	n := retireInto(reqs, done, sts, errs)
	if n == 0 {
		if pollAny(reqs) {
			n = retireInto(reqs, done, sts, errs)
		} else {
			n = Undefined
		}
	}
	w.leaveAll(t, "Testsome", nil)
	return n
}

// retireInto retires the active requests that are done and stores their results. It returns how many there are.
func retireInto(reqs []*Request, done []int, sts []Status, errs []error) (n int) {
	for i, r := range reqs {
		if !r.active() || !r.request.Finished.Load() || !r.retire() {
			continue
		}
		st, err := r.result()
		done[n] = i
		if sts != nil {
			sts[n] = st
		}
		if errs != nil {
			errs[n] = err
		}
		n++
	}
	return n
}
