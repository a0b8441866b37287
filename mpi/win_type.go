package mpi

import (
	"context"
	"fmt"
	"iter"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// PutType is [Win.Put] of scount items of stype in src, to tcount items of ttype that begin at disp
// in the window of target (MPI-4.1, Section 12.3.1). Each range of bytes that is contiguous on both
// sides is one transfer from the buffer, without packing. PutType may wait for room in queues, and
// its buffers must not be touched until the operation is complete. It returns ErrTypeMismatch if
// the items differ in type, ErrCount if they differ in size, and ErrRange or ErrAccess like Put.
func (w *Win[T]) PutType(ctx context.Context, src []T, scount int, stype *Datatype, target, disp, tcount int, ttype *Datatype) error {
	t := w.w.of.enter()
	err := w.w.typed(datatype.Bytes(src), scount, stype.typ(), target, disp, tcount, ttype.typ(), AccessWrite,
		func(b []byte, off int) error { return w.w.putAt(ctx, b, target, off) })
	w.w.of.leave(t, "Win.PutType", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

// GetType is [Win.Get] from tcount items of ttype that begin at disp in the window of target, into
// dcount items of dtype in dst (MPI_Get). It blocks and fails like [Win.PutType].
func (w *Win[T]) GetType(ctx context.Context, dst []T, dcount int, dtype *Datatype, target, disp, tcount int, ttype *Datatype) error {
	t := w.w.of.enter()
	err := w.w.typed(datatype.Bytes(dst), dcount, dtype.typ(), target, disp, tcount, ttype.typ(), AccessRead,
		func(b []byte, off int) error { return w.w.getAt(ctx, b, target, off) })
	w.w.of.leave(t, "Win.GetType", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

// typed checks a transfer of items and calls move for each range that is contiguous on both sides.
func (w *window) typed(buf []byte, count int, t *datatype.Type, target, disp, tcount int, ttype *datatype.Type, need Access,
	move func(b []byte, off int) error) error {
	size, err := t.Span(count, len(buf))
	if err != nil {
		return err
	}
	off, _, err := w.locate(target, disp, 0, need)
	if err != nil || target == ProcNull {
		return err
	}
	room := int(w.remote[target].Bytes) - off
	if w.dynamic != nil {
		room = datatype.MaxBytes
	}
	tsize, err := ttype.Span(tcount, room)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRange, err)
	}
	if a, b := t.Values(), ttype.Values(); size > 0 && !a.Matches(b) {
		return fmt.Errorf("%w: %v here, %v at the target", ErrTypeMismatch, a, b)
	}
	if size != tsize {
		return fmt.Errorf("%w: %d bytes here, %d at the target", ErrCount, size, tsize)
	}
	next, stop := iter.Pull2(t.Runs(count))
	defer stop()
	at, n := 0, 0 // the rest of the contiguous range here
	for toff, tn := range ttype.Runs(tcount) {
		for tn > 0 {
			if n == 0 {
				at, n, _ = next() // both have the same size
			}
			k := min(n, tn)
			if err := move(buf[at:at+k], off+toff); err != nil {
				return err
			}
			at, n, toff, tn = at+k, n-k, toff+k, tn-k
		}
	}
	return nil
}
