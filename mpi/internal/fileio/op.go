package fileio

import (
	"context"
	"fmt"
	"math"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// An Op is a read or write of whole elements.
type Op struct {
	Name  string // of the MPI call, for messages
	At    Place
	Pos   int64 // in elements, for AtOffset
	Buf   []byte
	Write bool
	All   bool  // collective
	Bad   error // why a rank has no data for a collective operation

	view *View // set when it starts
	off  int64 // in bytes of the view
}

// Place is where an operation begins.
type Place uint8

const (
	AtOffset  Place = iota
	AtPointer       // the individual one
	AtShared        // the shared one; collective operations: in the order of the ranks
)

// check returns the error of an operation, or nil. It moves the individual pointer if moves says
// so, for nonblocking and collective operations.
func (f *File) check(op *Op, moves bool) error {
	if err := f.Usable(); err != nil {
		return err
	}
	switch {
	case op.Bad != nil:
		return op.Bad
	case op.Write && f.mode&ReadOnly != 0, !op.Write && f.mode&WriteOnly != 0:
		return fmt.Errorf("%w: %s", mpierr.ErrMode, op.Name)
	case f.mode&Sequential != 0 && op.At != AtShared:
		return fmt.Errorf("%w: %s with FileSequential", mpierr.ErrMode, op.Name)
	case len(op.Buf)%f.elem != 0:
		return fmt.Errorf("%w: %d bytes are no elements of %d", mpierr.ErrCount, len(op.Buf), f.elem)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	op.view = f.view
	if op.At == AtShared {
		return nil
	}
	if op.At == AtPointer {
		op.Pos = f.pos
	}
	var err error
	if op.off, err = f.viewOffset(op.view, op.Pos, len(op.Buf)); err != nil {
		return err
	}
	if op.At == AtPointer && moves {
		f.pos += int64(len(op.Buf) / f.elem)
	}
	return nil
}

// Do performs an operation and returns how many bytes of its buffer it has done.
func (f *File) Do(ctx context.Context, op Op) (int, error) {
	err := f.check(&op, op.All)
	if op.All {
		if f.Usable() != nil {
			return 0, err
		}
		before, done := f.enqueue()
		return f.collective(ctx, op, err, before, done)
	}
	if err != nil {
		return 0, err
	}
	n, err := f.independent(ctx, op)
	if op.At == AtPointer {
		f.mu.Lock()
		f.pos = op.Pos + int64(n/f.elem)
		f.mu.Unlock()
	}
	return n, err
}

// Start checks an operation, gives it its place in the order of the collective ones, and moves the
// individual pointer. run performs it and returns what Do returns; it must be called.
func (f *File) Start(op Op) (run func() (int, error), err error) {
	err = f.check(&op, true)
	if op.All {
		if e := f.Usable(); e != nil {
			return nil, e
		}
		// collective reports err to the other ranks, which do not know it.
		before, done := f.enqueue()
		return func() (int, error) { return f.collective(context.Background(), op, err, before, done) }, nil
	}
	if err != nil {
		return nil, err
	}
	return func() (int, error) { return f.independent(context.Background(), op) }, nil
}

// independent performs an operation of this rank only and returns the bytes done.
func (f *File) independent(ctx context.Context, op Op) (int, error) {
	if op.At == AtShared {
		pos, err := f.pointer.FetchAdd(ctx, int64(len(op.Buf)/f.elem))
		if err != nil {
			return 0, err
		}
		if op.off, err = f.viewOffset(op.view, pos, len(op.Buf)); err != nil {
			return 0, err
		}
	}
	if f.atomic.Load() {
		unlock, err := f.pointer.Lock(ctx, op.Write)
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	return f.access(op.view, op.off, op.Buf, op.Write)
}

// viewOffset checks a place in elements, with n bytes of memory there, and returns the place in bytes
// of the view.
func (f *File) viewOffset(v *View, pos int64, n int) (int64, error) {
	size := int64(v.rep.Size)
	room := int64(n/f.elem) + 1
	if pos < 0 || pos > maxOffset/size-room {
		return 0, fmt.Errorf("%w: %d bytes at element %d", mpierr.ErrView, n, pos)
	}
	return pos * size, nil
}

// maxOffset bounds places in a view, so that sums of two of them fit an int.
const maxOffset = math.MaxInt / 4
