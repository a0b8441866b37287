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

// TestSharedQuery asks windows of all kinds for the memory of ranks (MPI-4.1, Section
// 12.2.3).
func TestSharedQuery(t *testing.T) {
	const p = 3
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		me := c.Rank()
		shared, err := WinAllocateShared[int64](ctx, c, me) // rank 0 has none
		if err != nil {
			return err
		}
		lowest, err := shared.SharedQuery(ProcNull)
		if err != nil || len(lowest) != 1 {
			return fmt.Errorf("memory of the lowest rank: %d elements, %w", len(lowest), err)
		}
		if part, _ := shared.SharedQuery(1); &part[0] != &lowest[0] {
			return errors.New("ProcNull is not the lowest rank with memory")
		}
		none, err := WinAllocateShared[int64](ctx, c, 0)
		if err != nil {
			return err
		}
		if lowest, err = none.SharedQuery(ProcNull); err != nil || len(lowest) != 0 {
			return fmt.Errorf("memory of nobody: %d elements, %w", len(lowest), err)
		}
		if _, err := none.SharedQuery(p); !errors.Is(err, ErrRank) {
			return fmt.Errorf("memory of rank %d: %v, want %v", p, err, ErrRank)
		}
		dynamic, err := WinCreateDynamic[int64](ctx, c)
		if err != nil {
			return err
		}
		if _, err := dynamic.SharedQuery(me); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("memory of a dynamic window: %v, want %v", err, ErrWindow)
		}
		w, err := WinAllocate[int64](ctx, c, 4)
		if err != nil {
			return err
		}
		own, err := w.SharedQuery(me)
		if err != nil || len(own) != 4 || &own[0] != &w.Buf()[0] {
			return fmt.Errorf("own memory: %d elements, %w", len(own), err)
		}
		next := (me + 1) % p
		theirs, err := w.SharedQuery(next)
		if mapped := w.w.rma.Inspect(next).Mapped; !mapped {
			if !errors.Is(err, ErrWindow) {
				return fmt.Errorf("memory that is not shared: %v, want %v", err, ErrWindow)
			}
		} else {
			if err != nil || len(theirs) != 4 {
				return fmt.Errorf("memory of rank %d: %d elements, %w", next, len(theirs), err)
			}
			theirs[2] = int64(100 + me)
			if err := w.Fence(ctx); err != nil {
				return err
			}
			if got := w.Buf()[2]; got != int64(100+(me+p-1)%p) {
				return fmt.Errorf("element is %d", got)
			}
		}
		return errors.Join(w.Free(ctx), dynamic.Free(ctx), none.Free(ctx), shared.Free(ctx))
	})
}
