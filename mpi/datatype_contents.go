package mpi

import (
	"fmt"
	"reflect"
	"slices"
)

// Combiner is how a datatype was made (MPI-4.1, Section 5.1.13).
type Combiner uint8

// Combiners, with what Contents.Integers and Types hold for each.
const (
	CombinerNamed         Combiner = iota // MPI_COMBINER_NAMED: TypeOf; none: see Contents.Go
	CombinerDup                           // MPI_COMBINER_DUP: Datatype.Dup; none
	CombinerContiguous                    // MPI_COMBINER_CONTIGUOUS: count
	CombinerVector                        // MPI_COMBINER_VECTOR: count, blocklen, stride
	CombinerHvector                       // MPI_COMBINER_HVECTOR: the same, the stride in bytes
	CombinerIndexed                       // MPI_COMBINER_INDEXED: count, lens …, displs …
	CombinerHindexed                      // MPI_COMBINER_HINDEXED: the same, displs in bytes
	CombinerIndexedBlock                  // MPI_COMBINER_INDEXED_BLOCK: count, blocklen, displs …
	CombinerHindexedBlock                 // MPI_COMBINER_HINDEXED_BLOCK: the same, displs in bytes
	CombinerStruct                        // MPI_COMBINER_STRUCT: count, lens …, displs …; a type for each block
	CombinerSubarray                      // MPI_COMBINER_SUBARRAY: dimensions, sizes …, subsizes …, starts …, order
	CombinerDarray                        // MPI_COMBINER_DARRAY: rank, dimensions, sizes …, grid …, order; and Dists
	CombinerResized                       // MPI_COMBINER_RESIZED: lb, extent
)

var combinerNames = [...]string{"named", "dup", "contiguous", "vector", "hvector", "indexed", "hindexed",
	"indexed block", "hindexed block", "struct", "subarray", "darray", "resized"}

// String returns the name in lower case.
func (c Combiner) String() string {
	if int(c) < len(combinerNames) {
		return combinerNames[c]
	}
	return fmt.Sprintf("combiner %d", uint8(c))
}

// Contents is how a datatype was made: with which constructor, and which
// arguments (MPI_Type_get_envelope, MPI_Type_get_contents).
type Contents struct {
	Combiner Combiner
	Integers []int        // counts, lengths, displacements and so on: see Combiner
	Dists    []Dist       // of CombinerDarray
	Types    []*Datatype  // one, but for CombinerNamed and CombinerStruct
	Go       reflect.Type // of CombinerNamed

	named *Datatype
}

// Contents tells how t was made (MPI_Type_get_contents). The slices are the
// caller's to change, the datatypes are those that t was made of.
func (t *Datatype) Contents() Contents {
	if t.made == nil {
		return Contents{}
	}
	c := *t.made
	c.Integers, c.Dists, c.Types = slices.Clone(c.Integers), slices.Clone(c.Dists), slices.Clone(c.Types)
	return c
}

// madeBy notes how t was made. With an error there is no t.
func (t *Datatype) madeBy(err error, how Combiner, integers []int, types ...*Datatype) (*Datatype, error) {
	if err != nil {
		return nil, err
	}
	t.made = &Contents{Combiner: how, Integers: integers, Types: slices.Clone(types)}
	return t, nil
}

// Build makes a datatype of contents, which may have been changed: of other
// types, or lengths (MPI_Type_get_contents). It returns ErrDatatype if there
// are too few or too many integers or types for the combiner. What
// Datatype.Contents tells of a named type gives that type.
func (c Contents) Build() (*Datatype, error) {
	in := contentsReader{left: c.Integers}
	t, err := c.build(&in)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (c Contents) build(in *contentsReader) (*Datatype, error) {
	one := func() *Datatype {
		if len(c.Types) != 1 || c.Types[0] == nil {
			in.bad = true
			return nil
		}
		return c.Types[0]
	}
	if c.Combiner == CombinerNamed {
		if c.named == nil || len(c.Integers)+len(c.Types) > 0 {
			return nil, fmt.Errorf("%w: named by no datatype", ErrDatatype)
		}
		return c.named, nil
	}
	if c.Combiner == CombinerStruct {
		n := in.count()
		lens, displs := in.list(n), in.list(n)
		if err := in.end(); err != nil {
			return nil, err
		}
		return TypeStruct(lens, displs, c.Types)
	}
	t := one()
	var make func() (*Datatype, error)
	switch c.Combiner {
	case CombinerDup:
		make = t.Dup
	case CombinerContiguous:
		n := in.one()
		make = func() (*Datatype, error) { return TypeContiguous(n, t) }
	case CombinerVector, CombinerHvector:
		n, length, stride := in.one(), in.one(), in.one()
		make = func() (*Datatype, error) {
			if c.Combiner == CombinerVector {
				return TypeVector(n, length, stride, t)
			}
			return TypeHvector(n, length, stride, t)
		}
	case CombinerIndexed, CombinerHindexed:
		n := in.count()
		lens, displs := in.list(n), in.list(n)
		make = func() (*Datatype, error) {
			if c.Combiner == CombinerIndexed {
				return TypeIndexed(lens, displs, t)
			}
			return TypeHindexed(lens, displs, t)
		}
	case CombinerIndexedBlock, CombinerHindexedBlock:
		n, length := in.count(), in.one()
		displs := in.list(n)
		make = func() (*Datatype, error) {
			if c.Combiner == CombinerIndexedBlock {
				return TypeIndexedBlock(length, displs, t)
			}
			return TypeHindexedBlock(length, displs, t)
		}
	case CombinerSubarray:
		d := in.count()
		sizes, subsizes, starts, order := in.list(d), in.list(d), in.list(d), in.one()
		make = func() (*Datatype, error) { return TypeSubarray(sizes, subsizes, starts, Order(order), t) }
	case CombinerDarray:
		rank, d := in.one(), in.count()
		sizes, grid, order := in.list(d), in.list(d), in.one()
		make = func() (*Datatype, error) { return TypeDarray(rank, sizes, c.Dists, grid, Order(order), t) }
	case CombinerResized:
		lb, extent := in.one(), in.one()
		make = func() (*Datatype, error) { return TypeResized(t, lb, extent) }
	default:
		return nil, fmt.Errorf("%w: %v", ErrDatatype, c.Combiner)
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
		return fmt.Errorf("%w: contents do not fit the combiner", ErrDatatype)
	}
	return nil
}
