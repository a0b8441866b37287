package mpi

import "github.com/weftstack/weft/mpi/internal/datatype"

// AppendPacked appends the data of count items of t in buf to b and returns
// the result (MPI-4.1, Section 5.2). It returns ErrCount if items reach outside
// buf.
func AppendPacked[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	src, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	return t.typ().AppendPacked(b, src, count)
}

// Unpack stores the packed data in b to count items of t in buf and returns
// what follows in b (MPI_Unpack). It returns ErrCount if b is too short or
// items reach outside buf.
func Unpack[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	dst, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	return t.typ().UnpackFrom(b, dst, count)
}

// AppendExternal is AppendPacked in the representation external32, which
// machines of other architectures read too (MPI-4.1, Section 5.3).
func AppendExternal[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	src, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	return t.typ().AppendExternal(b, src, count)
}

// UnpackExternal is Unpack of data in the representation external32
// (MPI_Unpack_external).
func UnpackExternal[T Element](b []byte, buf []T, count int, t *Datatype) ([]byte, error) {
	dst, err := datatype.CheckedBytes(buf)
	if err != nil {
		return b, err
	}
	return t.typ().UnpackExternal(b, dst, count)
}

// ExternalSize returns the bytes of an item in external32 (MPI-4.1, Section
// 5.3: MPI_Pack_external_size).
func (t *Datatype) ExternalSize() int { return t.rt.ExternalSize() }
