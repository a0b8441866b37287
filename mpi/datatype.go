package mpi

import "github.com/weftstack/weft/mpi/internal/datatype"

// MaxTypeDepth bounds how deep datatypes may be nested.
const MaxTypeDepth = datatype.MaxDepth

// A Datatype says where the parts of an item lie in memory, in bytes from the
// beginning of a buffer (MPI-4.1, Chapter 5). It is made with TypeOf and the
// constructors, is never changed, and needs no commit. Two items in a row lie
// Extent bytes apart.
type Datatype struct {
	rt  *datatype.Type
	own labels
}

// datatypeOf makes the Datatype of what a constructor has returned, or returns that which
// it has already.
func datatypeOf(rt *datatype.Type, err error) (*Datatype, error) {
	if err != nil {
		return nil, err
	}
	if t, ok := rt.Handle.(*Datatype); ok {
		return t, nil
	}
	t := &Datatype{rt: rt}
	rt.Handle = t
	return t, nil
}

// typ returns the datatype without its labels; nil for nil.
func (t *Datatype) typ() *datatype.Type {
	if t == nil {
		return nil
	}
	return t.rt
}

// typesOf is typ for many.
func typesOf(types []*Datatype) []*datatype.Type {
	rts := make([]*datatype.Type, len(types))
	for i, t := range types {
		rts[i] = t.typ()
	}
	return rts
}

// Size returns the bytes of data in an item: its length when packed
// (MPI_Type_size).
func (t *Datatype) Size() int { return t.rt.Size() }

// Extent returns the lower bound and the extent of an item
// (MPI_Type_get_extent).
func (t *Datatype) Extent() (lb, extent int) {
	lb, _ = t.rt.Bounds()
	return lb, t.rt.Extent()
}

// TrueExtent returns the lower bound and the extent of the data of an item,
// without gaps at its ends (MPI_Type_get_true_extent).
func (t *Datatype) TrueExtent() (lb, extent int) {
	lb, ub := t.rt.TrueBounds()
	return lb, ub - lb
}

// String describes t.
func (t *Datatype) String() string { return t.typ().String() }

// Signature lists the elements of an item in the order in which they are
// packed, for people, as "2×int32 float64" (MPI-4.1, Section 5.1).
func (t *Datatype) Signature() string { return t.typ().Signature() }

// Matches reports whether items of t and u have the same elements in the same
// order, which is when one may be sent and the other received (MPI-4.1,
// Section 3.3.1). Messages are checked less strictly: see ErrTypeMismatch.
func (t *Datatype) Matches(u *Datatype) bool { return t.typ().Matches(u.typ()) }

// TypeOf returns the datatype of one T (MPI-4.1, Section 3.2.2). That of a struct is what [TypeStruct]
// makes of its fields, with the size of the struct as extent: padding is no data. It returns ErrType if
// T holds pointers.
func TypeOf[T Element]() (*Datatype, error) { return datatypeOf(datatype.Of[T]()) }

// MustType returns t, for datatypes whose arguments are right for sure, so that
// they can be made within one another. It panics if err is not nil.
func MustType(t *Datatype, err error) *Datatype {
	if err != nil {
		panic(err)
	}
	return t
}

// TypeContiguous is count items in a row (MPI-4.1, Section 5.1.2).
func TypeContiguous(count int, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Contiguous(count, t.typ()))
}

// TypeVector is count blocks of blocklen items, which begin stride items apart
// (MPI-4.1, Section 5.1.2).
func TypeVector(count, blocklen, stride int, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Vector(count, blocklen, stride, t.typ()))
}

// TypeHvector is TypeVector with a stride in bytes (MPI_Type_create_hvector).
func TypeHvector(count, blocklen, stride int, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Hvector(count, blocklen, stride, t.typ()))
}

// TypeIndexed is blocks of lens[i] items, at displs[i] items from the beginning
// (MPI-4.1, Section 5.1.2).
func TypeIndexed(lens, displs []int, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Indexed(lens, displs, t.typ()))
}

// TypeIndexedBlock is TypeIndexed with blocks of the same length
// (MPI_Type_create_indexed_block).
func TypeIndexedBlock(blocklen int, displs []int, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.IndexedBlock(blocklen, displs, t.typ()))
}

// TypeHindexed is TypeIndexed with displacements in bytes
// (MPI_Type_create_hindexed).
func TypeHindexed(lens, displs []int, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Hindexed(lens, displs, t.typ()))
}

// TypeHindexedBlock is TypeHindexed with blocks of the same length
// (MPI_Type_create_hindexed_block).
func TypeHindexedBlock(blocklen int, displs []int, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.HindexedBlock(blocklen, displs, t.typ()))
}

// TypeStruct is blocks of lens[i] items of types[i], at displs[i] bytes from
// the beginning (MPI-4.1, Section 5.1.2). As in a Go struct, the end is padded
// to the alignment of the strictest part, unless the bounds are those of a part made by
// TypeResized.
func TypeStruct(lens, displs []int, types []*Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Struct(lens, displs, typesOf(types)))
}

// TypeResized is t with other bounds, to place items that follow one another
// (MPI-4.1, Section 5.1.7). A datatype that is made of it and of others has the bounds
// of the resized parts alone (Section 5.1.6: lb_marker and ub_marker); TypeSubarray and
// TypeDarray set bounds in this way too.
func TypeResized(t *Datatype, lb, extent int) (*Datatype, error) {
	return datatypeOf(datatype.Resized(t.typ(), lb, extent))
}

func (t *Datatype) attributes() *attributes { return &t.own.attrs }

// Name returns the name given with SetName (MPI_Type_get_name).
func (t *Datatype) Name() string { return t.own.getName() }

// SetName names the datatype (MPI_Type_set_name).
func (t *Datatype) SetName(name string) { t.own.setName(name) }

// Dup returns a datatype like t, with those attributes that are copied. The name
// is not (MPI-4.1, Section 5.1.10).
func (t *Datatype) Dup() (*Datatype, error) {
	d, err := datatypeOf(t.rt.Dup())
	if err != nil {
		return nil, err
	}
	if err := t.own.attrs.copyTo(d); err != nil {
		return nil, err
	}
	return d, nil
}
