package mpi

import (
	"context"
	"reflect"

	"github.com/weftstack/weft/mpi/internal/datatype"
	ops "github.com/weftstack/weft/mpi/internal/op"
)

// AccumulateType is [Win.Accumulate] of scount items of stype in src, into tcount items of ttype
// that begin at disp in the window of target (MPI-4.1, Section 12.3.4). Both must hold the same
// number of whole elements of T: else it returns ErrCount, ErrDatatype for parts of elements, or
// ErrTypeMismatch. Items of src with gaps are packed before it returns. It may wait for room in
// queues, and its buffers must not be touched until the operation is complete.
func (w *Win[T]) AccumulateType(ctx context.Context, src []T, scount int, stype *Datatype,
	target, disp, tcount int, ttype *Datatype, op Op[T]) error {
	t := w.w.of.enter()
	to, err := wholeElements[T](ttype)
	var from datatype.Items
	if err == nil {
		from, err = wholeItemsOf(src, scount, stype)
	}
	if err == nil {
		err = w.w.rma.UpdateItems(ctx, from, nil, target, disp, tcount, to, w.w.typ, op.reducer())
	}
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
	old, err := wholeItemsOf(result, rcount, rtype)
	var from datatype.Items
	var to *datatype.Type
	red := op.reducer()
	if err == nil && (red == nil || red.Code() != ops.CodeNoOp) {
		from, err = wholeItemsOf(src, scount, stype)
	}
	if err == nil {
		to, err = wholeElements[T](ttype)
	}
	if err == nil {
		err = w.w.rma.UpdateItems(ctx, from, &old, target, disp, tcount, to, w.w.typ, red)
	}
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
	return w.w.request(target,
		w.GetAccumulateType(ctx, src, scount, stype, result, rcount, rtype, target, disp, tcount, ttype, op))
}

// wholeElements returns t with elements of type T that have no gaps: updates of a window combine them as a whole, with
// their padding.
func wholeElements[T Element](t *Datatype) (*datatype.Type, error) {
	rt, elem := t.typ(), reflect.TypeFor[T]()
	size := int(elem.Size())
	if rt == nil || datatype.DataSize[T]() == size {
		return rt, nil
	}
	return rt.Rebuild(func(leaf *datatype.Type) (*datatype.Type, error) {
		if leaf.Contents().Go == elem {
			return datatype.OfBytes(size), nil
		}
		return leaf, nil
	})
}

// wholeItemsOf is itemsOf for updates.
func wholeItemsOf[T Element](buf []T, count int, t *Datatype) (datatype.Items, error) {
	rt, err := wholeElements[T](t)
	if err != nil {
		return datatype.Items{}, err
	}
	return datatype.ItemsOf(datatype.Buffer{Mem: datatype.In(datatype.Bytes(buf)), Count: count, Type: rt})
}
