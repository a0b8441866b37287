package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// useShared writes to the memory of others, and reads what they wrote.
func useShared(ctx context.Context, c *Comm) error {
	me, p := c.Rank(), c.Size()
	w, err := WinAllocateShared[int64](ctx, c, p+me)
	if err != nil {
		return err
	}
	for r := range p {
		part, err := w.SharedQuery(r)
		if err != nil || len(part) != p+r {
			return fmt.Errorf("part of rank %d has %d elements, %w", r, len(part), err)
		}
		part[me] = int64(100*r + me)
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for i, v := range w.Buf()[:p] {
		if v != int64(100*me+i) {
			return fmt.Errorf("rank %d wrote %d", i, v)
		}
	}
	// Operations of windows work on the same memory, and so do atomics.
	if err := w.Fence(ctx); err != nil {
		return err
	}
	first, err := w.SharedQuery(0)
	if err != nil {
		return err
	}
	next := (me + 1) % p
	if err := w.Put(ctx, []int64{7}, next, 0); err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	if first[0] != 7 || w.Buf()[0] != 7 {
		return fmt.Errorf("after Put: %d and %d", first[0], w.Buf()[0])
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for range 1000 {
		atomic.AddInt64(&first[0], 1)
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	if got := first[0]; got != int64(7+1000*p) {
		return fmt.Errorf("%d after all ranks counted", got)
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	if _, err := w.SharedQuery(p); !errors.Is(err, ErrRank) {
		return fmt.Errorf("memory of rank %d: %w", p, err)
	}
	if err := w.Free(ctx); err != nil {
		return err
	}
	if _, err := WinAllocateShared[int64](ctx, c, -me); !errors.Is(err, ErrCount) {
		return fmt.Errorf("a negative number on one rank: %w", err)
	}
	none, err := WinAllocateShared[byte](ctx, c, 0)
	if err != nil {
		return err
	}
	return none.Free(ctx)
}

func TestWinShared(t *testing.T) {
	eachTransport(t, 3, useShared)
	local(t, 1, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int](ctx, c, 1)
		if err != nil {
			return err
		}
		if _, err := w.SharedQuery(0); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("memory of a window that is not shared: %w", err)
		}
		return w.Free(ctx)
	})
}

// sharedJob is useShared between processes.
func sharedJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	err = useShared(ctx, w.Comm())
	if runtime.GOOS == "windows" {
		if !errors.Is(err, ErrWindow) {
			return fmt.Errorf("memory of several processes: %w", err)
		}
		err = nil
	}
	return errors.Join(err, w.Finalize(ctx))
}

func TestWinSharedByProcesses(t *testing.T) {
	files := func() []string {
		names, _ := filepath.Glob("/dev/shm/weft-shared-*")
		return names
	}
	before := files()
	out, errs := runJob(t, "shared", 3)
	for rank := range out {
		if errs[rank] != nil {
			t.Errorf("rank %d: %v\n%s", rank, errs[rank], out[rank])
		}
	}
	// Those of other tests go away by themselves.
	limit := time.Now().Add(testTime)
	for _, name := range files() {
		for !slices.Contains(before, name) {
			if _, err := os.Stat(name); err != nil {
				break
			}
			if time.Now().After(limit) {
				t.Errorf("%s was left behind", name)
				break
			}
			<-time.After(10 * time.Millisecond)
		}
	}
}
