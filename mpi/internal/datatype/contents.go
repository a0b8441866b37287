package datatype

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// How a datatype can be made (MPI-4.1, Section 5.1.13). They have no type, so that package mpi
// can give them its own. With what Contents.Integers and Types hold for each.
const (
	CombinerNamed         = iota // MPI_COMBINER_NAMED: Of; none: see Contents.Go
	CombinerDup                  // MPI_COMBINER_DUP: Type.Dup; none
	CombinerContiguous           // MPI_COMBINER_CONTIGUOUS: count
	CombinerVector               // MPI_COMBINER_VECTOR: count, blocklen, stride
	CombinerHvector              // MPI_COMBINER_HVECTOR: the same, the stride in bytes
	CombinerIndexed              // MPI_COMBINER_INDEXED: count, lens …, displs …
	CombinerHindexed             // MPI_COMBINER_HINDEXED: the same, displs in bytes
	CombinerIndexedBlock         // MPI_COMBINER_INDEXED_BLOCK: count, blocklen, displs …
	CombinerHindexedBlock        // MPI_COMBINER_HINDEXED_BLOCK: the same, displs in bytes
	CombinerStruct               // MPI_COMBINER_STRUCT: count, lens …, displs …; a type for each block
	CombinerSubarray             // MPI_COMBINER_SUBARRAY: dimensions, sizes …, subsizes …, starts …, order
	CombinerDarray               // MPI_COMBINER_DARRAY: rank, dimensions, sizes …, grid …, order; and Dists
	CombinerResized              // MPI_COMBINER_RESIZED: lb, extent
)

var combinerNames = [...]string{"named", "dup", "contiguous", "vector", "hvector", "indexed", "hindexed",
	"indexed block", "hindexed block", "struct", "subarray", "darray", "resized"}

// CombinerName returns the name of a combiner in lower case.
func CombinerName(c int) string {
	if c >= 0 && c < len(combinerNames) {
		return combinerNames[c]
	}
	return fmt.Sprintf("combiner %d", c)
}

// Contents is how a datatype was made: with which constructor, and which
// arguments.
type Contents struct {
	Combiner int
	Integers []int        // counts, lengths, displacements and so on: see Combiner
	Dists    []Dist       // of CombinerDarray
	Types    []*Type      // one, but for CombinerNamed and CombinerStruct
	Go       reflect.Type // of CombinerNamed

	Named *Type // of CombinerNamed
}

// Contents tells how t was made (MPI_Type_get_contents). The slices are the
// caller's to change, the datatypes are those that t was made of.
func (t *Type) Contents() Contents {
	if t.made == nil {
		return Contents{}
	}
	c := *t.made
	c.Integers, c.Dists, c.Types = slices.Clone(c.Integers), slices.Clone(c.Dists), slices.Clone(c.Types)
	return c
}

// madeBy notes how t was made. With an error there is no t.
func (t *Type) madeBy(err error, how int, integers []int, types ...*Type) (*Type, error) {
	if err != nil {
		return nil, err
	}
	t.made = &Contents{Combiner: how, Integers: integers, Types: slices.Clone(types)}
	t.base = nil
	for i, part := range types {
		if how == CombinerStruct && integers[1+i] == 0 {
			continue // a block without items
		}
		b := part.Base()
		if t.base == nil {
			t.base = b
		}
		if b == nil || !sameBase(b, t.base) {
			t.base = nil
			break
		}
	}
	return t, nil
}

// sameBase reports whether a and b are one predefined datatype, or datatypes of one Go type.
func sameBase(a, b *Type) bool {
	return a == b || a.named != nil && a.named == b.named ||
		a.named == nil && b.named == nil && a.made.Go != nil && a.made.Go == b.made.Go
}

// Build makes a datatype of contents, which may have been changed: of other
// types, or lengths (MPI_Type_get_contents). It returns mpierr.ErrDatatype if there
// are too few or too many integers or types for the combiner. What
// Datatype.Contents tells of a named type gives that type.
func (c Contents) Build() (*Type, error) {
	in := contentsReader{left: c.Integers}
	t, err := c.build(&in)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (c Contents) build(in *contentsReader) (*Type, error) {
	one := func() *Type {
		if len(c.Types) != 1 || c.Types[0] == nil {
			in.bad = true
			return nil
		}
		return c.Types[0]
	}
	if c.Combiner == CombinerNamed {
		if c.Named == nil || len(c.Integers)+len(c.Types) > 0 {
			return nil, fmt.Errorf("%w: named by no datatype", mpierr.ErrDatatype)
		}
		return c.Named, nil
	}
	if c.Combiner == CombinerStruct {
		n := in.count()
		lens, displs := in.list(n), in.list(n)
		if err := in.end(); err != nil {
			return nil, err
		}
		return Struct(lens, displs, c.Types)
	}
	t := one()
	var make func() (*Type, error)
	switch c.Combiner {
	case CombinerDup:
		make = t.Dup
	case CombinerContiguous:
		n := in.one()
		make = func() (*Type, error) { return Contiguous(n, t) }
	case CombinerVector, CombinerHvector:
		n, length, stride := in.one(), in.one(), in.one()
		make = func() (*Type, error) {
			if c.Combiner == CombinerVector {
				return Vector(n, length, stride, t)
			}
			return Hvector(n, length, stride, t)
		}
	case CombinerIndexed, CombinerHindexed:
		n := in.count()
		lens, displs := in.list(n), in.list(n)
		make = func() (*Type, error) {
			if c.Combiner == CombinerIndexed {
				return Indexed(lens, displs, t)
			}
			return Hindexed(lens, displs, t)
		}
	case CombinerIndexedBlock, CombinerHindexedBlock:
		n, length := in.count(), in.one()
		displs := in.list(n)
		make = func() (*Type, error) {
			if c.Combiner == CombinerIndexedBlock {
				return IndexedBlock(length, displs, t)
			}
			return HindexedBlock(length, displs, t)
		}
	case CombinerSubarray:
		d := in.count()
		sizes, subsizes, starts, order := in.list(d), in.list(d), in.list(d), in.one()
		make = func() (*Type, error) { return Subarray(sizes, subsizes, starts, order, t) }
	case CombinerDarray:
		rank, d := in.one(), in.count()
		sizes, grid, order := in.list(d), in.list(d), in.one()
		make = func() (*Type, error) { return Darray(rank, sizes, c.Dists, grid, order, t) }
	case CombinerResized:
		lb, extent := in.one(), in.one()
		make = func() (*Type, error) { return Resized(t, lb, extent) }
	default:
		return nil, fmt.Errorf("%w: %s", mpierr.ErrDatatype, CombinerName(c.Combiner))
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	return make()
}

// contentsReader takes integers one after the other.
type contentsReader struct {
	left []int
	bad  bool
}

func (r *contentsReader) one() int {
	v := r.list(1)
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// count is the length of lists that follow.
func (r *contentsReader) count() int {
	n := r.one()
	if n < 0 || n > len(r.left) {
		r.bad = true
		return 0
	}
	return n
}

func (r *contentsReader) list(n int) []int {
	if n > len(r.left) {
		r.bad = true
		return nil
	}
	v := r.left[:n]
	r.left = r.left[n:]
	return v
}

// end reports whether all was there, and no more.
func (r *contentsReader) end() error {
	if r.bad || len(r.left) > 0 {
		return fmt.Errorf("%w: contents do not fit the combiner", mpierr.ErrDatatype)
	}
	return nil
}
