package mpi

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// typeNode is a tree of loops over runs of bytes. Offsets are relative to the
// node around it.
type typeNode struct {
	off    int
	count  int // how often n bytes, or kids, are repeated
	stride int // bytes apart
	n      int // length of the run, if there are no kids
	kids   []typeNode
}

func run(off, n int) typeNode { return typeNode{off: off, count: 1, n: n} }

// repeat returns the node for count times x, stride bytes apart.
func (x typeNode) repeat(count, stride int) typeNode {
	switch {
	case count == 1 || x.count == 0:
		return x
	case len(x.kids) == 0 && x.count == 1 && stride == x.n:
		x.n *= count
		return x
	case x.count == 1:
		x.count, x.stride = count, stride
		return x
	case x.count*x.stride == stride:
		x.count *= count
		return x
	}
	off := x.off
	x.off = 0
	return typeNode{off: off, count: count, stride: stride, kids: []typeNode{x}}
}

// pack copies the data of the node at base from src to dst and returns how
// much it was.
func (x *typeNode) pack(dst, src []byte, base int) int {
	base += x.off
	m := 0
	if len(x.kids) > 0 {
		for range x.count {
			for i := range x.kids {
				m += x.kids[i].pack(dst[m:], src, base)
			}
			base += x.stride
		}
		return m
	}
	switch x.n {
	case 8: // one word; worth not calling memmove
		for range x.count {
			*(*[8]byte)(dst[m:]) = *(*[8]byte)(src[base:])
			m += 8
			base += x.stride
		}
	case 4:
		for range x.count {
			*(*[4]byte)(dst[m:]) = *(*[4]byte)(src[base:])
			m += 4
			base += x.stride
		}
	default:
		for range x.count {
			m += copy(dst[m:], src[base:base+x.n])
			base += x.stride
		}
	}
	return m
}

// unpack is the reverse of pack. It stops where src ends, and returns what of
// src it did not use.
func (x *typeNode) unpack(dst, src []byte, base int) []byte {
	base += x.off
	for range x.count {
		if len(src) == 0 {
			return nil
		}
		if len(x.kids) == 0 {
			src = src[copy(dst[base:base+x.n], src):]
		}
		for i := range x.kids {
			src = x.kids[i].unpack(dst, src, base)
		}
		base += x.stride
	}
	return src
}

// span checks that count items of t lie within a buffer of length bytes, and
// returns how long they are packed.
func (t *Datatype) span(count, length int) (int, error) {
	if t == nil || count < 0 {
		return 0, fmt.Errorf("%w: %d items of %v", ErrDatatype, count, t)
	}
	size, ok1 := mul2(t.size, count)
	last, ok2 := mul2(t.ub-t.lb, max(count-1, 0))
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("%w: %d items of %v", ErrDatatype, count, t)
	}
	if size > 0 && (t.tlb+min(last, 0) < 0 || t.tub+max(last, 0) > length) {
		return 0, fmt.Errorf("%w: %d items of %v reach outside %d bytes", ErrCount, count, t, length)
	}
	return size, nil
}

func (t *Datatype) packAll(dst, src []byte, count int) {
	for i, m := 0, 0; i < count; i++ {
		m += t.root.pack(dst[m:], src, i*(t.ub-t.lb))
	}
}

func (t *Datatype) unpackAll(dst, src []byte, count int) {
	for i := 0; i < count && len(src) > 0; i++ {
		src = t.root.unpack(dst, src, i*(t.ub-t.lb))
	}
}

// AppendPacked appends the data of count items of t in buf to b and returns
// the result (MPI-4.1, Section 5.2). It returns ErrCount if items reach outside
// buf.
func AppendPacked[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	src, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	size, err := t.span(count, len(src))
	if err != nil {
		return b, err
	}
	n := len(b)
	b = slices.Grow(b, size)[:n+size]
	t.packAll(b[n:], src, count)
	return b, nil
}

// Unpack stores the packed data in b to count items of t in buf and returns
// what follows in b (MPI_Unpack). It returns ErrCount if b is too short or
// items reach outside buf.
func Unpack[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	dst, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	size, err := t.span(count, len(dst))
	if err != nil {
		return b, err
	}
	if len(b) < size {
		return b, fmt.Errorf("%w: %d bytes hold no %d items of %v", ErrCount, len(b), count, t)
	}
	t.unpackAll(dst, b[:size], count)
	return b[size:], nil
}
