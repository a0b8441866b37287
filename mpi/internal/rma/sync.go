package rma

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Fence completes all operations of all ranks. All ranks call it; it blocks until all have.
func (w *Window) Fence(ctx context.Context, a Assert) error {
	w.Sync()
	var err error
	if a&AssertNoPrecede == 0 {
		err = w.FlushAll(ctx)
	} else if err = w.Usable(); err == nil && !w.Quiet() {
		err = errors.Join(fmt.Errorf("%w: operations before a Fence with AssertNoPrecede", mpierr.ErrEpoch), w.FlushAll(ctx))
	}
	if a&AssertNoPrecede != 0 && a&AssertNoSucceed != 0 && w.shared == nil {
		return err
	}
	// The barrier is entered even after errors, because the other ranks wait in it.
	if e := w.c.Barrier(ctx); e != nil && err == nil {
		err = e
	}
	w.Sync()
	if w.shared != nil {
		// Other ranks access this memory directly. They may do so once the
		// operations on it are ordered here.
		if e := w.c.Barrier(ctx); e != nil && err == nil {
			err = e
		}
		w.Sync()
	}
	return err
}

// FlushLocal completes operations locally. Where that takes as much as completing them at the
// target, it does that.
func (w *Window) FlushLocal(ctx context.Context, target int) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	return w.to[target].local(ctx, w)
}

// Flush completes the operations on target, here and there.
func (w *Window) Flush(ctx context.Context, target int) error {
	if err := w.checkTarget(target); err != nil {
		return err
	}
	w.Sync()
	return w.to[target].flush(ctx, w)
}

// FlushLocalAll is FlushLocal for all targets.
func (w *Window) FlushLocalAll(ctx context.Context) error {
	return w.each(func(rank int) error { return w.FlushLocal(ctx, rank) })
}

// FlushAll starts the flush of all targets before it waits for one.
func (w *Window) FlushAll(ctx context.Context) error {
	if err := w.Usable(); err != nil {
		return err
	}
	for rank := range w.to {
		_ = w.to[rank].startFlush(ctx, w) // an error: flush repeats it
	}
	return w.each(func(rank int) error { return w.to[rank].flush(ctx, w) })
}

// each calls f for all ranks and joins the errors.
func (w *Window) each(f func(rank int) error) error {
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

// Sync orders the caller's accesses to its memory with those of other ranks in the sense of
// the Go memory model: their earlier accesses happen before the caller's later ones, and the
// caller's earlier ones before their later ones.
func (w *Window) Sync() {
	w.hold()
	if w.shared != nil {
		w.shared.order.Add(1)
	}
	w.release()
}

// hold excludes other active messages from the memory, and orders what follows after the RDMA
// placements that have ended.
func (w *Window) hold() {
	w.memory.Lock()
	if w.mr != nil {
		w.mr.Sync()
	}
}

// release ends hold, and orders later RDMA accesses after it.
func (w *Window) release() {
	if w.mr != nil {
		w.mr.Sync()
	}
	w.memory.Unlock()
}

// Quiet reports whether no operation of the caller is in progress.
func (w *Window) Quiet() bool {
	for rank := range w.to {
		if !w.to[rank].quiet() {
			return false
		}
	}
	return true
}

func (t *targetState) quiet() bool {
	return !t.copied.Load() && !t.aggregated.some.Load() && t.idle()
}

// idle reports whether the target has acknowledged everything. It ignores aggregated Puts, which
// have not been sent, and copies, which are complete at once. Operations of other windows on the same
// connection do not count.
func (t *targetState) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.unsure && len(t.sends) == 0 && len(t.results) == 0 && len(t.unpack) == 0 && t.proof == nil &&
		t.flushed >= t.last && len(t.left) == 0
}
