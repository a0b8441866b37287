package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Waitall blocks until all requests are done (MPI_Waitall). It returns their statuses in the order
// of the requests, and their errors joined. Nil requests count as done. If ctx ends first it
// returns no statuses and ctx.Err(), and the operations go on.
func Waitall(ctx context.Context, reqs ...*Request) ([]Status, error) {
	w, t := enterAll(reqs)
	sts, err := waitall(ctx, reqs)
	w.leaveAll(t, "Waitall", err)
	return sts, err
}

// waitall is Waitall without profiling.
func waitall(ctx context.Context, reqs []*Request) ([]Status, error) {
	sts := make([]Status, len(reqs))
	var errs []error
	for i, r := range reqs {
		if r == nil {
			continue
		}
		if err := r.request.Await(ctx); errors.Is(err, ErrProcFailedPending) {
			errs = append(errs, fmt.Errorf("request %d: %w", i, err))
			continue
		} else if err != nil {
			return nil, err
		}
		sts[i] = Status(r.request.Status)
		if err := r.raise(); err != nil {
			errs = append(errs, fmt.Errorf("request %d: %w", i, err))
		}
	}
	return sts, errors.Join(errs...)
}

// Waitany blocks until one of the requests is done and returns its index and result (MPI_Waitany).
// A request that Waitany, [Waitsome], [Testany] or [Testsome] has returned is inactive: all four
// skip it from then on, like a nil request (MPI-4.1, Section 3.7.5). Wait, Test, [Waitall] and
// [Testall] leave a request active. Waitany returns index [Undefined] if no request is active or
// ctx ends. With ErrProcFailedPending the index is that of a receive from [AnySource], which goes
// on.
func Waitany(ctx context.Context, reqs ...*Request) (int, Status, error) {
	w, t := enterAll(reqs)
	i, st, err := waitany(ctx, reqs)
	w.leaveAll(t, "Waitany", err)
	return i, st, err
}

// waitany is Waitany without profiling.
func waitany(ctx context.Context, reqs []*Request) (int, Status, error) {
	for {
		i, err := awaitAny(ctx, reqs)
		if err != nil || i < 0 {
			return Undefined, Status{}, err
		}
		switch r := reqs[i]; {
		case r.request.Finished.Load():
			if r.retire() {
				return i, Status(r.request.Status), r.raise()
			}
		default:
			if err := r.request.PendingFailure(); err != nil { // nil: acknowledged meanwhile, or done
				return i, Status{}, err
			}
		}
	}
}

// active reports whether Waitany, Waitsome, Testany and Testsome may return r.
func (r *Request) active() bool { return r != nil && !r.told.Load() }

// retire makes r, which is done, inactive. It reports false if another call has done so before.
func (r *Request) retire() bool { return r.told.CompareAndSwap(false, true) }

// Waitsome blocks until at least one active request is done and returns the indices of all that
// are, which are inactive from then on: see [Waitany] (MPI_Waitsome). It returns nil if no request
// is active. Wait returns their results without blocking. It returns ErrProcFailedPending if no
// request is done and a receive from [AnySource] cannot complete.
func Waitsome(ctx context.Context, reqs ...*Request) ([]int, error) {
	w, t := enterAll(reqs)
	done, err := waitsome(ctx, reqs)
	w.leaveAll(t, "Waitsome", err)
	return done, err
}

// waitsome is Waitsome without profiling.
func waitsome(ctx context.Context, reqs []*Request) ([]int, error) {
	for {
		i, err := awaitAny(ctx, reqs)
		if err != nil || i < 0 {
			return nil, err
		}
		if done := retireDone(reqs); len(done) > 0 {
			return done, nil
		}
		if err := reqs[i].request.PendingFailure(); err != nil { // nil: acknowledged meanwhile, or done
			return nil, err
		}
	}
}

// Testall reports whether all requests are done (MPI_Testall). It does not block. [Waitall] returns
// their results, then without blocking.
func Testall(reqs ...*Request) bool {
	w, t := enterAll(reqs)
	done := testall(reqs)
	w.leaveAll(t, "Testall", nil)
	return done
}

// testall is Testall without profiling.
func testall(reqs []*Request) bool {
	for _, r := range reqs {
		if r == nil {
			continue
		}
		if _, ok, _ := r.request.Test(); !ok {
			return false
		}
	}
	return true
}

// Testany returns the index and result of an active request that is done, which is inactive from
// then on, see [Waitany]; or index [Undefined] (MPI_Testany). It does not block; it polls the
// transport.
func Testany(reqs ...*Request) (int, Status, error) {
	w, t := enterAll(reqs)
	i, st, err := testany(reqs)
	w.leaveAll(t, "Testany", err)
	return i, st, err
}

// testany is Testany without profiling.
func testany(reqs []*Request) (int, Status, error) {
	for i, r := range reqs {
		if !r.active() {
			continue
		}
		if st, ok, err := r.request.Test(); ok && r.retire() {
			return i, Status(st), err
		}
	}
	return Undefined, Status{}, nil
}

// Testsome returns the indices of the active requests that are done, which are inactive from then
// on: see [Waitany] (MPI_Testsome). It does not block; it polls the transport.
func Testsome(reqs ...*Request) []int {
	w, t := enterAll(reqs)
	done := testsome(reqs)
	w.leaveAll(t, "Testsome", nil)
	return done
}

// testsome is Testsome without profiling. A program that calls it again and again makes progress
// (MPI-4.1, Section 3.7.5), so it polls unless something is done already.
func testsome(reqs []*Request) []int {
	if done := retireDone(reqs); done != nil {
		return done
	}
	if !pollAny(reqs) {
		return nil
	}
	return retireDone(reqs)
}

// pollAny polls the transports of active requests. It reports false if there is none.
func pollAny(reqs []*Request) bool {
	var polled *p2p.Engine
	for _, r := range reqs {
		if r.active() && r.request.Engine != polled {
			polled = r.request.Engine
			polled.PollOnce()
		}
	}
	return polled != nil
}

// retireDone retires the active requests that are done, and returns their indices.
func retireDone(reqs []*Request) []int {
	var out []int
	for i, r := range reqs {
		if r.active() && r.request.Finished.Load() && r.retire() {
			out = append(out, i)
		}
	}
	return out
}

// awaitAny waits until an active request is done and returns its index, or -1 if none is active.
func awaitAny(ctx context.Context, reqs []*Request) (int, error) {
	found := -1
	var eng *p2p.Engine
	look := func() bool {
		some := false
		found = -1
		for i, r := range reqs {
			if !r.active() {
				continue
			}
			some, eng = true, r.request.Engine
			if r.request.Finished.Load() || r.request.PendingFailure() != nil {
				found = i
				return true
			}
		}
		return !some // another goroutine may have retired the last one meanwhile
	}
	if look() {
		return found, nil
	}
	eng.Coalescer.FlushBeforeWait()
	start := eng.Progress.Begin()
	if eng.Progress.Spin(ctx, start, look) {
		eng.Progress.End(start)
		return found, nil
	}
	w := eng.Waiters.Get()
	defer w.Recycle()
	for i, r := range reqs {
		if !r.active() {
			continue
		}
		if !r.request.AddWaiter(w) {
			for _, q := range reqs[:i] {
				if q != nil {
					q.request.DropWaiter(w)
				}
			}
			return i, nil
		}
	}
	defer func() {
		for _, r := range reqs {
			if r != nil {
				r.request.DropWaiter(w)
			}
		}
	}()
	var gap poll.Wait
	for !look() {
		if err := eng.Progress.Rest(ctx, w, &gap, look); err != nil {
			return -1, err
		}
	}
	eng.Progress.End(start)
	return found, nil
}
