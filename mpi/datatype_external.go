package mpi

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// The canonical representation external32 (MPI-4.1, Section 14.5.2): values in
// big-endian order, integers in two's complement, floating-point numbers as in
// IEEE 754, without padding. A Go int is an integer of its own size, a complex
// number two of floating point, a bool one byte.

// bigEndianHost reports whether values lie in memory as in external32.
var bigEndianHost = func() bool {
	x := []uint16{1}
	return datatype.Bytes(x)[0] == 0
}()

// toExternal converts n elements from src to dst and returns what is left of
// both.
func (e *elemLayout) toExternal(dst, src []byte, n int) (d, s []byte) {
	for range n {
		for _, w := range e.words {
			copy(dst, src[w.off:w.off+w.n])
			swapWord(dst[:w.n])
			dst = dst[w.n:]
		}
		src = src[e.size:]
	}
	return dst, src
}

// fromExternal is the reverse of toExternal. Padding is not changed.
func (e *elemLayout) fromExternal(dst, src []byte, n int) (d, s []byte) {
	for range n {
		for _, w := range e.words {
			b := dst[w.off : w.off+w.n]
			copy(b, src)
			swapWord(b)
			src = src[w.n:]
		}
		dst = dst[e.size:]
	}
	return dst, src
}

// swapWord changes a value from the order of the machine to big-endian order,
// and back.
func swapWord(b []byte) {
	if !bigEndianHost {
		slices.Reverse(b)
	}
}

// ExternalSize returns the bytes of an item in external32 (MPI-4.1, Section
// 5.3: MPI_Pack_external_size).
func (t *Datatype) ExternalSize() int {
	n, _ := t.sig.external() // no more than the size, which fits
	return n
}

// AppendExternal is AppendPacked in the representation external32, which
// machines of other architectures read too (MPI-4.1, Section 5.3).
func AppendExternal[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	src, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	size, err := t.span(count, len(src))
	if err != nil {
		return b, err
	}
	s := bufpool.Get(size)
	defer s.Put()
	packed := s.Bytes(size)
	t.packAll(packed, src, count)
	n, ext := len(b), t.ExternalSize()*count
	b = slices.Grow(b, ext)[:n+ext]
	dst := b[n:]
	t.sig.repeat(count).each(func(e *elemLayout, n int) { dst, packed = e.toExternal(dst, packed, n) })
	return b, nil
}

// UnpackExternal is Unpack of data in the representation external32
// (MPI_Unpack_external).
func UnpackExternal[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	dst, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	size, err := t.span(count, len(dst))
	if err != nil {
		return b, err
	}
	ext := t.ExternalSize() * count
	if len(b) < ext {
		return b, fmt.Errorf("%w: %d bytes hold no %d items of %v", ErrCount, len(b), count, t)
	}
	s := bufpool.Get(size)
	defer s.Put()
	packed := s.Bytes(size)
	t.packAll(packed, dst, count) // for the padding
	to, from := packed, b[:ext]
	t.sig.repeat(count).each(func(e *elemLayout, n int) { to, from = e.fromExternal(to, from, n) })
	t.unpackAll(dst, packed, count)
	return b[ext:], nil
}
