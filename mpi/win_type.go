package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// PutType is [Win.Put] of scount items of stype in src, to tcount items of ttype that begin at disp
// in the window of target (MPI-4.1, Section 12.3.1). Each range of bytes that is contiguous on both
// sides is one transfer from the buffer, without packing. PutType may wait for room in queues, and
// its buffers must not be touched until the operation is complete. It returns ErrTypeMismatch if
// the items differ in type, ErrCount if they differ in size, and ErrRange or ErrAccess like Put.
func (w *Win[T]) PutType(
	ctx context.Context, src []T, scount int, stype *Datatype, target, disp, tcount int, ttype *Datatype,
) error {
	t := w.w.of.enter()
	items, err := itemsOf(src, scount, stype)
	if err == nil {
		err = w.w.rma.PutItems(ctx, items, target, disp, tcount, ttype.typ())
	}
	w.w.of.leave(t, "Win.PutType", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

// GetType is [Win.Get] from tcount items of ttype that begin at disp in the window of target, into
// dcount items of dtype in dst (MPI_Get). It blocks and fails like [Win.PutType].
func (w *Win[T]) GetType(
	ctx context.Context, dst []T, dcount int, dtype *Datatype, target, disp, tcount int, ttype *Datatype,
) error {
	t := w.w.of.enter()
	items, err := itemsOf(dst, dcount, dtype)
	if err == nil {
		err = w.w.rma.GetItems(ctx, items, target, disp, tcount, ttype.typ())
	}
	w.w.of.leave(t, "Win.GetType", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

// itemsOf returns count items of t in buf.
func itemsOf[T Element](buf []T, count int, t *Datatype) (datatype.Items, error) {
	return datatype.ItemsOf(datatype.Buffer{Mem: datatype.In(datatype.Bytes(buf)), Count: count, Type: t.typ()})
}
