package rma

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// Put stores src at disp in the memory of target. Like all operations it may wait for room in queues, and its
// buffers must not be touched until a synchronization has completed it.
func (w *Window) Put(ctx context.Context, src []byte, target, disp int) error {
	off, done, err := w.locate(target, disp, len(src), AccessWrite)
	if done || err != nil {
		return err
	}
	return w.putAt(ctx, src, target, off)
}

// putAt is Put at a byte offset that locate has checked.
func (w *Window) putAt(ctx context.Context, src []byte, target, off int) error {
	if w.self(target) {
		mem, err := w.ownAt(off, len(src))
		if err != nil {
			return err
		}
		w.hold()
		copy(mem, src)
		w.release()
		return nil
	}
	if w.direct != nil && w.direct[target].near() {
		if done, err := w.putDirect(ctx, src, target, off); done || err != nil {
			return err
		}
	}
	if w.dev != nil {
		if len(src) > rdmadev.MaxInline {
			if err := w.spill(ctx, target); err != nil {
				return err
			}
		} else if done, err := w.aggregateWrite(ctx, src, target, off); done || err != nil {
			return err
		}
		return w.writeRDMA(ctx, src, target, off)
	}
	for len(src) > 0 {
		n := min(len(src), MaxChunk)
		if err := w.tell(ctx, target, amHeader{kind: amPut, off: uint64(off), n: uint64(n)}, src[:n]); err != nil {
			return err
		}
		src, off = src[n:], off+n
	}
	return nil
}

// Get loads len(dst) bytes from disp in the memory of target into dst.
func (w *Window) Get(ctx context.Context, dst []byte, target, disp int) error {
	off, done, err := w.locate(target, disp, len(dst), AccessRead)
	if done || err != nil {
		return err
	}
	return w.getAt(ctx, dst, target, off)
}

// getAt is Get at a byte offset that locate has checked.
func (w *Window) getAt(ctx context.Context, dst []byte, target, off int) error {
	if w.self(target) {
		mem, err := w.ownAt(off, len(dst))
		if err != nil {
			return err
		}
		w.hold()
		copy(dst, mem)
		w.release()
		return nil
	}
	if err := w.spill(ctx, target); err != nil {
		return err
	}
	switch {
	case w.getDirect(dst, target, off):
		return nil
	case w.dev != nil:
		return w.readRDMA(ctx, dst, target, off)
	}
	for len(dst) > 0 {
		n := min(len(dst), MaxChunk)
		h := amHeader{kind: amGet, off: uint64(off), n: uint64(n)}
		if err := w.tellFor(ctx, dst[:n], target, h, nil); err != nil {
			return err
		}
		dst, off = dst[n:], off+n
	}
	return nil
}

// Update is Accumulate of elements of type e, or GetAccumulate if old is not nil. It does not wait for the target, so
// with one element it is also the FetchAndOp that a later synchronization completes.
func (w *Window) Update(ctx context.Context, src, old []byte, target, disp int, e *Elem, red op.Reducer) error {
	code, err := e.reducer(red)
	if err != nil {
		return err
	}
	off, done, err := w.locateUpdate(target, disp, len(src), e)
	if done || err != nil {
		return err
	}
	return w.updateAt(ctx, src, old, target, off, e, code)
}

// updateAt is Update at a byte offset that locateUpdate has checked.
func (w *Window) updateAt(ctx context.Context, src, old []byte, target, off int, e *Elem, code op.Code) error {
	if w.self(target) {
		mem, err := w.ownElems(off, len(src), e)
		if err == nil {
			w.apply(mem, e.aligned(src), old, e, e.ops[code])
		}
		return err
	}
	if err := w.spill(ctx, target); err != nil {
		return err
	}
	if w.updateDirect(src, old, target, off, e, code) {
		return nil
	}
	if err := w.to[target].awaitAtomics(ctx); err != nil {
		return err
	}
	for len(src) > 0 {
		n := min(len(src), MaxChunk-MaxChunk%e.size)
		h := amHeader{kind: amUpdate, op: uint8(code), elem: e.code, size: uint32(e.size), off: uint64(off), n: uint64(n)}
		var err error
		if old == nil {
			err = w.tell(ctx, target, h, src[:n])
		} else {
			err = w.tellFor(ctx, old[:n], target, h, src[:n])
			old = old[n:]
		}
		if err != nil {
			return err
		}
		src, off = src[n:], off+n
	}
	return nil
}

// Fetch is FetchAndOp of an element of type e that waits for the old one.
func (w *Window) Fetch(ctx context.Context, value, old []byte, target, disp int, e *Elem, red op.Reducer) error {
	code, err := e.reducer(red)
	if err != nil {
		return err
	}
	off, done, err := w.locateUpdate(target, disp, len(value), e)
	if err == nil && len(value) > e.size {
		err = fmt.Errorf("%w: %d bytes in a FetchAndOp of %v", mpierr.ErrCount, len(value), e)
	}
	if done || err != nil {
		return err
	}
	if !w.self(target) {
		if err := w.spill(ctx, target); err != nil {
			return err
		}
		if w.updateDirect(value, old, target, off, e, code) {
			return nil
		}
		if w.dev != nil && e.word && w.mayOvertake(target) {
			if wr, ok := fetchWR(code, value); ok {
				return w.atomicRDMA(ctx, wr, old, target, off)
			}
		}
	}
	if err := w.updateAt(ctx, value, old, target, off, e, code); err != nil || w.self(target) {
		return err
	}
	return w.answered(ctx, target)
}

// mayOvertake reports whether an RDMA atomic, which does not wait for active messages, may start
// now: the updates of a rank keep their order (MPI-4.1, Section 12.7.2).
func (w *Window) mayOvertake(target int) bool {
	return w.hints.Load().Unordered || w.to[target].updated()
}

// answered waits for the answer to an update, which proves that earlier updates are performed.
func (w *Window) answered(ctx context.Context, target int) error {
	t := &w.to[target]
	t.mu.Lock()
	n := t.updates
	t.mu.Unlock()
	err := w.FlushLocal(ctx, target)
	if err == nil {
		t.mu.Lock()
		t.proved = max(t.proved, n)
		t.mu.Unlock()
	}
	return err
}

// Swap is CompareAndSwap of an element of type e, which waits for the old one if waits is set; operands holds compare
// and swap, and is copied. Only the waiting form uses RDMA atomics, because later updates in messages could overtake
// one in flight.
func (w *Window) Swap(ctx context.Context, operands, old []byte, target, disp int, e *Elem, waits bool) error {
	off, done, err := w.locateUpdate(target, disp, len(old), e)
	if err == nil && (len(old) > e.size || len(operands) != 2*len(old)) {
		err = fmt.Errorf("%w: %d and %d bytes in a CompareAndSwap of %v", mpierr.ErrCount, len(operands), len(old), e)
	}
	if err == nil && e.gap != nil {
		err = fmt.Errorf("%w: a CompareAndSwap of %v, which has gaps", mpierr.ErrDatatype, e)
	}
	if done || err != nil {
		return err
	}
	if w.self(target) {
		mem, err := w.ownElems(off, e.size, e)
		if err == nil {
			w.applySwap(mem, operands, old, e)
		}
		return err
	}
	if err := w.spill(ctx, target); err != nil {
		return err
	}
	if w.swapDirect(operands, old, target, off, e) {
		return nil
	}
	if waits && w.dev != nil && e.word && w.mayOvertake(target) {
		return w.atomicRDMA(ctx, swapWR(operands), old, target, off)
	}
	if 2*len(old) > MaxInline {
		return fmt.Errorf("%w: elements of %d bytes", mpierr.ErrCount, len(old))
	}
	if err := w.to[target].awaitAtomics(ctx); err != nil {
		return err
	}
	h := amHeader{kind: amSwap, elem: e.code, size: uint32(e.size), off: uint64(off), n: uint64(len(old))}
	if err := w.tellFor(ctx, old, target, h, operands); err != nil || !waits {
		return err
	}
	return w.answered(ctx, target)
}
