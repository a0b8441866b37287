package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// elemFor returns the element type of an update of items of t, and the operator on it.
func (w *Window) elemFor(t *Datatype, o ItemOp) (*rma.Elem, op.Reducer, error) {
	if o.code == op.CodeUser {
		return nil, nil, fmt.Errorf("%w: %s in an update of a window, which takes predefined operators only", ErrOp, o.Name())
	}
	if t == nil {
		return nil, nil, fmt.Errorf("%w: an update of no datatype", ErrDatatype)
	}
	e, err := rma.ElemFor(t.typ(), o.code)
	if err != nil {
		return nil, nil, err
	}
	red := e.Operator(o.code)
	if red == nil {
		return nil, nil, fmt.Errorf("%w: %s of %v", ErrOp, o.Name(), t)
	}
	return e, red, nil
}

// Accumulate combines the items of origin into tcount items of ttype that begin at disp in the window of target: each
// element there becomes old op new (MPI-4.1, Section 12.3.4). op is predefined, [OpReplace] included. Both datatypes
// must consist of one and the same predefined datatype, which op takes, or of that of a Go type. The update is atomic
// for each element with respect to other updates of that type. Items of origin with gaps are packed before it returns.
// It may wait for room in queues, and its buffers must not be touched until the operation is complete. Errors to test
// for: ErrRange, ErrAccess, ErrOp, ErrDatatype, ErrTypeMismatch, ErrCount.
func (w *Window) Accumulate(
	ctx context.Context, origin Buffer, target, disp, tcount int, ttype *Datatype, op ItemOp,
) error {
	t := w.of.enter()
	err := w.update(ctx, &origin, nil, target, disp, tcount, ttype, op)
	w.of.leave(t, "Win.Accumulate", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

// GetAccumulate is [Window.Accumulate] that also stores the old elements to the items of result (MPI_Get_accumulate).
// With [OpNoOp] it is an atomic Get, and origin is ignored.
func (w *Window) GetAccumulate(
	ctx context.Context, origin, result Buffer, target, disp, tcount int, ttype *Datatype, op ItemOp,
) error {
	t := w.of.enter()
	err := w.update(ctx, &origin, &result, target, disp, tcount, ttype, op)
	w.of.leave(t, "Win.GetAccumulate", target, 0, tcount*ttype.typ().Size(), err)
	return err
}

func (w *Window) update(
	ctx context.Context, origin, result *Buffer, target, disp, tcount int, ttype *Datatype, o ItemOp,
) error {
	if origin.err != nil && (result == nil || o.code != op.CodeNoOp) {
		return origin.err
	}
	var old *datatype.Items
	if result != nil {
		if result.err != nil {
			return result.err
		}
		old = &result.items
	}
	if tcount >= 0 && tcount*ttype.typ().Size() == 0 && ttype != nil {
		// Items without data may be of any type.
		from := origin.items
		if old != nil && (from.Len() == 0 || o.code == op.CodeNoOp) {
			from = *old
		}
		return w.rma.PutItems(ctx, from, target, disp, tcount, ttype.typ())
	}
	e, red, err := w.elemFor(ttype, o)
	if err != nil {
		return err
	}
	return w.rma.UpdateItems(ctx, origin.items, old, target, disp, tcount, ttype.typ(), e, red)
}

// FetchAndOp combines the element in value into the element of t at disp in the window of target, and stores the old
// one to result (MPI_Fetch_and_op; MPI-4.1, Section 12.3.4). It does not wait for the target: result holds the old
// element once a synchronization has completed the operation, and neither buffer must be touched before. With
// [OpNoOp] value is ignored. Updates of one target by one rank are performed in the order of the calls. Errors to test
// for: ErrRange, ErrAccess, ErrOp, ErrDatatype, ErrCount.
func (w *Window) FetchAndOp(
	ctx context.Context, value, result Buffer, target, disp int, t *Datatype, op ItemOp,
) error {
	at := w.of.enter()
	err := w.update(ctx, &value, &result, target, disp, 1, t, op)
	w.of.leave(at, "Win.FetchAndOp", target, 0, t.typ().Size(), err)
	return err
}

// CompareAndSwap stores the element in swap to the element of t at disp in the window of target if that holds the
// one in compare, bit by bit, and stores what it held to result (MPI_Compare_and_swap; MPI-4.1, Section 12.3.4).
// compare and swap are copied; result is stored as that of [Window.FetchAndOp]. t is an integer, logical,
// multi-language or byte type, or that of a Go type, without gaps: for others it returns ErrDatatype. Errors to test
// for: ErrRange, ErrAccess, and ErrCount for buffers of another length, and for elements longer than 4 KiB.
func (w *Window) CompareAndSwap(
	ctx context.Context, swap, compare, result Buffer, target, disp int, t *Datatype,
) error {
	at := w.of.enter()
	err := w.swap(ctx, &swap, &compare, &result, target, disp, t)
	w.of.leave(at, "Win.CompareAndSwap", target, 0, t.typ().Size(), err)
	return err
}

func (w *Window) swap(ctx context.Context, swap, compare, result *Buffer, target, disp int, t *Datatype) error {
	rt := t.typ()
	n := rt.Size()
	for _, b := range []*Buffer{swap, compare, result} {
		if b.err != nil {
			return b.err
		}
		if b.Len() != n || !b.items.Dense() {
			return fmt.Errorf("%w: %v in a CompareAndSwap of %v", ErrCount, *b, t)
		}
	}
	if !swappable(rt) {
		return fmt.Errorf("%w: a CompareAndSwap of %v", ErrDatatype, t)
	}
	e, err := rma.ElemFor(rt, op.CodeReplace)
	if err != nil {
		return err
	}
	s := bufpool.Get(2 * n)
	defer s.Put()
	operands := s.Bytes(2 * n)
	copy(operands[copy(operands, compare.items.Mem):], swap.items.Mem)
	return w.rma.Swap(ctx, operands, result.items.Mem, target, disp, e, false)
}

// swappable reports whether elements of t can be compared and swapped (MPI-4.1, Section 12.3.4).
func swappable(t *datatype.Type) bool {
	if t.Base() == nil || t.Size() == 0 || t.Size() != t.Base().Size() || !t.Dense(2) {
		return false
	}
	n := t.Named()
	if n == nil {
		return true
	}
	switch n.Group {
	case datatype.GroupCInteger, datatype.GroupFortranInteger, datatype.GroupLogical, datatype.GroupMultiLanguage,
		datatype.GroupByte:
		return true
	}
	return n.Name == "MPI_CHAR" // as in reductions
}

// Raccumulate is [Window.Accumulate] with a request that is done when origin may be used again (MPI_Raccumulate). The
// call does not wait for the target, but may wait for room in queues.
func (w *Window) Raccumulate(
	ctx context.Context, origin Buffer, target, disp, tcount int, ttype *Datatype, op ItemOp,
) (*Request, error) {
	return w.request(target, w.Accumulate(ctx, origin, target, disp, tcount, ttype, op))
}

// RgetAccumulate is [Window.GetAccumulate] with a request that is done when result holds the data
// (MPI_Rget_accumulate). The call does not wait for the target, but may wait for room in queues.
func (w *Window) RgetAccumulate(
	ctx context.Context, origin, result Buffer, target, disp, tcount int, ttype *Datatype, op ItemOp,
) (*Request, error) {
	return w.request(target, w.GetAccumulate(ctx, origin, result, target, disp, tcount, ttype, op))
}
