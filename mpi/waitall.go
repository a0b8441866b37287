package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/internal/spin"
)

// Waitall blocks until all requests are done or ctx is (the operations then go
// on). It returns the statuses in the order of the requests, and the errors of
// all of them joined. Nil requests count as done.
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

// Waitany blocks until one of the requests is done and returns its index and
// result. It returns index Undefined if all requests are nil. Set the request
// to nil before the next Waitany.
func Waitany(ctx context.Context, reqs ...*Request) (int, Status, error) {
	e, t := enterAll(reqs)
	i, st, err := waitany(ctx, reqs)
	e.leaveAll(t, "Waitany", err)
	return i, st, err
}

// waitany is Waitany, not recorded.
func waitany(ctx context.Context, reqs []*Request) (int, Status, error) {
	i, err := awaitAny(ctx, reqs)
	if err != nil || i < 0 {
		return Undefined, Status{}, err
	}
	if !reqs[i].done.Load() {
		return i, Status{}, reqs[i].pendingFailure()
	}
	return i, reqs[i].status, reqs[i].raise()
}

// Waitsome blocks until at least one request is done and returns the indices
// of all that are. It returns nil if all requests are nil. Their results are
// got with Wait, which does not block then.
func Waitsome(ctx context.Context, reqs ...*Request) ([]int, error) {
	e, t := enterAll(reqs)
	done, err := waitsome(ctx, reqs)
	e.leaveAll(t, "Waitsome", err)
	return done, err
}

// waitsome is Waitsome, not recorded.
func waitsome(ctx context.Context, reqs []*Request) ([]int, error) {
	i, err := awaitAny(ctx, reqs)
	if err != nil || i < 0 {
		return nil, err
	}
	done := testsome(reqs)
	if len(done) == 0 {
		return nil, reqs[i].pendingFailure()
	}
	return done, nil
}

// Testall reports whether all requests are done. It does not block. Their
// results are got with Waitall, which does not block then.
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

// Testany returns the index and result of a request that is done, or index
// Undefined. It does not block.
func Testany(reqs ...*Request) (int, Status, error) {
	e, t := enterAll(reqs)
	i, st, err := testany(reqs)
	e.leaveAll(t, "Testany", err)
	return i, st, err
}

// testany is Testany, not recorded.
func testany(reqs []*Request) (int, Status, error) {
	for i, r := range reqs {
		if r == nil {
			continue
		}
		if st, ok, err := r.test(); ok {
			return i, st, err
		}
	}
	return Undefined, Status{}, nil
}

// Testsome returns the indices of the requests that are done.
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
		if r != nil && r.done.Load() {
			out = append(out, i)
		}
	}
	return out
}

// awaitAny waits for the first request to be done. It returns -1 if there is none.
func awaitAny(ctx context.Context, reqs []*Request) (int, error) {
	found := -1
	var eng *engine
	look := func() bool {
		for i, r := range reqs {
			if r != nil && (r.done.Load() || r.pendingFailure() != nil) {
				found = i
				return true
			}
		}
		return false
	}
	for _, r := range reqs {
		if r != nil {
			eng = r.eng
		}
	}
	if eng == nil || look() {
		return found, nil
	}
	eng.pusher.waiting()
	start := eng.prog.begin()
	if eng.prog.spin(ctx, start, look) {
		eng.prog.end(start)
		return found, nil
	}
	w := eng.waiters.get()
	defer w.recycle()
	for i, r := range reqs {
		if r == nil {
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
	var gap spin.Wait
	for !look() {
		if err := eng.prog.rest(ctx, w, &gap, look); err != nil {
			return -1, err
		}
	}
	eng.prog.end(start)
	return found, nil
}
