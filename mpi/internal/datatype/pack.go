package datatype

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// AppendPacked appends the data of count items in src to b (MPI-4.1, Section 5.2).
func (t *Type) AppendPacked(b, src []byte, count int) ([]byte, error) {
	size, err := t.Span(count, len(src))
	if err != nil {
		return b, err
	}
	n := len(b)
	b = slices.Grow(b, size)[:n+size]
	t.Pack(b[n:], src, count)
	return b, nil
}

// UnpackFrom stores the packed data in b to count items in dst and returns what follows
// in b. It returns mpierr.ErrCount if b is too short.
func (t *Type) UnpackFrom(b, dst []byte, count int) ([]byte, error) {
	size, err := t.Span(count, len(dst))
	if err != nil {
		return b, err
	}
	if len(b) < size {
		return b, fmt.Errorf("%w: %d bytes hold no %d items of %v", mpierr.ErrCount, len(b), count, t)
	}
	t.Unpack(dst, b[:size], count)
	return b[size:], nil
}

// ExternalSize returns the bytes of an item in external32.
func (t *Type) ExternalSize() int { return t.sig.sums().ext }

// AppendExternal is AppendPacked in external32 (MPI-4.1, Section 5.3). It returns
// mpierr.ErrConversion for a value that external32 cannot hold.
func (t *Type) AppendExternal(b, src []byte, count int) ([]byte, error) {
	size, err := t.Span(count, len(src))
	if err != nil {
		return b, err
	}
	s := bufpool.Get(size)
	defer s.Put()
	packed := s.Bytes(size)
	t.Pack(packed, src, count)
	n, ext := len(b), t.ExternalSize()*count
	b = slices.Grow(b, ext)[:n+ext]
	if err := t.ExternalTo(b[n:], packed, count); err != nil {
		return b[:n], err
	}
	return b, nil
}

// UnpackExternal is UnpackFrom of data in external32.
func (t *Type) UnpackExternal(b, dst []byte, count int) ([]byte, error) {
	size, err := t.Span(count, len(dst))
	if err != nil {
		return b, err
	}
	ext := t.ExternalSize() * count
	if len(b) < ext {
		return b, fmt.Errorf("%w: %d bytes hold no %d items of %v", mpierr.ErrCount, len(b), count, t)
	}
	s := bufpool.Get(size)
	defer s.Put()
	packed := s.Bytes(size)
	t.Pack(packed, dst, count) // for the padding
	t.ExternalFrom(packed, b[:ext], count)
	t.Unpack(dst, packed, count)
	return b[ext:], nil
}
