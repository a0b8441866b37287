package rma

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Lock blocks until the caller holds a lock on the memory of target. If ctx ends first, the request is withdrawn.
func (w *Window) Lock(ctx context.Context, mode LockMode, target int, a Assert) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	if mode != LockShared && mode != LockExclusive {
		return fmt.Errorf("%w: lock mode %d", mpierr.ErrOption, mode)
	}
	if w.hints.Load().NoLocks {
		return fmt.Errorf("%w: a lock in spite of no_locks", mpierr.ErrEpoch)
	}
	t := &w.to[target]
	t.mu.Lock()
	held := t.locked
	if !held {
		t.locked, t.trusted = true, a&AssertNoCheck != 0
	}
	t.mu.Unlock()
	if held {
		return fmt.Errorf("%w: rank %d is locked already", mpierr.ErrEpoch, target)
	}
	if a&AssertNoCheck != 0 {
		w.Sync()
		return nil
	}
	err := w.ask(ctx, target, amHeader{kind: amLock, op: uint8(mode)})
	w.Sync()
	if err != nil {
		t.unlocked()
		if ctx.Err() != nil && w.Usable() == nil {
			// The lock may be granted later: have the target release it then.
			_ = w.tell(context.WithoutCancel(ctx), target, amHeader{kind: amUnlock}, nil)
		}
	}
	return err
}

// Unlock completes the operations on target and releases the lock. If ctx ends first the lock is still held.
func (w *Window) Unlock(ctx context.Context, target int) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	t := &w.to[target]
	t.mu.Lock()
	held, trusted := t.locked, t.trusted
	t.mu.Unlock()
	if !held {
		return fmt.Errorf("%w: rank %d is not locked", mpierr.ErrEpoch, target)
	}
	w.Sync()
	err := t.flush(ctx, w)
	if err != nil && ctx.Err() != nil && w.Usable() == nil {
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

// proveReleases makes the next flush prove that the target has performed all releases of locks.
func (t *targetState) proveReleases() {
	t.mu.Lock()
	t.unsure = t.unsure || t.released
	t.mu.Unlock()
}

func (t *targetState) unlocked() {
	t.mu.Lock()
	t.locked = false
	t.mu.Unlock()
}

// LockAll takes a shared lock on the memory of all ranks, or of none.
func (w *Window) LockAll(ctx context.Context, a Assert) error {
	for rank := range w.to {
		if err := w.Lock(ctx, LockShared, rank, a); err != nil {
			ctx = context.WithoutCancel(ctx) // the locks must not stay
			for r := range rank {
				err = errors.Join(err, w.Unlock(ctx, r))
			}
			return err
		}
	}
	return nil
}

// UnlockAll completes all operations before it releases the first lock.
func (w *Window) UnlockAll(ctx context.Context) error {
	w.Sync()
	err := w.FlushAll(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, w.each(func(rank int) error { return w.Unlock(ctx, rank) }))
}
