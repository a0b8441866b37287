package fileio

import (
	"context"
	"fmt"
	"math"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// An Op is a read or write of a whole number of etypes.
type Op struct {
	Name  string // of the MPI call, for messages
	At    Place
	Pos   int64 // in etypes, for AtOffset
	Data  datatype.Items
	Write bool
	All   bool  // collective
	Bad   error // why a rank has no data for a collective operation

	view *View // set when it starts
	off  int64 // in bytes of the view
	n    int64 // bytes of the view
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
	case op.Write && f.mode&ReadOnly != 0:
		return readOnly(op.Name)
	case !op.Write && f.mode&WriteOnly != 0:
		return writeOnly(op.Name)
	case f.mode&Sequential != 0 && op.At != AtShared:
		return sequentialOnly(op.Name)
	}
	v, _ := f.now()
	var err error
	if op.n, err = v.sizeOf(&op.Data); err != nil {
		return err
	}
	op.view = v
	f.mu.Lock()
	defer f.mu.Unlock()
	if op.At == AtShared {
		return nil
	}
	if op.At == AtPointer {
		op.Pos = f.pos
	}
	if op.off, err = v.place(op.Pos, op.n); err != nil {
		return err
	}
	if op.At == AtPointer && moves {
		f.pos += op.n / v.unit
	}
	return nil
}

// sizeOf returns how many bytes of the view an operation with data is about.
func (v *View) sizeOf(data *datatype.Items) (int64, error) {
	n, t := data.Len(), data.Type
	if t == nil {
		if t = v.etype; n%v.elem != 0 {
			return 0, fmt.Errorf("%w: %d bytes are no elements of %d", mpierr.ErrCount, n, v.elem)
		}
	}
	size, err := v.rep.size(t, n)
	if err != nil {
		return 0, err
	}
	if int64(size)%v.unit != 0 {
		return 0, fmt.Errorf("%w: %d bytes are no whole number of etypes of %d bytes", mpierr.ErrCount, size, v.unit)
	}
	return int64(size), nil
}

// Do performs an operation and returns how many bytes of its data it has done.
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
	if err := f.claim(ctx, &op); err != nil {
		return 0, err
	}
	n, inFile, err := f.independent(ctx, op)
	if op.At == AtPointer {
		f.mu.Lock()
		f.pos = op.Pos + inFile/op.view.unit
		f.mu.Unlock()
	}
	return n, err
}

// Start checks an operation, gives it its place in the order of the collective ones, and moves the
// individual or the shared pointer. run performs it and returns what Do returns; it must be called.
func (f *File) Start(op Op) (run func() (int, error), err error) {
	bad := f.check(&op, true)
	if op.All {
		if e := f.Usable(); e != nil {
			return nil, e
		}
		// collective reports bad to the other ranks, which do not know it.
		before, done := f.enqueue()
		return func() (int, error) { return f.collective(context.Background(), op, bad, before, done) }, nil
	}
	if bad == nil {
		bad = f.claim(context.Background(), &op)
	}
	if bad != nil {
		return nil, bad
	}
	return func() (int, error) {
		n, _, err := f.independent(context.Background(), op)
		return n, err
	}, nil
}

// claim moves the shared pointer, if the operation is at it, which gives the operation its place.
func (f *File) claim(ctx context.Context, op *Op) error {
	if op.At != AtShared {
		return nil
	}
	pos, err := f.pointer.FetchAdd(ctx, op.n/op.view.unit)
	if err != nil {
		return err
	}
	op.off, err = op.view.place(pos, op.n)
	return err
}

// independent performs an operation of this rank only and returns the bytes done, of the data and of
// the view.
func (f *File) independent(ctx context.Context, op Op) (n int, inFile int64, err error) {
	if f.atomic.Load() {
		unlock, err := f.pointer.Lock(ctx, op.Write)
		if err != nil {
			return 0, 0, err
		}
		defer unlock()
	}
	return f.access(&op)
}

// place checks a place in etypes, with n bytes of the view there, and returns the place in bytes of
// the view.
func (v *View) place(pos, n int64) (int64, error) {
	if pos < 0 || n > maxOffset || pos > (maxOffset-n)/v.unit {
		return 0, fmt.Errorf("%w: %d bytes at element %d", mpierr.ErrView, n, pos)
	}
	if n > 0 && v.empty() {
		return 0, fmt.Errorf("%w: %d bytes in a view whose filetype has no data", mpierr.ErrView, n)
	}
	return pos * v.unit, nil
}

// maxOffset bounds places in a view, so that sums of two of them fit an int.
const maxOffset = math.MaxInt / 4
