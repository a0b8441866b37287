package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestWinLocks guards a counter that is read and written, not updated, with
// exclusive locks.
func TestWinLocks(t *testing.T) {
	const p, rounds = 4, 25
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int](ctx, c, 2)
		if err != nil {
			return err
		}
		for range rounds {
			if err := w.Lock(ctx, LockExclusive, 0); err != nil {
				return err
			}
			v := make([]int, 1)
			if err := w.Get(ctx, v, 0, 1); err != nil {
				return err
			}
			if err := w.FlushLocal(ctx, 0); err != nil {
				return err
			}
			v[0]++
			if err := w.Put(ctx, v, 0, 1); err != nil {
				return err
			}
			if err := w.Unlock(ctx, 0); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if err := w.LockAll(ctx); err != nil {
			return err
		}
		if err := w.Lock(ctx, LockShared, 0); !errors.Is(err, ErrEpoch) {
			return fmt.Errorf("second lock: %v, want %v", err, ErrEpoch)
		}
		v := make([]int, 1)
		if err := w.Get(ctx, v, 0, 1); err != nil {
			return err
		}
		if err := w.FlushAll(ctx); err != nil {
			return err
		}
		if v[0] != p*rounds {
			return fmt.Errorf("counter = %d, want %d", v[0], p*rounds)
		}
		return errors.Join(w.UnlockAll(ctx), w.Free(ctx))
	})
}

// TestWinLockCancel gives up waiting for a lock; the next one gets it.
func TestWinLockCancel(t *testing.T) {
	local(t, 3, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int](ctx, c, 1)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := w.Lock(ctx, LockExclusive, 0); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 1 {
			short, stop := context.WithCancel(ctx)
			go stop()
			if err := w.Lock(short, LockExclusive, 0); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("lock: %v, want %v", err, context.Canceled)
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := w.Unlock(ctx, 0); err != nil {
				return err
			}
		}
		if c.Rank() == 2 {
			if err := w.Lock(ctx, LockExclusive, 0); err != nil {
				return err
			}
			if err := w.Unlock(ctx, 0); err != nil {
				return err
			}
		}
		return w.Free(ctx)
	})
}

// TestWinPSCW moves data round a ring with Post, Start, Complete and Wait.
func TestWinPSCW(t *testing.T) {
	const p, rounds = 4, 10
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int](ctx, c, 1)
		if err != nil {
			return err
		}
		next, prev := (c.Rank()+1)%p, (c.Rank()+p-1)%p
		for i := range rounds {
			if err := w.Post(prev); err != nil {
				return err
			}
			if err := w.Post(prev); !errors.Is(err, ErrEpoch) {
				return fmt.Errorf("second Post: %v, want %v", err, ErrEpoch)
			}
			if err := w.Start(ctx, next); err != nil {
				return err
			}
			if err := w.Put(ctx, []int{i*p + c.Rank()}, next, 0); err != nil {
				return err
			}
			if err := w.Complete(ctx); err != nil {
				return err
			}
			if i%2 == 0 {
				err = w.Wait(ctx)
			} else {
				for done := false; !done && err == nil; {
					done, err = w.Test()
				}
			}
			if err != nil {
				return err
			}
			if got, want := w.Buf()[0], i*p+prev; got != want {
				return fmt.Errorf("round %d: %d, want %d", i, got, want)
			}
		}
		return w.Free(ctx)
	})
}
