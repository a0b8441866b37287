package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// overContext returns a context that has ended.
func overContext(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// TestWinStartAgain has contexts of synchronization calls end: the calls can be made
// again, and no rank waits for ever.
func TestWinStartAgain(t *testing.T) {
	const p = 3
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, p)
		if err != nil {
			return err
		}
		me := c.Rank()
		if me > 0 {
			if me == 2 { // rank 0 gives up once before this
				if _, err := Recv(ctx, c, []byte{0}, 0, 1); err != nil {
					return err
				}
			}
			if err := w.Post(0); err != nil {
				return err
			}
			if me == 1 {
				if err := Send(ctx, c, []byte{1}, 0, 1); err != nil {
					return err
				}
			}
			if err := w.Wait(ctx); err != nil {
				return err
			}
			if w.Buf()[0] != int32(10+me) {
				return fmt.Errorf("rank %d has %v after Wait", me, w.Buf())
			}
		} else {
			if _, err := Recv(ctx, c, []byte{0}, 1, 1); err != nil {
				return err
			}
			if err := w.Start(ctx, 1); err != nil { // its Post is there
				return err
			}
			if err := w.Complete(overContext(ctx)); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("Complete after the end of the context: %v", err)
			}
			if err := w.Start(ctx, 1); !errors.Is(err, ErrEpoch) {
				return fmt.Errorf("Start before Complete is called again: %v", err)
			}
			// As if only Start had been called, and had failed after the first target.
			w.w.rma.AbandonStart(1)
			if err := w.Start(overContext(ctx), 1, 2); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("Start without Post: %v", err)
			}
			if err := w.Complete(ctx); !errors.Is(err, ErrEpoch) {
				return fmt.Errorf("Complete after a Start that failed: %v", err)
			}
			if err := Send(ctx, c, []byte{1}, 2, 1); err != nil {
				return err
			}
			if err := w.Start(ctx, 1, 2); err != nil {
				return err
			}
			for target := 1; target < p; target++ {
				if err := w.Put(ctx, []int32{int32(10 + target)}, target, 0); err != nil {
					return err
				}
			}
			if err := w.Complete(ctx); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		// Locks: one that could not be given back is still held, and can be.
		if me == 1 {
			if err := w.LockAll(ctx); err != nil {
				return err
			}
			src := make([]int32, 1)
			if err := w.Get(ctx, src, 2, 0); err != nil {
				return err
			}
			if err := w.UnlockAll(overContext(ctx)); err != nil {
				if !errors.Is(err, context.Canceled) {
					return err
				}
				if err := w.UnlockAll(ctx); err != nil {
					return fmt.Errorf("UnlockAll once more: %w", err)
				}
			}
			if err := w.Lock(ctx, LockExclusive, 2); err != nil {
				return err
			}
			if err := w.Get(ctx, src, 2, 0); err != nil {
				return err
			}
			if err := w.Unlock(overContext(ctx), 2); err != nil {
				if !errors.Is(err, context.Canceled) {
					return err
				}
				if err := w.Unlock(ctx, 2); err != nil {
					return fmt.Errorf("Unlock once more: %w", err)
				}
			}
			if src[0] != 12 {
				return fmt.Errorf("got %v", src)
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if me == 0 {
			if err := w.Lock(ctx, LockExclusive, 2); err != nil {
				return err
			}
			if err := w.Unlock(ctx, 2); err != nil {
				return err
			}
		}
		return w.Free(ctx)
	})
}
