package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/rma"
)

// LockMode is the kind of a lock on a window (MPI_Win_lock).
type LockMode uint8

// Lock modes (MPI-4.1, Section 12.5.3).
const (
	LockShared    = LockMode(rma.LockShared)    // others may hold a shared lock too
	LockExclusive = LockMode(rma.LockExclusive) // no other rank holds a lock
)

// Fence completes all operations of all ranks on the window: when it returns, the operations of the
// caller are complete, and those that other ranks started before their Fence are in the caller's
// memory (MPI-4.1, Section 12.5.1). All ranks must call it. It blocks until all have; until then
// the buffers of operations must not be touched. It takes [AssertNoStore], [AssertNoPut],
// [AssertNoPrecede] and [AssertNoSucceed]. It returns the errors of the caller's operations,
// ErrEpoch if a promise of AssertNoPrecede is broken, and ErrOption for another assert.
func (w *Win[T]) Fence(ctx context.Context, asserts ...Assert) error {
	return w.w.Fence(ctx, asserts...)
}

// Flush completes the caller's operations on target, both here and there; the target takes no part
// (MPI-4.1, Section 12.5.4). It blocks until they are complete; until then their buffers must not
// be touched. It needs no lock. Errors to test for: [RankError], and those of the operations, as
// ErrRange and ErrAccess.
func (w *Win[T]) Flush(ctx context.Context, target int) error {
	return w.w.Flush(ctx, target)
}

// FlushAll is [Win.Flush] for all targets (MPI_Win_flush_all). It blocks until the operations are
// complete.
func (w *Win[T]) FlushAll(ctx context.Context) error {
	return w.w.FlushAll(ctx)
}

// FlushLocal blocks until the buffers of the caller's operations on target may be used again
// (MPI_Win_flush_local). The effect of writes may not be visible at the target yet.
func (w *Win[T]) FlushLocal(ctx context.Context, target int) error {
	return w.w.FlushLocal(ctx, target)
}

// FlushLocalAll is [Win.FlushLocal] for all targets (MPI_Win_flush_local_all). It blocks until the
// buffers of all operations may be used again.
func (w *Win[T]) FlushLocalAll(ctx context.Context) error {
	return w.w.FlushLocalAll(ctx)
}

// Sync makes the effect of other ranks' operations on the caller's memory visible to the caller, if
// it has learned of them otherwise than by a message or a synchronization call (MPI-4.1, Section
// 12.5.4). It does not block.
func (w *Win[T]) Sync() {
	w.w.Sync()
}

// Lock blocks until the caller holds a lock on the window of target; the target takes no part
// (MPI-4.1, Section 12.5.3). Locks are granted first come, first served. It takes [AssertNoCheck].
// It returns ErrEpoch if the caller already holds a lock there, and for a window with
// [InfoNoLocks]; ErrOption for another mode or assert; and a [RankError] if target has failed. If
// ctx ends first, the request is withdrawn.
func (w *Win[T]) Lock(ctx context.Context, mode LockMode, target int, asserts ...Assert) error {
	return w.w.Lock(ctx, mode, target, asserts...)
}

// Unlock completes the caller's operations on target and releases the lock (MPI_Win_unlock). It
// blocks until the operations are complete; until then their buffers must not be touched. If ctx
// ends first the lock is still held. It returns ErrEpoch if the caller holds no lock there, and the
// errors of the operations.
func (w *Win[T]) Unlock(ctx context.Context, target int) error {
	return w.w.Unlock(ctx, target)
}

// LockAll takes a shared lock on the windows of all ranks (MPI_Win_lock_all). It blocks until all
// have granted it. It takes [AssertNoCheck]. It fails like [Win.Lock], and then releases the locks
// that it has taken.
func (w *Win[T]) LockAll(ctx context.Context, asserts ...Assert) error {
	return w.w.LockAll(ctx, asserts...)
}

// UnlockAll releases the locks of [Win.LockAll] (MPI_Win_unlock_all). It blocks until the
// operations are complete. If ctx ends first all locks are still held: call UnlockAll again. It
// returns ErrEpoch if the caller does not hold all of them.
func (w *Win[T]) UnlockAll(ctx context.Context) error {
	return w.w.UnlockAll(ctx)
}
