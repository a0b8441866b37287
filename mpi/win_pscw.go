package mpi

import (
	"context"
	"errors"
	"fmt"
)

// Generalized active target synchronization (PSCW): Post, Start, Complete and Wait of some ranks
// only (MPI-4.1, Section 12.5.2).

// Post opens the caller's memory to the given origins, which access it between Start and Complete
// (MPI-4.1, Section 12.5.2). It does not block. It returns ErrEpoch if no [Win.Wait] has followed
// the last Post, and ErrRank for a rank that does not exist or is given twice.
func (w *Win[T]) Post(origins ...int) error { return w.PostAssert(0, origins...) }

// Start blocks until all given targets have called [Win.Post] for the caller (MPI_Win_start). If
// that fails, as when ctx ends, the window is not started: Start may be called again, with the same
// or other targets. It returns ErrEpoch if no [Win.Complete] has followed the last Start, and
// ErrRank for a rank that does not exist or is given twice.
func (w *Win[T]) Start(ctx context.Context, targets ...int) error {
	return w.StartAssert(ctx, 0, targets...)
}

// Complete completes the operations since [Win.Start] and notifies the targets (MPI_Win_complete).
// It blocks until the operations are complete; until then their buffers must not be touched. If ctx
// ends first, the window stays started for the targets that have not been notified: call Complete
// again. It returns the errors of the operations, and ErrEpoch without a Start.
func (w *Win[T]) Complete(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.complete(ctx)
	w.w.of.leave(t, "Win.Complete", NoPeer, 0, 0, err)
	return err
}

// Wait blocks until all origins of the last [Win.Post] have called Complete: then the effect of
// their operations is in the caller's memory (MPI_Win_wait). It returns ErrEpoch without a Post,
// and a [RankError] if an origin has failed.
func (w *Win[T]) Wait(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.waitPosted(ctx)
	w.w.of.leave(t, "Win.Wait", NoPeer, 0, 0, err)
	return err
}

// Test reports whether [Win.Wait] would return at once, and if so does what it does (MPI_Win_test).
// It does not block. It returns ErrEpoch without a Post.
func (w *Win[T]) Test() (bool, error) { return w.w.testPosted() }

func (w *window) post(origins []int, a Assert) error {
	if _, err := joinAsserts([]Assert{a}, assertsPost); err != nil {
		return err
	}
	if err := w.checkGroup(origins); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.posted != nil {
		return fmt.Errorf("%w: Post before Wait", ErrEpoch)
	}
	w.syncMemory()
	posted := make([]*request, 0, len(origins))
	for _, o := range origins {
		r, err := w.c.comm.irecv(slotWin, nil, o, winTagComplete)
		if err == nil {
			posted = append(posted, r)
			if a&AssertNoCheck != 0 {
				continue
			}
			r, err = w.c.comm.isend(slotWin, sendStandard, nil, o, winTagPost)
		}
		if err != nil {
			for _, r := range posted {
				r.cancel(ErrCanceled)
			}
			return err
		}
		r.free()
	}
	w.posted = posted
	return nil
}

func (w *window) start(ctx context.Context, targets []int, a Assert) error {
	if _, err := joinAsserts([]Assert{a}, assertsStart); err != nil {
		return err
	}
	if err := w.checkGroup(targets); err != nil {
		return err
	}
	w.mu.Lock()
	busy := w.started != nil
	if !busy {
		w.started = append([]int{}, targets...)
	}
	w.mu.Unlock()
	if busy {
		return fmt.Errorf("%w: Start before Complete", ErrEpoch)
	}
	if a&AssertNoCheck != 0 {
		return nil
	}
	for i, t := range targets {
		if w.to[t].takePost() {
			continue
		}
		if _, err := w.c.recv(ctx, slotWin, nil, t, winTagPost); err != nil {
			// The Posts of the targets before t are received: the next Start uses them.
			for _, t := range targets[:i] {
				w.to[t].keepPost()
			}
			w.mu.Lock()
			w.started = nil
			w.mu.Unlock()
			return err
		}
	}
	return nil
}

func (w *window) complete(ctx context.Context) error {
	w.mu.Lock()
	targets := w.started
	w.started = nil
	w.mu.Unlock()
	if targets == nil {
		return fmt.Errorf("%w: Complete without Start", ErrEpoch)
	}
	var errs []error
	for _, t := range targets {
		_ = w.to[t].startFlush(ctx, w) // an error: flush repeats it
	}
	for i, t := range targets {
		err := w.to[t].flush(ctx, w)
		if err == nil || ctx.Err() == nil {
			// The target is notified even after an error, because it waits.
			err = errors.Join(err, w.c.send(ctx, slotWin, sendStandard, nil, t, winTagComplete))
		}
		errs = append(errs, err)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			w.mu.Lock()
			w.started = targets[i:]
			w.mu.Unlock()
			break
		}
	}
	return errors.Join(errs...)
}

func (w *window) waitPosted(ctx context.Context) error {
	w.mu.Lock()
	posted := w.posted
	w.mu.Unlock()
	if posted == nil {
		return fmt.Errorf("%w: Wait without Post", ErrEpoch)
	}
	for _, r := range posted {
		if _, err := r.wait(ctx); err != nil {
			return err
		}
	}
	w.endPosted()
	return nil
}

func (w *window) testPosted() (bool, error) {
	w.mu.Lock()
	posted := w.posted
	w.mu.Unlock()
	if posted == nil {
		return false, fmt.Errorf("%w: Test without Post", ErrEpoch)
	}
	for _, r := range posted {
		if _, done, err := r.test(); !done || err != nil {
			return false, err
		}
	}
	w.endPosted()
	return true, nil
}

func (w *window) endPosted() {
	w.mu.Lock()
	for _, r := range w.posted {
		r.free()
	}
	w.posted = nil
	w.mu.Unlock()
	w.syncMemory()
}

// checkGroup checks the ranks of Post or Start.
func (w *window) checkGroup(ranks []int) error {
	if err := w.usable(); err != nil {
		return err
	}
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if err := w.checkTarget(r); err != nil {
			return err
		}
		if seen[r] {
			return fmt.Errorf("%w: %d given twice", ErrRank, r)
		}
		seen[r] = true
	}
	return nil
}
