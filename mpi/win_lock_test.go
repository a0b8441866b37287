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

func TestWinLockQueue(t *testing.T) {
	var l winLocks
	l.init(5)
	names := func(g []lockRequest) (s string) {
		for _, r := range g {
			s += fmt.Sprint(r.origin)
		}
		return s
	}
	take := func(origin int, mode LockMode, want string) {
		t.Helper()
		if g, ok := l.acquire(origin, mode, 1); !ok || names(g) != want {
			t.Errorf("rank %d asks: granted to %q (%v), want %q", origin, names(g), ok, want)
		}
	}
	give := func(origin int, want string) {
		t.Helper()
		if g := names(l.release(origin)); g != want {
			t.Errorf("rank %d gives back: granted to %q, want %q", origin, g, want)
		}
	}
	take(0, LockShared, "0")
	take(1, LockShared, "1")
	take(2, LockExclusive, "")
	take(3, LockShared, "") // does not pass the exclusive one
	take(4, LockShared, "")
	if _, ok := l.acquire(3, LockShared, 1); ok {
		t.Error("a second request of rank 3 was taken")
	}
	if _, ok := l.acquire(0, LockShared, 1); ok {
		t.Error("a request of a holder was taken")
	}
	give(0, "")
	give(1, "2")
	give(3, "") // withdrawn
	give(2, "4")
	give(4, "")
	give(4, "")
	take(2, LockExclusive, "2")
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
