package datatype

import (
	"fmt"
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Items are what an operation sends or receives: the memory of elements in a row, or a buffer with
// gaps.
type Items struct {
	Mem  []byte // the data, if it is one run of memory
	Gaps Buffer // else; its Type is nil if the data is Mem
	Elem int    // bytes of data of an item, or of an element of Mem
	Sig  Sig    // of the values in messages
	Type *Type  // of an item; nil for elements of a Go type
}

// ItemsOf returns the items in x. Errors are those of Span.
func ItemsOf(x Buffer) (Items, error) {
	if _, err := x.Span(); err != nil {
		return Items{}, err
	}
	it := Items{Elem: x.Type.size, Sig: x.Type.values, Type: x.Type}
	if b, ok := x.Contiguous(); ok {
		it.Mem = b
	} else {
		it.Gaps = x
	}
	return it, nil
}

// firstPage is the bytes of memory from address 0 on that no process has.
const firstPage = 4096

// ItemsAt returns count items of t at an address, of which offset 0 of the datatype is: memory that is
// Go's, or is not. What the datatype says is not checked, but that a nil base, which is MPI_BOTTOM, has
// no data in the first page; else the error is mpierr.ErrBuffer.
func ItemsAt(base unsafe.Pointer, count int, t *Type) (Items, error) {
	x := Buffer{Count: count, Type: t}
	size, lo, hi, err := t.reach(count)
	if err != nil {
		return Items{}, err
	}
	switch {
	case size == 0:
	case base == nil && lo < firstPage:
		return Items{}, fmt.Errorf("%w: nil, with %d items of %v", mpierr.ErrBuffer, count, t)
	case base != nil: // a slice keeps Go memory alive
		x.Mem = Memory{slice: unsafe.Slice((*byte)(unsafe.Add(base, lo)), hi-lo), begin: -lo, bound: true}
	}
	return ItemsOf(x)
}

// SetRun is ItemsAt for the common case, data that is one run of memory at a base that is not nil. It reports
// false, and does nothing, for all others.
func (x *Items) SetRun(base unsafe.Pointer, count int, t *Type) bool {
	if base == nil || t == nil || count <= 0 || len(t.root.kids) > 0 || t.root.count > 1 ||
		count > 1 && t.ub-t.lb != t.size {
		return false
	}
	n, ok := Mul(t.size, count)
	if !ok || n == 0 {
		return false
	}
	x.Mem = unsafe.Slice((*byte)(unsafe.Add(base, t.root.off)), n)
	x.Elem, x.Sig, x.Type = t.size, t.values, t
	return true
}

// Buffer returns the items with their datatype: that which they have, or else one of whose items the
// memory holds a whole number. Offset 0 is where the program has it.
func (x *Items) Buffer(orElse *Type) Buffer {
	switch {
	case !x.Dense():
		return x.Gaps
	case x.Type == nil && orElse.Size() > 0:
		return Buffer{In(x.Mem), len(x.Mem) / orElse.size, orElse}
	case x.Type == nil || x.Type.size == 0:
		return Buffer{Type: orElse}
	}
	off, _, _ := x.Type.OneRun(1)
	return Buffer{In(x.Mem).At(-off), len(x.Mem) / x.Type.size, x.Type}
}

// Dense reports whether the data is one run of memory.
func (x *Items) Dense() bool { return x.Gaps.Type == nil }

// Len returns how many bytes of data there are.
func (x *Items) Len() int {
	if x.Dense() {
		return len(x.Mem)
	}
	return x.Gaps.Type.size * x.Gaps.Count
}

// Packed returns the data: in place if it is one run of memory, and own is nil, or packed in own,
// which the caller gives back.
func (x *Items) Packed() (b []byte, own *bufpool.Buffer) {
	b, own = x.Room()
	if own != nil {
		x.Gaps.Pack(b, 0)
	}
	return b, own
}

// Copied is Packed that copies in any case.
func (x *Items) Copied() ([]byte, *bufpool.Buffer) {
	if !x.Dense() {
		return x.Packed()
	}
	own := bufpool.Get(len(x.Mem))
	b := own.Bytes(len(x.Mem))
	copy(b, x.Mem)
	return b, own
}

// Room returns where to receive the data: in place if it is one run of memory, and own is nil, or in
// own, from where Unpack stores it in the items.
func (x *Items) Room() (b []byte, own *bufpool.Buffer) {
	if x.Dense() {
		return x.Mem, nil
	}
	n := x.Len()
	own = bufpool.Get(n)
	return own.Bytes(n), own
}

// Unpack stores the part b of the packed data, which begins at from. It does nothing if the data is
// one run of memory.
func (x *Items) Unpack(b []byte, from int) {
	if !x.Dense() {
		x.Gaps.Unpack(b, from)
	}
}

// Described returns the items as a buffer: in one run of memory, as bytes.
func (x *Items) Described() Buffer {
	if x.Dense() {
		return Buffer{Mem: In(x.Mem), Count: len(x.Mem), Type: oneByte}
	}
	return x.Gaps
}

var oneByte = OfBytes(1)
