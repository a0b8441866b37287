package main

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// windows puts blocks to, and gets them from, all ranks.
func windows(ctx context.Context, c *mpi.Comm) error {
	const count = 5000
	n, me := c.Size(), c.Rank()
	w, err := mpi.WinAllocate[int](ctx, c, n*count)
	if err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for r := range n {
		if err := w.Put(ctx, block(me, r, count), r, me*count); err != nil {
			return err
		}
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for r := range n {
		if err := same("put", w.Buf()[r*count:][:count], block(r, me, count), nil); err != nil {
			return err
		}
	}
	// The block that the next rank got from the one before me.
	to, from := (me+1)%n, (me+n-1)%n
	got := make([]int, count)
	if err := w.LockAll(ctx); err != nil {
		return err
	}
	if err := w.Get(ctx, got, to, from*count); err != nil {
		return err
	}
	if err := w.Flush(ctx, to); err != nil {
		return err
	}
	if err := same("get", got, block(from, to, count), nil); err != nil {
		return err
	}
	if err := w.UnlockAll(ctx); err != nil {
		return err
	}
	return w.Free(ctx)
}

// atomics has all ranks add to the same numbers, with and without locks.
func atomics(ctx context.Context, c *mpi.Comm) error {
	const each = 30
	n, me := c.Size(), c.Rank()
	w, err := mpi.WinAllocate[int64](ctx, c, 4)
	if err != nil {
		return err
	}
	if err := w.LockAll(ctx); err != nil {
		return err
	}
	seen := int64(-1)
	for i := range each {
		// A counter whose values each rank sees grow.
		old, err := w.FetchAndOp(ctx, 1, 0, 0, mpi.Sum[int64])
		if err != nil || old <= seen {
			return fmt.Errorf("counter %d after %d, %w", old, seen, err)
		}
		seen = old
		if err := w.Accumulate(ctx, []int64{int64(me), int64(i)}, n-1, 1, mpi.Sum[int64]); err != nil {
			return err
		}
	}
	if err := w.UnlockAll(ctx); err != nil {
		return err
	}
	for range each {
		// Reading and writing under a lock.
		if err := w.Lock(ctx, mpi.LockExclusive, 0); err != nil {
			return err
		}
		x := make([]int64, 1)
		if err := w.Get(ctx, x, 0, 3); err != nil {
			return err
		}
		if err := w.Flush(ctx, 0); err != nil {
			return err
		}
		x[0]++
		if err := w.Put(ctx, x, 0, 3); err != nil {
			return err
		}
		if err := w.Unlock(ctx, 0); err != nil {
			return err
		}
	}
	if err := mpi.Barrier(ctx, c); err != nil {
		return err
	}
	b := w.Buf()
	if me == 0 && (b[0] != int64(each*n) || b[3] != int64(each*n)) {
		return fmt.Errorf("counters %d and %d, want %d", b[0], b[3], each*n)
	}
	if me == n-1 && (b[1] != int64(each*n*(n-1)/2) || b[2] != int64(n*each*(each-1)/2)) {
		return fmt.Errorf("sums %d and %d", b[1], b[2])
	}
	return w.Free(ctx)
}
