package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/weftstack/weft/mpi"
)

// scratchFile has rank 0 choose the name of a file that there is not.
func scratchFile(ctx context.Context, c *mpi.Comm) (string, error) {
	name := make([]byte, 4096)
	if c.Rank() == 0 {
		f, err := os.CreateTemp("", "mpicheck-")
		if err != nil {
			return "", err
		}
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			return "", err
		}
		copy(name, f.Name())
	}
	err := mpi.Bcast(ctx, c, name, 0)
	if i := slices.Index(name, 0); i >= 0 {
		name = name[:i]
	}
	return string(name), err
}

// fileHints are those that files are used with.
var fileHints = []mpi.Info{nil,
	{mpi.InfoCollective: "enable", mpi.InfoNodes: "2", mpi.InfoBuffer: "5000"},
	{mpi.InfoCollective: "disable", mpi.InfoSieve: "disable"}, {mpi.InfoStripingUnit: "16384"}}

const fileMode = mpi.FileReadWrite | mpi.FileCreate | mpi.FileDeleteOnClose

// files writes and reads one file by all ranks, in collectives of two phases and
// without, through views that deal the elements out like cards.
func files(ctx context.Context, c *mpi.Comm) error {
	const each = 1000
	n, me := c.Size(), c.Rank()
	name, err := scratchFile(ctx, c)
	if err != nil {
		return err
	}
	item, err := mpi.TypeOf[int]()
	if err != nil {
		return err
	}
	_, size := item.Extent()
	card, err := mpi.TypeResized(item, 0, n*size)
	if err != nil {
		return err
	}
	f, err := mpi.FileOpen[int](ctx, c, name, fileMode, nil)
	if err != nil {
		return err
	}
	for k, hints := range fileHints {
		if err := f.SetInfo(ctx, hints); err != nil {
			return err
		}
		if err := f.SetView(ctx, int64(me*size), card, "native"); err != nil {
			return err
		}
		mine := block(me, k, each)
		if got, err := f.WriteAll(ctx, mine[:each/2]); got != each/2 || err != nil {
			return fmt.Errorf("hints %v: wrote %d: %w", hints, got, err)
		}
		if err := f.WriteAllBegin(mine[each/2:]); err != nil {
			return err
		}
		if got, err := f.WriteAllEnd(ctx); got != each-each/2 || err != nil {
			return fmt.Errorf("hints %v: wrote %d: %w", hints, got, err)
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		back := make([]int, each)
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := f.Read(ctx, back)
		if err := same("own cards", back, mine, err); err != nil {
			return err
		}
		// All cards, those of the others between those of this rank.
		if err := f.SetView(ctx, 0, nil, "native"); err != nil {
			return err
		}
		all, want := make([]int, n*each), make([]int, n*each)
		for i := range want {
			want[i] = value(i%n, k, i/n)
		}
		r, err := f.IreadAtAll(0, all)
		if err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		if err := same("all cards", all, want, err); err != nil {
			return err
		}
	}
	return f.Close(ctx)
}

// sharedPointers has all ranks write records at the pointer that they share, in
// no order and in order, and look for all of them.
func sharedPointers(ctx context.Context, c *mpi.Comm) error {
	const records, length = 10, 50
	n, me := c.Size(), c.Rank()
	name, err := scratchFile(ctx, c)
	if err != nil {
		return err
	}
	f, err := mpi.FileOpen[int](ctx, c, name, fileMode, nil)
	if err != nil {
		return err
	}
	for i := range records {
		if _, err := f.WriteShared(ctx, block(me, i, length)); err != nil {
			return err
		}
	}
	if err := f.Sync(ctx); err != nil {
		return err
	}
	if at, err := f.PositionShared(ctx); at != int64(n*records*length) || err != nil {
		return fmt.Errorf("shared pointer at %d, want %d: %w", at, n*records*length, err)
	}
	all := make([]int, n*records*length)
	if _, err := f.ReadAt(ctx, 0, all); err != nil {
		return err
	}
	next := make([]int, n) // records of a rank come in its order
	for at := 0; at < len(all); at += length {
		r := all[at] / 1_000_000
		if r < 0 || r >= n || !slices.Equal(all[at:at+length], block(r, next[r], length)) {
			return fmt.Errorf("record at %d, said to be number %d of rank %d", at, next[min(max(r, 0), n-1)], r)
		}
		next[r]++
	}
	if err := mpi.Barrier(ctx, c); err != nil { // nobody looks at the pointer any more
		return err
	}
	// In order of the ranks, of different lengths.
	if err := f.SeekShared(ctx, 0, io.SeekStart); err != nil {
		return err
	}
	if _, err := f.WriteOrdered(ctx, block(me, 0, 10+me)); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(ctx), f.SeekShared(ctx, 0, io.SeekStart)); err != nil {
		return err
	}
	back := make([]int, 10+me)
	_, err = f.ReadOrdered(ctx, back)
	if err := same("ordered", back, block(me, 0, 10+me), err); err != nil {
		return err
	}
	// In atomic mode what all ranks write to one place is of one of them.
	if err := f.SetAtomicity(ctx, true); err != nil {
		return err
	}
	long := make([]int, 5000)
	for i := range long {
		long[i] = me
	}
	if _, err := f.WriteAt(ctx, 0, long); err != nil {
		return err
	}
	if _, err := f.ReadAt(ctx, 0, long); err != nil {
		return err
	}
	for i, v := range long {
		if v != long[0] {
			return fmt.Errorf("of rank %d at first, of %d at %d", long[0], v, i)
		}
	}
	return f.Close(ctx)
}
