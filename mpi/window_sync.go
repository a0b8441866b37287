package mpi

import (
	"context"
	"errors"

	"github.com/weftstack/weft/mpi/internal/rma"
)

// Fence completes all operations of all ranks on the window: see [Win.Fence] (MPI_Win_fence). It blocks until all ranks
// have called it.
func (w *Window) Fence(ctx context.Context, asserts ...Assert) error {
	t := w.of.enter()
	a, err := joinAsserts(asserts, rma.AssertsFence)
	if err != nil {
		a = 0 // take part all the same: the other ranks wait
	}
	err = errors.Join(err, w.rma.Fence(ctx, a))
	w.of.leave(t, "Win.Fence", NoPeer, 0, 0, err)
	return err
}

// Flush completes the caller's operations on target, here and there: see [Win.Flush] (MPI_Win_flush). It blocks until
// they are complete.
func (w *Window) Flush(ctx context.Context, target int) error {
	t := w.of.enter()
	err := w.rma.Flush(ctx, target)
	w.of.leave(t, "Win.Flush", target, 0, 0, err)
	return err
}

// FlushAll is [Window.Flush] for all targets (MPI_Win_flush_all).
func (w *Window) FlushAll(ctx context.Context) error {
	t := w.of.enter()
	err := w.rma.FlushAll(ctx)
	w.of.leave(t, "Win.FlushAll", NoPeer, 0, 0, err)
	return err
}

// FlushLocal blocks until the buffers of the caller's operations on target may be used again (MPI_Win_flush_local).
func (w *Window) FlushLocal(ctx context.Context, target int) error {
	t := w.of.enter()
	err := w.rma.FlushLocal(ctx, target)
	w.of.leave(t, "Win.FlushLocal", target, 0, 0, err)
	return err
}

// FlushLocalAll is [Window.FlushLocal] for all targets (MPI_Win_flush_local_all).
func (w *Window) FlushLocalAll(ctx context.Context) error {
	t := w.of.enter()
	err := w.rma.FlushLocalAll(ctx)
	w.of.leave(t, "Win.FlushLocalAll", NoPeer, 0, 0, err)
	return err
}

// Lock blocks until the caller holds a lock on the window of target: see [Win.Lock] (MPI_Win_lock).
func (w *Window) Lock(ctx context.Context, mode LockMode, target int, asserts ...Assert) error {
	t := w.of.enter()
	a, err := joinAsserts(asserts, rma.AssertsLock)
	if err == nil {
		err = w.rma.Lock(ctx, rma.LockMode(mode), target, a)
	}
	w.of.leave(t, "Win.Lock", target, 0, 0, err)
	return err
}

// Unlock completes the caller's operations on target and releases the lock: see [Win.Unlock] (MPI_Win_unlock). It
// blocks until the operations are complete.
func (w *Window) Unlock(ctx context.Context, target int) error {
	t := w.of.enter()
	err := w.rma.Unlock(ctx, target)
	w.of.leave(t, "Win.Unlock", target, 0, 0, err)
	return err
}

// LockAll takes a shared lock on the windows of all ranks: see [Win.LockAll] (MPI_Win_lock_all). It blocks until
// all have granted it.
func (w *Window) LockAll(ctx context.Context, asserts ...Assert) error {
	t := w.of.enter()
	a, err := joinAsserts(asserts, rma.AssertsLock)
	if err == nil {
		err = w.rma.LockAll(ctx, a)
	}
	w.of.leave(t, "Win.LockAll", NoPeer, 0, 0, err)
	return err
}

// UnlockAll releases the locks of [Window.LockAll]: see [Win.UnlockAll] (MPI_Win_unlock_all). It blocks until the
// operations are complete.
func (w *Window) UnlockAll(ctx context.Context) error {
	t := w.of.enter()
	err := w.rma.UnlockAll(ctx)
	w.of.leave(t, "Win.UnlockAll", NoPeer, 0, 0, err)
	return err
}

// Sync orders the caller's accesses to its memory with those of other ranks: see [Win.Sync] (MPI_Win_sync). It does not
// block.
func (w *Window) Sync() { w.rma.Sync() }

// Start blocks until all given targets have called Post for the caller: see [Win.Start] (MPI_Win_start).
func (w *Window) Start(ctx context.Context, targets ...int) error {
	return w.StartAssert(ctx, 0, targets...)
}

// Complete completes the operations since Start and notifies the targets: see [Win.Complete] (MPI_Win_complete). It
// blocks until the operations are complete.
func (w *Window) Complete(ctx context.Context) error {
	t := w.of.enter()
	err := w.rma.Complete(ctx)
	w.of.leave(t, "Win.Complete", NoPeer, 0, 0, err)
	return err
}

// Wait blocks until all origins of the last Post have called Complete: see [Win.Wait] (MPI_Win_wait).
func (w *Window) Wait(ctx context.Context) error {
	t := w.of.enter()
	err := w.rma.Wait(ctx)
	w.of.leave(t, "Win.Wait", NoPeer, 0, 0, err)
	return err
}

// Post opens the caller's memory to the given origins: see [Win.Post] (MPI_Win_post). It does not block.
func (w *Window) Post(origins ...int) error {
	return w.PostAssert(0, origins...)
}

// Test reports whether [Window.Wait] would return at once, and if so does what it does (MPI_Win_test).
func (w *Window) Test() (bool, error) {
	return w.rma.Test()
}

// PostAssert is [Window.Post] with promises (MPI_Win_post).
func (w *Window) PostAssert(a Assert, origins ...int) error {
	t := w.of.enter()
	err := w.rma.Post(origins, rma.Assert(a))
	w.of.leave(t, "Win.Post", NoPeer, 0, 0, err)
	return err
}

// StartAssert is [Window.Start] with promises (MPI_Win_start). It blocks as Start does.
func (w *Window) StartAssert(ctx context.Context, a Assert, targets ...int) error {
	t := w.of.enter()
	err := w.rma.Start(ctx, targets, rma.Assert(a))
	w.of.leave(t, "Win.Start", NoPeer, 0, 0, err)
	return err
}
