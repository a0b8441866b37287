package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// TestWinOriginStops lets an origin announce data that it never sends: the
// target goes on serving others.
func TestWinOriginStops(t *testing.T) {
	local(t, 3, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 100_000)
		if err != nil {
			return err
		}
		if c.Rank() == 2 {
			if err := w.w.rma.Announce(ctx, 0, 100_000); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 1 {
			if err := w.Put(ctx, make([]int32, 50_000), 0, 7); err != nil {
				return err
			}
			if v, err := w.FetchAndOp(ctx, 5, 0, 3, Sum); err != nil || v != 0 {
				return fmt.Errorf("fetched %d, %w", v, err)
			}
			if err := w.Flush(ctx, 0); err != nil {
				return err
			}
		}
		return Barrier(ctx, c) // and no Free: rank 2 would never be done
	})
}

// TestWinLockOfTheDead lets a rank die that holds a lock: the next one gets it.
func TestWinLockOfTheDead(t *testing.T) {
	var served atomic.Bool
	gone, done := make(chan struct{}), make(chan struct{})
	err := RunLocal(t.Context(), 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		win, err := WinAllocate[int](ctx, c, 1)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			if err := win.Lock(ctx, LockExclusive, 0); err != nil {
				return err
			}
		}
		// Rank 1 may be through, and die, before the others.
		if err := Barrier(ctx, c); err != nil && !errors.Is(err, ErrProcFailed) {
			return err
		}
		switch c.Rank() {
		case 1:
			for _, p := range w.eng.Peers { // dies without a word to the launcher
				if p.Link != nil {
					p.Link.Abort("test")
				}
			}
			close(gone)
			<-done
			return nil
		case 2:
			defer close(done)
			<-gone
			if err := win.Lock(ctx, LockExclusive, 0); err != nil {
				return fmt.Errorf("lock after its holder died: %w", err)
			}
			if err := win.Put(ctx, []int{1}, 0, 0); err != nil {
				return err
			}
			if err := win.Unlock(ctx, 0); err != nil {
				return err
			}
			if err := win.Put(ctx, []int{1}, 1, 0); err == nil {
				err = win.Flush(ctx, 1)
				if !errors.Is(err, ErrProcFailed) {
					return fmt.Errorf("put to the dead: %v, want %v", err, ErrProcFailed)
				}
			} else if !errors.Is(err, ErrProcFailed) {
				return fmt.Errorf("put to the dead: %v, want %v", err, ErrProcFailed)
			}
			served.Store(true)
			return nil
		}
		<-done // calls nothing
		return nil
	}, WithTransport(TransportTCP))
	// The ranks cannot finalize with one that died.
	if !served.Load() || !errors.Is(err, ErrProcFailed) {
		t.Errorf("the job ended with: %v", err)
	}
}
