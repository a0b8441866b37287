package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/internal/poll"
)

// Waitall blocks until all requests are done or ctx is (the operations then go
// on) (MPI_Waitall). It returns the statuses in the order of the requests, and
// the errors of all of them joined. Nil requests count as done.
func Waitall(ctx context.Context, reqs ...*Request) ([]Status, error) {
	e, t := enterAll(reqs)
	sts, err := waitall(ctx, reqs)
	e.leaveAll(t, "Waitall", err)
	return sts, err
}

// waitall is Waitall, not recorded.
func waitall(ctx context.Context, reqs []*Request) ([]Status, error) {
	sts := make([]Status, len(reqs))
	var errs []error
	for i, r := range reqs {
		if r == nil {
			continue
		}
		if err := r.await(ctx); errors.Is(err, ErrProcFailedPending) {
			errs = append(errs, fmt.Errorf("request %d: %w", i, err))
			continue
		} else if err != nil {
			return nil, err
		}
		sts[i] = r.status
		if err := r.raise(); err != nil {
			errs = append(errs, fmt.Errorf("request %d: %w", i, err))
		}
	}
	return sts, errors.Join(errs...)
}

// Waitany blocks until one of the requests is done and returns its index and result
// (MPI_Waitany). A request that Waitany, Waitsome, Testany or Testsome has returned
// is inactive: all four pass over it from then on, like one that is nil (MPI-4.1,
// Section 3.7.5). Waitany returns index Undefined if no request is active. A request
// that was only looked at, by Wait, Test, Waitall or Testall, is still active.
func Waitany(ctx context.Context, reqs ...*Request) (int, Status, error) {
	e, t := enterAll(reqs)
	i, st, err := waitany(ctx, reqs)
	e.leaveAll(t, "Waitany", err)
	return i, st, err
}

// waitany is Waitany, not recorded.
func waitany(ctx context.Context, reqs []*Request) (int, Status, error) {
	for {
		i, err := awaitAny(ctx, reqs)
		if err != nil || i < 0 {
			return Undefined, Status{}, err
		}
		switch r := reqs[i]; {
		case r.done.Load():
			if r.retire() {
				return i, r.status, r.raise()
			}
		default:
			if err := r.pendingFailure(); err != nil { // nil: acknowledged meanwhile, or done
				return i, Status{}, err
			}
		}
	}
}

// active reports whether Waitany and its relatives may return r.
func (r *Request) active() bool { return r != nil && !r.told.Load() }

// retire makes r, which is done, inactive. It reports false if another call has
// done so before.
func (r *Request) retire() bool { return r.told.CompareAndSwap(false, true) }

// Waitsome blocks until at least one active request is done and returns the indices
// of all that are, which are inactive from then on: see Waitany (MPI_Waitsome). It
// returns nil if no request is active. Their results are got with Wait, which does
// not block then.
func Waitsome(ctx context.Context, reqs ...*Request) ([]int, error) {
	e, t := enterAll(reqs)
	done, err := waitsome(ctx, reqs)
	e.leaveAll(t, "Waitsome", err)
	return done, err
}

// waitsome is Waitsome, not recorded.
func waitsome(ctx context.Context, reqs []*Request) ([]int, error) {
	for {
		i, err := awaitAny(ctx, reqs)
		if err != nil || i < 0 {
			return nil, err
		}
		if done := testsome(reqs); len(done) > 0 {
			return done, nil
		}
		if err := reqs[i].pendingFailure(); err != nil { // nil: acknowledged meanwhile, or done
			return nil, err
		}
	}
}

// Testall reports whether all requests are done (MPI_Testall). It does not
// block. Their results are got with Waitall, which does not block then.
func Testall(reqs ...*Request) bool {
	e, t := enterAll(reqs)
	done := testall(reqs)
	e.leaveAll(t, "Testall", nil)
	return done
}

// testall is Testall, not recorded.
func testall(reqs []*Request) bool {
	for _, r := range reqs {
		if r == nil {
			continue
		}
		if _, ok, _ := r.test(); !ok {
			return false
		}
	}
	return true
}

// Testany returns the index and result of an active request that is done, which is
// inactive from then on, see Waitany; or index Undefined (MPI_Testany). It does
// not block.
func Testany(reqs ...*Request) (int, Status, error) {
	e, t := enterAll(reqs)
	i, st, err := testany(reqs)
	e.leaveAll(t, "Testany", err)
	return i, st, err
}

// testany is Testany, not recorded.
func testany(reqs []*Request) (int, Status, error) {
	for i, r := range reqs {
		if !r.active() {
			continue
		}
		if st, ok, err := r.test(); ok && r.retire() {
			return i, st, err
		}
	}
	return Undefined, Status{}, nil
}

// Testsome returns the indices of the active requests that are done, which are
// inactive from then on: see Waitany (MPI_Testsome).
func Testsome(reqs ...*Request) []int {
	e, t := enterAll(reqs)
	done := testsome(reqs)
	e.leaveAll(t, "Testsome", nil)
	return done
}

// testsome is Testsome, not recorded.
func testsome(reqs []*Request) []int {
	var out []int
	for i, r := range reqs {
		if r.active() && r.done.Load() && r.retire() {
			out = append(out, i)
		}
	}
	return out
}

// awaitAny waits for the first active request to be done. It returns -1 if none is
// active.
func awaitAny(ctx context.Context, reqs []*Request) (int, error) {
	found := -1
	var eng *engine
	look := func() bool {
		some := false
		found = -1
		for i, r := range reqs {
			if !r.active() {
				continue
			}
			some, eng = true, r.eng
			if r.done.Load() || r.pendingFailure() != nil {
				found = i
				return true
			}
		}
		return !some // another goroutine may have retired the last meanwhile
	}
	if look() {
		return found, nil
	}
	eng.coalescer.flushBeforeWait()
	start := eng.prog.begin()
	if eng.prog.spin(ctx, start, look) {
		eng.prog.end(start)
		return found, nil
	}
	w := eng.waiters.get()
	defer w.recycle()
	for i, r := range reqs {
		if !r.active() {
			continue
		}
		if !r.addWaiter(w) {
			for _, q := range reqs[:i] {
				if q != nil {
					q.dropWaiter(w)
				}
			}
			return i, nil
		}
	}
	defer func() {
		for _, r := range reqs {
			if r != nil {
				r.dropWaiter(w)
			}
		}
	}()
	var gap poll.Wait
	for !look() {
		if err := eng.prog.rest(ctx, w, &gap, look); err != nil {
			return -1, err
		}
	}
	eng.prog.end(start)
	return found, nil
}
