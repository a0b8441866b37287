package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
)

// AccumulateType is [Win.Accumulate] of scount items of stype in src, into tcount items of ttype
// that begin at disp in the window of target (MPI-4.1, Section 12.3.4). Both must hold the same
// number of whole elements of T: else it returns ErrCount, ErrDatatype for parts of elements, or
// ErrTypeMismatch. Items of src with gaps are packed before it returns. It may wait for room in
// queues, and its buffers must not be touched until the operation is complete.
func (w *Win[T]) AccumulateType(ctx context.Context, src []T, scount int, stype *Datatype,
	target, disp, tcount int, ttype *Datatype, op Op[T]) error {
	t := w.w.of.enter()
	err := w.w.updateTyped(ctx, typedItems{datatype.Bytes(src), scount, stype.typ()}, nil, target, disp, tcount, ttype.typ(), op.reducer())
	w.w.of.leave(t, "Win.AccumulateType", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

// GetAccumulateType is [Win.AccumulateType] that also stores the old elements to rcount items of
// rtype in result (MPI_Get_accumulate). With [NoOp] src may be nil, and its count and type are
// ignored. It may wait for room in queues, and its buffers must not be touched until the operation
// is complete.
func (w *Win[T]) GetAccumulateType(ctx context.Context, src []T, scount int, stype *Datatype,
	result []T, rcount int, rtype *Datatype, target, disp, tcount int, ttype *Datatype, op Op[T]) error {
	t := w.w.of.enter()
	err := w.w.updateTyped(ctx, typedItems{datatype.Bytes(src), scount, stype.typ()}, &typedItems{datatype.Bytes(result), rcount, rtype.typ()},
		target, disp, tcount, ttype.typ(), op.reducer())
	w.w.of.leave(t, "Win.GetAccumulateType", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

// RputType is [Win.PutType] with a request that is done when src may be used again (MPI_Rput). The
// call does not wait for the target, but may wait for room in queues.
func (w *Win[T]) RputType(ctx context.Context, src []T, scount int, stype *Datatype,
	target, disp, tcount int, ttype *Datatype) (*Request, error) {
	return w.w.request(target, w.PutType(ctx, src, scount, stype, target, disp, tcount, ttype))
}

// RgetType is [Win.GetType] with a request that is done when dst holds the data (MPI_Rget). The
// call does not wait for the target, but may wait for room in queues.
func (w *Win[T]) RgetType(ctx context.Context, dst []T, dcount int, dtype *Datatype,
	target, disp, tcount int, ttype *Datatype) (*Request, error) {
	return w.w.request(target, w.GetType(ctx, dst, dcount, dtype, target, disp, tcount, ttype))
}

// RaccumulateType is [Win.AccumulateType] with a request that is done when src may be used again
// (MPI_Raccumulate). The call does not wait for the target, but may wait for room in queues.
func (w *Win[T]) RaccumulateType(ctx context.Context, src []T, scount int, stype *Datatype,
	target, disp, tcount int, ttype *Datatype, op Op[T]) (*Request, error) {
	return w.w.request(target, w.AccumulateType(ctx, src, scount, stype, target, disp, tcount, ttype, op))
}

// RgetAccumulateType is [Win.GetAccumulateType] with a request that is done when result holds the
// data (MPI_Rget_accumulate). The call does not wait for the target, but may wait for room in
// queues.
func (w *Win[T]) RgetAccumulateType(ctx context.Context, src []T, scount int, stype *Datatype,
	result []T, rcount int, rtype *Datatype, target, disp, tcount int, ttype *Datatype, op Op[T]) (*Request, error) {
	return w.w.request(target, w.GetAccumulateType(ctx, src, scount, stype, result, rcount, rtype, target, disp, tcount, ttype, op))
}

// typedItems are items of a datatype in memory.
type typedItems struct {
	mem   []byte
	count int
	kind  *datatype.Type
}

// updateTyped is update of items; old may be nil.
func (w *window) updateTyped(ctx context.Context, src typedItems, old *typedItems, target, disp, tcount int, ttype *datatype.Type, red op.Reducer) error {
	code, err := w.checkOp(red)
	if err != nil {
		return err
	}
	same := src.kind
	if code == op.CodeNoOp && old != nil {
		same = old.kind // NoOp ignores the operands
	}
	if err := w.wholeElements(same, ttype); err != nil {
		return err
	}
	var packed []byte
	if code == op.CodeNoOp && old != nil {
		var size int
		size, err = old.kind.Span(old.count, len(old.mem))
		packed = make([]byte, size)
	} else {
		packed, err = src.packed()
	}
	if err != nil {
		return err
	}
	to := typedItems{packed, 1, datatype.OfBytes(len(packed))}
	if old != nil {
		if err := w.wholeElements(old.kind); err != nil {
			return err
		}
		to = *old
	}
	return w.typed(to.mem, to.count, to.kind, target, disp, tcount, ttype, AccessUpdate, func(b []byte, off int) error {
		next := packed[:len(b)]
		packed = packed[len(b):]
		if old == nil {
			b = nil
		}
		return w.updateAt(ctx, next, b, target, off, code)
	})
}

// packed returns the data of items without gaps, in place if they have none.
func (x typedItems) packed() ([]byte, error) {
	size, err := x.kind.Span(x.count, len(x.mem))
	if err != nil || x.kind.Dense(x.count) {
		return x.mem[:size], err
	}
	b := make([]byte, size)
	x.kind.Pack(b, x.mem, x.count)
	return b, nil
}

// wholeElements checks that items consist of whole elements of the window, and are of its type.
func (w *window) wholeElements(types ...*datatype.Type) error {
	for _, t := range types {
		if t == nil {
			return fmt.Errorf("%w: nil", ErrDatatype)
		}
		ok := t.Extent()%w.elem == 0
		for off, n := range t.Runs(1) {
			ok = ok && off%w.elem == 0 && n%w.elem == 0
		}
		if !ok {
			return fmt.Errorf("%w: %v holds parts of elements of %d bytes", ErrDatatype, t, w.elem)
		}
		if !t.Values().Matches(w.sig) {
			return fmt.Errorf("%w: %v in a window of %v", ErrTypeMismatch, t.Values(), w.sig)
		}
	}
	return nil
}
