package mpi

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// AppendPacked appends the data of b to dst and returns the result (MPI-4.1, Section 5.2: MPI_Pack).
// Errors are those of the call that made b.
func (b Buffer) AppendPacked(dst []byte) ([]byte, error) {
	if b.err != nil {
		return dst, b.err
	}
	if b.items.Dense() {
		return append(dst, b.items.Mem...), nil
	}
	n := len(dst)
	dst = slices.Grow(dst, b.items.Len())[:n+b.items.Len()]
	b.items.Gaps.Pack(dst[n:], 0)
	return dst, nil
}

// Unpack stores the packed data in src to b and returns what follows in src (MPI_Unpack). It returns
// ErrCount if src is too short, or the error of the call that made b.
func (b Buffer) Unpack(src []byte) ([]byte, error) {
	if b.err != nil {
		return src, b.err
	}
	n := b.items.Len()
	if len(src) < n {
		return src, fmt.Errorf("%w: %d packed bytes for %v", ErrCount, len(src), b)
	}
	if b.items.Dense() {
		copy(b.items.Mem, src)
	} else {
		b.items.Gaps.Unpack(src[:n], 0)
	}
	return src[n:], nil
}

// ExternalLen returns how many bytes the data has in external32 (MPI_Pack_external_size). It is 0 for
// [Elements] and for a Buffer that calls refuse.
func (b Buffer) ExternalLen() int {
	t, count, err := b.external()
	if err != nil {
		return 0
	}
	return t.ExternalSize() * count
}

// AppendExternal is [Buffer.AppendPacked] in the representation external32 (MPI-4.1, Section 5.3:
// MPI_Pack_external). It returns ErrConversion for a value that external32 cannot hold, and
// ErrDatatype for [Elements].
func (b Buffer) AppendExternal(dst []byte) ([]byte, error) {
	t, count, err := b.external()
	if err != nil {
		return dst, err
	}
	packed, own := b.items.Packed()
	defer own.Put()
	n := len(dst)
	dst = slices.Grow(dst, t.ExternalSize()*count)[:n+t.ExternalSize()*count]
	if err := t.ExternalTo(dst[n:], packed, count); err != nil {
		return dst[:n], err
	}
	return dst, nil
}

// UnpackExternal is [Buffer.Unpack] of data in the representation external32 (MPI_Unpack_external).
// It returns ErrCount if src is too short, and ErrDatatype for [Elements].
func (b Buffer) UnpackExternal(src []byte) ([]byte, error) {
	t, count, err := b.external()
	if err != nil {
		return src, err
	}
	n := t.ExternalSize() * count
	if len(src) < n {
		return src, fmt.Errorf("%w: %d bytes of external32 for %v", ErrCount, len(src), b)
	}
	packed, own := b.items.Room()
	defer own.Put()
	t.ExternalFrom(packed, src[:n], count)
	b.items.Unpack(packed, 0)
	return src[n:], nil
}

// external returns the datatype and the count of items for a conversion.
func (b *Buffer) external() (t *datatype.Type, count int, err error) {
	switch t = b.items.Type; {
	case b.err != nil:
		return nil, 0, b.err
	case t == nil && b.items.Len() > 0:
		return nil, 0, fmt.Errorf("%w: %v of elements has none to convert by", ErrDatatype, b)
	case t == nil || t.Size() == 0:
		return datatype.OfBytes(0), 0, nil
	}
	return t, b.items.Len() / t.Size(), nil
}
