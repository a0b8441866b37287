package mpi

import (
	"context"
	"errors"
	"fmt"
)

// LockMode is the kind of a lock on a window (MPI_Win_lock).
type LockMode uint8

// Lock modes (MPI-4.1, Section 12.5.3).
const (
	LockShared    LockMode = iota + 1 // others may hold a shared lock too
	LockExclusive                     // no other rank holds a lock
)

// Fence completes all operations of all ranks on the window: when it returns, the operations of the
// caller are complete, and those that other ranks started before their Fence are in the caller's
// memory (MPI-4.1, Section 12.5.1). All ranks must call it. It blocks until all have; until then
// the buffers of operations must not be touched. It takes [AssertNoStore], [AssertNoPut],
// [AssertNoPrecede] and [AssertNoSucceed]. It returns the errors of the caller's operations,
// ErrEpoch if a promise of AssertNoPrecede is broken, and ErrOption for another assert.
func (w *Win[T]) Fence(ctx context.Context, asserts ...Assert) error {
	t := w.w.of.enter()
	a, err := joinAsserts(asserts, assertsFence)
	if err != nil {
		a = 0 // take part all the same: the other ranks wait
	}
	err = errors.Join(err, w.w.fence(ctx, a))
	w.w.of.leave(t, "Win.Fence", NoPeer, 0, 0, err)
	return err
}

// Flush completes the caller's operations on target, both here and there; the target takes no part
// (MPI-4.1, Section 12.5.4). It blocks until they are complete; until then their buffers must not
// be touched. It needs no lock. Errors to test for: [RankError], and those of the operations, as
// ErrRange and ErrAccess.
func (w *Win[T]) Flush(ctx context.Context, target int) error {
	t := w.w.of.enter()
	err := w.w.flush(ctx, target)
	w.w.of.leave(t, "Win.Flush", target, 0, 0, err)
	return err
}

// FlushAll is [Win.Flush] for all targets (MPI_Win_flush_all). It blocks until the operations are
// complete.
func (w *Win[T]) FlushAll(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.flushAll(ctx)
	w.w.of.leave(t, "Win.FlushAll", NoPeer, 0, 0, err)
	return err
}

// FlushLocal blocks until the buffers of the caller's operations on target may be used again
// (MPI_Win_flush_local). The effect of writes may not be visible at the target yet.
func (w *Win[T]) FlushLocal(ctx context.Context, target int) error {
	t := w.w.of.enter()
	err := w.w.flushLocal(ctx, target)
	w.w.of.leave(t, "Win.FlushLocal", target, 0, 0, err)
	return err
}

// FlushLocalAll is [Win.FlushLocal] for all targets (MPI_Win_flush_local_all). It blocks until the
// buffers of all operations may be used again.
func (w *Win[T]) FlushLocalAll(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.each(func(rank int) error { return w.w.flushLocal(ctx, rank) })
	w.w.of.leave(t, "Win.FlushLocalAll", NoPeer, 0, 0, err)
	return err
}

// Sync makes the effect of other ranks' operations on the caller's memory visible to the caller, if
// it has learned of them otherwise than by a message or a synchronization call (MPI-4.1, Section
// 12.5.4). It does not block.
func (w *Win[T]) Sync() { w.w.syncMemory() }

// Lock blocks until the caller holds a lock on the window of target; the target takes no part
// (MPI-4.1, Section 12.5.3). Locks are granted first come, first served. It takes [AssertNoCheck].
// It returns ErrEpoch if the caller already holds a lock there, and for a window with
// [InfoNoLocks]; ErrOption for another mode or assert; and a [RankError] if target has failed. If
// ctx ends first, the request is withdrawn.
func (w *Win[T]) Lock(ctx context.Context, mode LockMode, target int, asserts ...Assert) error {
	t := w.w.of.enter()
	a, err := joinAsserts(asserts, assertsLock)
	if err == nil {
		err = w.w.lock(ctx, mode, target, a)
	}
	w.w.of.leave(t, "Win.Lock", target, 0, 0, err)
	return err
}

// Unlock completes the caller's operations on target and releases the lock (MPI_Win_unlock). It
// blocks until the operations are complete; until then their buffers must not be touched. If ctx
// ends first the lock is still held. It returns ErrEpoch if the caller holds no lock there, and the
// errors of the operations.
func (w *Win[T]) Unlock(ctx context.Context, target int) error {
	t := w.w.of.enter()
	err := w.w.unlock(ctx, target)
	w.w.of.leave(t, "Win.Unlock", target, 0, 0, err)
	return err
}

// LockAll takes a shared lock on the windows of all ranks (MPI_Win_lock_all). It blocks until all
// have granted it. It takes [AssertNoCheck]. It fails like [Win.Lock], and then releases the locks
// that it has taken.
func (w *Win[T]) LockAll(ctx context.Context, asserts ...Assert) error {
	t := w.w.of.enter()
	a, err := joinAsserts(asserts, assertsLock)
	if err == nil {
		err = w.w.lockAll(ctx, a)
	}
	w.w.of.leave(t, "Win.LockAll", NoPeer, 0, 0, err)
	return err
}

// UnlockAll releases the locks of [Win.LockAll] (MPI_Win_unlock_all). It blocks until the
// operations are complete. If ctx ends first all locks are still held: call UnlockAll again. It
// returns ErrEpoch if the caller does not hold all of them.
func (w *Win[T]) UnlockAll(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.unlockAll(ctx)
	w.w.of.leave(t, "Win.UnlockAll", NoPeer, 0, 0, err)
	return err
}

func (w *window) fence(ctx context.Context, a Assert) error {
	w.syncMemory()
	var err error
	if a&AssertNoPrecede == 0 {
		err = w.flushAll(ctx)
	} else if err = w.usable(); err == nil && !w.quiet() {
		err = errors.Join(fmt.Errorf("%w: operations before a Fence with AssertNoPrecede", ErrEpoch), w.flushAll(ctx))
	}
	if a&AssertNoPrecede != 0 && a&AssertNoSucceed != 0 && w.shared == nil {
		return err
	}
	// The barrier is entered even after errors, because the other ranks wait in it.
	if e := Barrier(ctx, w.c); e != nil && err == nil {
		err = e
	}
	w.syncMemory()
	if w.shared != nil {
		// Other ranks access this memory directly. They may do so once the
		// operations on it are ordered here.
		if e := Barrier(ctx, w.c); e != nil && err == nil {
			err = e
		}
		w.syncMemory()
	}
	return err
}

// flushLocal completes operations locally. Where that takes as much as completing them at the
// target, it does that.
func (w *window) flushLocal(ctx context.Context, target int) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	return w.to[target].local(ctx, w)
}

func (w *window) flush(ctx context.Context, target int) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	w.syncMemory()
	return w.to[target].flush(ctx, w)
}

// flushAll starts the flush of all targets before it waits for one.
func (w *window) flushAll(ctx context.Context) error {
	if err := w.usable(); err != nil {
		return err
	}
	for rank := range w.to {
		_ = w.to[rank].startFlush(ctx, w) // an error: flush repeats it
	}
	return w.each(func(rank int) error { return w.to[rank].flush(ctx, w) })
}

// each calls f for all ranks and joins the errors.
func (w *window) each(f func(rank int) error) error {
	var errs []error
	for rank := range w.to {
		if err := f(rank); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (w *window) lock(ctx context.Context, mode LockMode, target int, a Assert) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	if mode != LockShared && mode != LockExclusive {
		return fmt.Errorf("%w: lock mode %d", ErrOption, mode)
	}
	if w.hints.Load().noLocks {
		return fmt.Errorf("%w: a lock in spite of %s", ErrEpoch, InfoNoLocks)
	}
	t := &w.to[target]
	t.mu.Lock()
	held := t.locked
	if !held {
		t.locked, t.trusted = true, a&AssertNoCheck != 0
	}
	t.mu.Unlock()
	if held {
		return fmt.Errorf("%w: rank %d is locked already", ErrEpoch, target)
	}
	if a&AssertNoCheck != 0 {
		w.syncMemory()
		return nil
	}
	err := w.ask(ctx, target, amHeader{kind: amLock, op: uint8(mode)})
	w.syncMemory()
	if err != nil {
		t.unlocked()
		if ctx.Err() != nil && w.usable() == nil {
			// The lock may be granted later: have the target release it then.
			_ = w.tell(context.WithoutCancel(ctx), target, amHeader{kind: amUnlock}, nil)
		}
	}
	return err
}

func (w *window) unlock(ctx context.Context, target int) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	t := &w.to[target]
	t.mu.Lock()
	held, trusted := t.locked, t.trusted
	t.mu.Unlock()
	if !held {
		return fmt.Errorf("%w: rank %d is not locked", ErrEpoch, target)
	}
	w.syncMemory()
	err := t.flush(ctx, w)
	if err != nil && ctx.Err() != nil && w.usable() == nil {
		return err // still locked
	}
	t.unlocked()
	if trusted {
		return err
	}
	// The lock is released even if ctx has ended since, because other ranks wait for it.
	if e := w.tell(context.WithoutCancel(ctx), target, amHeader{kind: amUnlock}, nil); e != nil && err == nil {
		err = e
	}
	return err
}

func (t *winTarget) unlocked() {
	t.mu.Lock()
	t.locked = false
	t.mu.Unlock()
}

// syncMemory orders the caller's accesses to its memory with those of other ranks in the sense of
// the Go memory model: their earlier accesses happen before the caller's later ones, and the
// caller's earlier ones before their later ones.
func (w *window) syncMemory() {
	w.hold()
	if w.shared != nil {
		w.shared.order.Add(1)
	}
	w.release()
}

// hold excludes other active messages from the memory, and orders what follows after the RDMA
// placements that have ended.
func (w *window) hold() {
	w.memory.Lock()
	if w.mr != nil {
		w.mr.Sync()
	}
}

// release ends hold, and orders later RDMA accesses after it.
func (w *window) release() {
	if w.mr != nil {
		w.mr.Sync()
	}
	w.memory.Unlock()
}

func (w *window) lockAll(ctx context.Context, a Assert) error {
	for rank := range w.to {
		if err := w.lock(ctx, LockShared, rank, a); err != nil {
			ctx = context.WithoutCancel(ctx) // the locks must not stay
			for r := range rank {
				err = errors.Join(err, w.unlock(ctx, r))
			}
			return err
		}
	}
	return nil
}

// unlockAll completes all operations before it releases the first lock.
func (w *window) unlockAll(ctx context.Context) error {
	w.syncMemory()
	err := w.flushAll(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, w.each(func(rank int) error { return w.unlock(ctx, rank) }))
}
