package datatype

import (
	"fmt"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A Memory is where items lie: a Go slice, outside of which nothing may be touched, or an
// address about which nothing more is known, as C programs give them. The zero value is
// MPI_BOTTOM: displacements in the datatype are addresses (MPI-4.1, Section 5.1.11).
type Memory struct {
	slice []byte
	begin int // what offset 0 of datatypes is: an index in slice, or an address
	bound bool
}

// In is the memory of b. Offset 0 of datatypes is b[0].
func In(b []byte) Memory { return Memory{slice: b, bound: true} }

// Address is memory at an address, which is known to nobody but the caller: what the datatypes
// of items there say is not checked. It must not be Go memory that moves (a stack) or that
// nothing else keeps alive.
func Address(a uintptr) Memory { return Memory{begin: int(a)} }

// At returns the same memory with offset 0 moved by off, which may be negative.
func (m Memory) At(off int) Memory {
	m.begin += off
	return m
}

// Bytes returns n bytes at an offset. In a slice they must lie within it.
func (m Memory) Bytes(off, n int) []byte {
	if off += m.begin; m.bound {
		return m.slice[off : off+n]
	}
	if n == 0 {
		return nil
	}
	// A uintptr that is no Go pointer may be made one: the collector ignores it.
	a := uintptr(off)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&a)), n)
}

// Addr returns the address of offset 0, for C functions.
func (m Memory) Addr() uintptr {
	if m.bound {
		return uintptr(unsafe.Pointer(unsafe.SliceData(m.slice))) + uintptr(m.begin)
	}
	return uintptr(m.begin)
}

// transfer returns a transfer from or to the offsets [lo, hi) of memory.
func (m Memory) transfer(lo, hi int, out bool) transfer {
	if m.bound {
		return transfer{m.slice, m.begin, out}
	}
	return transfer{m.Bytes(lo, hi-lo), -lo, out}
}

// A Buffer is count items of a datatype in memory: what MPI procedures call a buffer, a count and
// a datatype. It is checked by Span before anything else is called.
type Buffer struct {
	Mem   Memory
	Count int
	Type  *Type
}

// Span checks the count and the datatype, and that the data of the items lies within a slice.
// It returns how long it is packed. Only the data counts, not the bounds of items (MPI-4.1,
// Section 5.1.8: true extent).
func (x Buffer) Span() (int, error) {
	size, lo, hi, err := x.Type.reach(x.Count)
	if err != nil || size == 0 || !x.Mem.bound {
		return size, err
	}
	if b := x.Mem.begin; lo+b < 0 || hi+b > len(x.Mem.slice) {
		return 0, fmt.Errorf("%w: %d items of %v, at %d, reach outside %d bytes",
			mpierr.ErrCount, x.Count, x.Type, b, len(x.Mem.slice))
	}
	return size, nil
}

// reach checks a datatype and a count. It returns the bytes of data, and the offsets where they
// begin and end.
func (t *Type) reach(count int) (size, lo, hi int, err error) {
	if t == nil || count < 0 {
		return 0, 0, 0, fmt.Errorf("%w: %d items of %v", mpierr.ErrDatatype, count, t)
	}
	size, ok1 := Mul(t.size, count)
	last, ok2 := Mul(t.ub-t.lb, max(count-1, 0))
	if !ok1 || !ok2 {
		return 0, 0, 0, fmt.Errorf("%w: %d items of %v", mpierr.ErrDatatype, count, t)
	}
	if size == 0 {
		return 0, 0, 0, nil
	}
	return size, t.tlb + min(last, 0), t.tub + max(last, 0), nil
}

// Contiguous returns the data in place if it is one run of memory.
func (x Buffer) Contiguous() ([]byte, bool) {
	off, n, ok := x.Type.OneRun(x.Count)
	if !ok || n == 0 {
		return nil, ok
	}
	return x.Mem.Bytes(off, n), true
}

// Pack copies the part of the packed data that begins at from to b, as much as there is or as
// b holds, and returns how much it was. Parts may be packed in any order.
func (x Buffer) Pack(b []byte, from int) int { return x.part(b, from, true) }

// Unpack stores b as the part of the packed data that begins at from, as far as there are
// items, and returns how much it stored.
func (x Buffer) Unpack(b []byte, from int) int { return x.part(b, from, false) }

func (x Buffer) part(b []byte, from int, out bool) int {
	size, lo, hi, err := x.Type.reach(x.Count)
	if err != nil || from < 0 || from >= size {
		return 0
	}
	b = b[:min(len(b), size-from)]
	x.Type.part(x.Mem.transfer(lo, hi, out), b, x.Count, from)
	return len(b)
}

// A Cursor goes through the data of items in the order in which it is packed. It is one
// position: it may be copied, and set to any other.
type Cursor struct {
	Buffer
	Pos int // bytes of data before the next
}

// Left returns the bytes of data from the position on.
func (c *Cursor) Left() int { return max(c.Type.Size()*c.Count-c.Pos, 0) }

// Next stores to runs where the next data lies, at most n bytes, and moves on behind it. It
// returns how many runs there are: 0 at the end, or if n or runs leave no room. Runs that
// touch are one. The offsets are those of Mem.Bytes.
func (c *Cursor) Next(runs []Run, n int) int {
	k, m := c.Type.FillRuns(runs, c.Count, c.Pos, c.Pos+min(n, c.Left()))
	c.Pos += m
	return k
}

// Pack copies the next data to b and returns how much it was.
func (c *Cursor) Pack(b []byte) int {
	n := c.Buffer.Pack(b, c.Pos)
	c.Pos += n
	return n
}

// Unpack stores b as the next data and returns how much it stored.
func (c *Cursor) Unpack(b []byte) int {
	n := c.Buffer.Unpack(b, c.Pos)
	c.Pos += n
	return n
}
