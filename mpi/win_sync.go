package mpi

import (
	"context"
	"errors"
	"fmt"
)

// LockMode is how a rank locks a window (MPI_Win_lock).
type LockMode uint8

// Lock modes (MPI-4.1, Section 12.5.3).
const (
	LockShared    LockMode = iota + 1 // others may hold a shared lock too
	LockExclusive                     // nobody else holds a lock
)

// Fence completes all operations of all ranks on the window: when it returns,
// what the caller started is complete, and what the others wrote before their
// Fence is in the caller's memory. All ranks must call it (MPI-4.1, Section
// 12.5.1). It returns the errors of the caller's operations. It may be promised
// AssertNoStore, AssertNoPut, AssertNoPrecede and AssertNoSucceed. It blocks
// until all ranks have called it; until then the buffers of operations must not
// be touched.
func (w *Win[T]) Fence(ctx context.Context, asserts ...Assert) error {
	t := w.w.of.enter()
	a, err := joinAsserts(asserts, assertsFence)
	if err != nil {
		a = 0 // the others wait
	}
	err = errors.Join(err, w.w.fence(ctx, a))
	w.w.of.leave(t, "Win.Fence", NoPeer, 0, 0, err)
	return err
}

// Flush completes the caller's operations on target, there and here. The target
// takes no part (MPI-4.1, Section 12.5.4). It blocks until they are; until then
// their buffers must not be touched. Errors to test for: ErrEpoch, RankError,
// and those of the operations.
func (w *Win[T]) Flush(ctx context.Context, target int) error {
	t := w.w.of.enter()
	err := w.w.flush(ctx, target)
	w.w.of.leave(t, "Win.Flush", target, 0, 0, err)
	return err
}

// FlushAll is Flush for all targets (MPI_Win_flush_all). It blocks until the
// operations are complete.
func (w *Win[T]) FlushAll(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.flushAll(ctx)
	w.w.of.leave(t, "Win.FlushAll", NoPeer, 0, 0, err)
	return err
}

// FlushLocal waits until the buffers of the caller's operations on target may
// be used again; the effect of writes may not be visible at the target yet
// (MPI_Win_flush_local).
func (w *Win[T]) FlushLocal(ctx context.Context, target int) error {
	t := w.w.of.enter()
	err := w.w.flushLocal(ctx, target)
	w.w.of.leave(t, "Win.FlushLocal", target, 0, 0, err)
	return err
}

// FlushLocalAll is FlushLocal for all targets (MPI_Win_flush_local_all). It
// blocks until the operations are complete.
func (w *Win[T]) FlushLocalAll(ctx context.Context) error {
	t := w.w.of.enter()
	err := w.w.each(func(rank int) error { return w.w.flushLocal(ctx, rank) })
	w.w.of.leave(t, "Win.FlushLocalAll", NoPeer, 0, 0, err)
	return err
}

// Sync makes what the operations of others did to the caller's memory visible
// to the caller, if it learned of it in another way than by a message or a
// synchronization call (MPI-4.1, Section 12.5.4).
func (w *Win[T]) Sync() { w.w.syncMemory() }

// Lock waits until the caller holds a lock on the window of target; the target
// takes no part (MPI-4.1, Section 12.5.3). It returns ErrEpoch if the caller
// holds one, and for a window with InfoNoLocks. Locks are granted in the order
// they are asked for. It may be promised AssertNoCheck.
func (w *Win[T]) Lock(ctx context.Context, mode LockMode, target int, asserts ...Assert) error {
	t := w.w.of.enter()
	a, err := joinAsserts(asserts, assertsLock)
	if err == nil {
		err = w.w.lock(ctx, mode, target, a)
	}
	w.w.of.leave(t, "Win.Lock", target, 0, 0, err)
	return err
}

// Unlock completes the caller's operations on target and gives the lock back
// (MPI_Win_unlock). It returns ErrEpoch if the caller holds none. It blocks
// until the operations are complete; until then their buffers must not be
// touched.
func (w *Win[T]) Unlock(ctx context.Context, target int) error {
	t := w.w.of.enter()
	err := w.w.unlock(ctx, target)
	w.w.of.leave(t, "Win.Unlock", target, 0, 0, err)
	return err
}

// LockAll takes a shared lock on the windows of all ranks (MPI_Win_lock_all).
// It may be promised AssertNoCheck. It blocks until all have granted it.
func (w *Win[T]) LockAll(ctx context.Context, asserts ...Assert) error {
	t := w.w.of.enter()
	a, err := joinAsserts(asserts, assertsLock)
	if err == nil {
		err = w.w.lockAll(ctx, a)
	}
	w.w.of.leave(t, "Win.LockAll", NoPeer, 0, 0, err)
	return err
}

// UnlockAll gives the locks of LockAll back (MPI_Win_unlock_all). If ctx ends first
// all of them are still held: call UnlockAll again. It blocks until the operations
// are complete.
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
	// The barrier is entered even after errors, so that the others do not
	// wait for ever.
	if e := Barrier(ctx, w.c); e != nil && err == nil {
		err = e
	}
	w.syncMemory()
	if w.shared != nil {
		// Others touch this memory too, directly: they may when what was done
		// to it is dealt with here.
		if e := Barrier(ctx, w.c); e != nil && err == nil {
			err = e
		}
		w.syncMemory()
	}
	return err
}

// flushLocal completes operations here. Where that needs no less than
// completing them at the target it does that.
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
		_ = w.to[rank].startFlush(ctx, w) // flush does it again
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
			// The lock may be granted later: give it back then.
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
	// The lock is given back even if ctx has ended since: others wait for it.
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

// syncMemory orders the caller's accesses to its memory with those of the others,
// in the sense of the Go memory model: what they have done happens before what
// follows, and what the caller has done before what they do later.
func (w *window) syncMemory() {
	w.hold()
	if w.shared != nil {
		w.shared.order.Add(1)
	}
	w.release()
}

// hold keeps other served operations away from the memory, and orders what
// follows after the placements of RDMA that have ended.
func (w *window) hold() {
	w.memory.Lock()
	if w.mr != nil {
		w.mr.Sync()
	}
}

// release ends hold, and orders RDMA that begins later after what was done.
func (w *window) release() {
	if w.mr != nil {
		w.mr.Sync()
	}
	w.memory.Unlock()
}

func (w *window) lockAll(ctx context.Context, a Assert) error {
	for rank := range w.to {
		if err := w.lock(ctx, LockShared, rank, a); err != nil {
			for r := range rank {
				err = errors.Join(err, w.unlock(ctx, r))
			}
			return err
		}
	}
	return nil
}

// unlockAll completes all operations before it gives the first lock back.
func (w *window) unlockAll(ctx context.Context) error {
	w.syncMemory()
	err := w.flushAll(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, w.each(func(rank int) error { return w.unlock(ctx, rank) }))
}
