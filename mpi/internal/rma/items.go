package rma

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
)

// UpdateItems is Update of items that consist of elements of type e; old may be nil.
func (w *Window) UpdateItems(ctx context.Context, src datatype.Items, old *datatype.Items,
	target, disp, tcount int, ttype *datatype.Type, e *Elem, red op.Reducer) error {
	code, err := e.reducer(red)
	if err != nil {
		return err
	}
	noOp := code == op.CodeNoOp && old != nil // NoOp ignores the operands
	if err := w.wholeElements(e, ttype); err != nil {
		return err
	}
	var packed []byte
	if noOp {
		packed = make([]byte, old.Len())
	} else if err := w.wholeItems(e, &src); err != nil {
		return err
	} else if packed = src.Mem; !src.Dense() { // until the operation is complete
		packed = make([]byte, src.Len())
		src.Gaps.Pack(packed, 0)
	}
	to := datatype.Items{Mem: packed, Sig: e.sig}
	var olds []byte // packed, if elements have gaps
	if old != nil {
		if err := w.wholeItems(e, old); err != nil {
			return err
		}
		if to = *old; e.gap != nil {
			olds = make([]byte, old.Len())
			to = datatype.Items{Mem: olds, Sig: e.sig}
		}
	}
	off, _, err := w.locateUpdate(target, disp, 0, e)
	if err == nil && target != ProcNull && len(packed) > 0 {
		err = w.checkPlace(target, off, e)
	}
	if err != nil {
		return err
	}
	pos := 0 // bytes of data before what is moved next
	err = w.typed(&to, target, disp, tcount, ttype, AccessUpdate, func(b []byte, off int) error {
		from := pos
		pos += len(b)
		if e.gap != nil {
			return gapped(from, pos, e.size, func(k int) error { // elements that begin in b
				next := packed[k : k+e.size]
				var into []byte
				if old != nil {
					into = olds[k : k+e.size]
				}
				return w.updateAt(ctx, next, into, target, off+k-from, e, code)
			})
		}
		if old == nil {
			b = nil
		}
		return w.updateAt(ctx, packed[from:pos], b, target, off, e, code)
	})
	if err == nil && olds != nil {
		w.unpackLater(target, olds, old.Gaps)
	}
	return err
}

// gapped calls f for the data of elements of a size that begins between from and to: with where it begins.
func gapped(from, to, size int, f func(k int) error) error {
	for k := (from + size - 1) / size * size; k < to; k += size {
		if err := f(k); err != nil {
			return err
		}
	}
	return nil
}

// unpackLater stores packed old elements of an update to items once all answers of the target have arrived.
func (w *Window) unpackLater(target int, olds []byte, to datatype.Buffer) {
	if target == ProcNull {
		return
	}
	if w.self(target) {
		to.Unpack(olds, 0)
		return
	}
	t := &w.to[target]
	t.mu.Lock()
	t.unpack = append(t.unpack, unpack{olds, to})
	t.mu.Unlock()
}

// wholeItems is wholeElements of items here.
func (w *Window) wholeItems(e *Elem, x *datatype.Items) error {
	if !x.Dense() {
		return w.wholeElements(e, x.Gaps.Type)
	}
	if len(x.Mem)%e.size != 0 {
		return fmt.Errorf("%w: %d bytes hold parts of elements of %d bytes", mpierr.ErrDatatype, len(x.Mem), e.size)
	}
	if !x.Sig.Matches(e.sig) {
		return fmt.Errorf("%w: %v in an update of %v", mpierr.ErrTypeMismatch, x.Sig, e)
	}
	return nil
}

// wholeElements checks that items consist of whole elements of a type, at places that are aligned for them if the
// first item is. If all elements of the window are of the type, there must be one at each place.
func (w *Window) wholeElements(e *Elem, t *datatype.Type) error {
	step := e.align
	if w.elem != nil {
		step = e.size
	}
	if t == nil {
		return fmt.Errorf("%w: nil", mpierr.ErrDatatype)
	}
	ok := t.Extent()%step == 0
	if e.gap != nil {
		ok = wholeGapped(e, t)
	} else {
		for off, n := range t.Runs(1) {
			ok = ok && off%step == 0 && n%e.size == 0
		}
	}
	if !ok {
		return fmt.Errorf("%w: %v holds parts of elements of %d bytes", mpierr.ErrDatatype, t, e.size)
	}
	if !t.Values().Matches(e.sig) {
		return fmt.Errorf("%w: %v in an update of %v", mpierr.ErrTypeMismatch, t.Values(), e)
	}
	return nil
}

// wholeGapped is wholeElements for elements that are not one run of memory: the data of each must lie around where it
// begins as in the type of the elements. Only a datatype that was made of such elements is sure to do that.
func wholeGapped(e *Elem, t *datatype.Type) bool {
	b := t.Base()
	return b != nil && b.Named() != nil && b.Named() == e.gap.Named()
}

// PutItems is Put of items, to tcount items of ttype that begin at disp. Each range of bytes that is
// contiguous on both sides is one transfer.
func (w *Window) PutItems(ctx context.Context, src datatype.Items,
	target, disp, tcount int, ttype *datatype.Type) error {
	return w.typed(&src, target, disp, tcount, ttype, AccessWrite,
		func(b []byte, off int) error { return w.putAt(ctx, b, target, off) })
}

// GetItems is Get of tcount items of ttype that begin at disp.
func (w *Window) GetItems(ctx context.Context, dst datatype.Items,
	target, disp, tcount int, ttype *datatype.Type) error {
	return w.typed(&dst, target, disp, tcount, ttype, AccessRead,
		func(b []byte, off int) error { return w.getAt(ctx, b, target, off) })
}

// within checks that the data of count items of a type that begin at off lies within n bytes, and returns how long it
// is. It may lie before off.
func within(t *datatype.Type, count, off, n int) (int, error) {
	size, ok1 := datatype.Mul(t.Size(), count)
	last, ok2 := datatype.Mul(t.Extent(), max(count-1, 0))
	if t == nil || count < 0 || !ok1 || !ok2 {
		return 0, fmt.Errorf("%w: %w: %d items of %v", mpierr.ErrRange, mpierr.ErrDatatype, count, t)
	}
	if lo, hi := t.TrueBounds(); size > 0 && (off+lo+min(last, 0) < 0 || off+hi+max(last, 0) > n) {
		return 0, fmt.Errorf("%w: %d items of %v at %d reach outside %d bytes", mpierr.ErrRange, count, t, off, n)
	}
	return size, nil
}

// typed checks a transfer of items and calls move for each range that is contiguous on both sides.
func (w *Window) typed(x *datatype.Items, target, disp, tcount int, ttype *datatype.Type, need Access,
	move func(b []byte, off int) error) error {
	size := x.Len()
	off, _, err := w.locate(target, disp, 0, need)
	if err != nil || target == ProcNull {
		return err
	}
	room := int(w.remote[target].Bytes)
	if w.dynamic != nil {
		room = datatype.MaxBytes
	}
	tsize, err := within(ttype, tcount, off, room)
	if err != nil {
		return err
	}
	if size > 0 && !x.Sig.Matches(ttype.Values()) {
		return fmt.Errorf("%w: %v here, %v at the target", mpierr.ErrTypeMismatch, x.Sig, ttype.Values())
	}
	if size != tsize {
		return fmt.Errorf("%w: %d bytes here, %d at the target", mpierr.ErrCount, size, tsize)
	}
	own := x.Gaps
	if x.Dense() {
		own = datatype.Buffer{Mem: datatype.In(x.Mem), Count: size, Type: oneByte}
	}
	here, there := datatype.Cursor{Buffer: own}, datatype.Cursor{Buffer: datatype.Buffer{Count: tcount, Type: ttype}}
	var froms, tos [someRuns]datatype.Run
	from, to := froms[:0], tos[:0]
	for {
		if len(to) == 0 {
			if to = tos[:there.Next(tos[:], size)]; len(to) == 0 {
				return nil
			}
		}
		if len(from) == 0 {
			from = froms[:here.Next(froms[:], size)] // both have the same size
		}
		a, b := &from[0], &to[0]
		n := min(a.Len, b.Len)
		if err := move(own.Mem.Bytes(a.Off, n), off+b.Off); err != nil {
			return err
		}
		if a.Off, a.Len = a.Off+n, a.Len-n; a.Len == 0 {
			from = from[1:]
		}
		if b.Off, b.Len = b.Off+n, b.Len-n; b.Len == 0 {
			to = to[1:]
		}
	}
}

var oneByte = datatype.OfBytes(1)

// someRuns is how many runs of items are looked up at a time.
const someRuns = 16
