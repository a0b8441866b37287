package mpi

import (
	"reflect"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Combiner is how a datatype was made (MPI-4.1, Section 5.1.13).
type Combiner uint8

// Combiners, with what Contents.Integers and Types hold for each.
const (
	// MPI_COMBINER_NAMED: TypeOf; none: see Contents.Go.
	CombinerNamed Combiner = datatype.CombinerNamed
	// MPI_COMBINER_DUP: Datatype.Dup; none.
	CombinerDup Combiner = datatype.CombinerDup
	// MPI_COMBINER_CONTIGUOUS: count.
	CombinerContiguous Combiner = datatype.CombinerContiguous
	// MPI_COMBINER_VECTOR: count, blocklen, stride.
	CombinerVector Combiner = datatype.CombinerVector
	// MPI_COMBINER_HVECTOR: the same, the stride in bytes.
	CombinerHvector Combiner = datatype.CombinerHvector
	// MPI_COMBINER_INDEXED: count, lens …, displs …
	CombinerIndexed Combiner = datatype.CombinerIndexed
	// MPI_COMBINER_HINDEXED: the same, displs in bytes.
	CombinerHindexed Combiner = datatype.CombinerHindexed
	// MPI_COMBINER_INDEXED_BLOCK: count, blocklen, displs …
	CombinerIndexedBlock Combiner = datatype.CombinerIndexedBlock
	// MPI_COMBINER_HINDEXED_BLOCK: the same, displs in bytes.
	CombinerHindexedBlock Combiner = datatype.CombinerHindexedBlock
	// MPI_COMBINER_STRUCT: count, lens …, displs …; a type for each block.
	CombinerStruct Combiner = datatype.CombinerStruct
	// MPI_COMBINER_SUBARRAY: dimensions, sizes …, subsizes …, starts …, order.
	CombinerSubarray Combiner = datatype.CombinerSubarray
	// MPI_COMBINER_DARRAY: rank, dimensions, sizes …, grid …, order; and Dists.
	CombinerDarray Combiner = datatype.CombinerDarray
	// MPI_COMBINER_RESIZED: lb, extent.
	CombinerResized Combiner = datatype.CombinerResized
)

// String returns the name in lower case.
func (c Combiner) String() string { return datatype.CombinerName(int(c)) }

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
	rc := t.rt.Contents()
	c := Contents{Combiner: Combiner(rc.Combiner), Integers: rc.Integers, Go: rc.Go}
	for _, d := range rc.Dists {
		c.Dists = append(c.Dists, Dist{d})
	}
	for _, rt := range rc.Types {
		c.Types = append(c.Types, rt.Handle.(*Datatype))
	}
	if rc.Named != nil {
		c.named = t
	}
	return c
}

// Build makes a datatype of contents, which may have been changed: of other
// types, or lengths (MPI_Type_get_contents). It returns ErrDatatype if there
// are too few or too many integers or types for the combiner. What
// Datatype.Contents tells of a named type gives that type.
func (c Contents) Build() (*Datatype, error) {
	return datatypeOf(datatype.Contents{
		Combiner: int(c.Combiner),
		Integers: c.Integers,
		Dists:    distsOf(c.Dists),
		Types:    typesOf(c.Types),
		Go:       c.Go,
		Named:    c.named.typ(),
	}.Build())
}
