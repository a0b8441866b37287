package datatype

import (
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// The constructors of datatypes (MPI-4.1, Section 5.1.2). What their _c forms make tells all numbers
// as large counts.

// TypeContiguous is MPI_Type_contiguous.
func TypeContiguous(count int, oldtype abi.Handle, newtype uintptr, large bool) int {
	m := makeType("MPI_Type_contiguous", newtype)
	m.count("count", count)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerContiguous, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, []int{count}, nil)
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeContiguous(count, t.Datatype) })
}

// TypeVector is MPI_Type_vector.
func TypeVector(count, blocklength, stride int, oldtype abi.Handle, newtype uintptr, large bool) int {
	m := makeType("MPI_Type_vector", newtype)
	m.count("count", count)
	m.length("blocklength", blocklength)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerVector, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, []int{count, blocklength, stride}, nil)
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeVector(count, blocklength, stride, t.Datatype) })
}

// TypeCreateHvector is MPI_Type_create_hvector.
func TypeCreateHvector(count, blocklength, stride int, oldtype abi.Handle, newtype uintptr, large bool) int {
	m := makeType("MPI_Type_create_hvector", newtype)
	m.count("count", count)
	m.length("blocklength", blocklength)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerHvector, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, []int{count, blocklength}, []int{stride})
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeHvector(count, blocklength, stride, t.Datatype) })
}

// TypeIndexed is MPI_Type_indexed.
func TypeIndexed(count int, blocklengths, displacements uintptr, oldtype abi.Handle, newtype uintptr, large bool) int {
	m := makeType("MPI_Type_indexed", newtype)
	n := m.count("count", count)
	lens := m.lens("array_of_blocklengths", blocklengths, n, large)
	displs := m.ints("array_of_displacements", displacements, n, large)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerIndexed, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, slices.Concat([]int{n}, lens, displs), nil)
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeIndexed(lens, displs, t.Datatype) })
}

// TypeCreateHindexed is MPI_Type_create_hindexed.
func TypeCreateHindexed(count int, blocklengths, displacements uintptr, oldtype abi.Handle, newtype uintptr,
	large bool) int {
	m := makeType("MPI_Type_create_hindexed", newtype)
	n := m.count("count", count)
	lens := m.lens("array_of_blocklengths", blocklengths, n, large)
	displs := m.ints("array_of_displacements", displacements, n, true)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerHindexed, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, slices.Concat([]int{n}, lens), displs)
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeHindexed(lens, displs, t.Datatype) })
}

// TypeCreateIndexedBlock is MPI_Type_create_indexed_block.
func TypeCreateIndexedBlock(count, blocklength int, displacements uintptr, oldtype abi.Handle, newtype uintptr,
	large bool) int {
	m := makeType("MPI_Type_create_indexed_block", newtype)
	n := m.count("count", count)
	m.length("blocklength", blocklength)
	displs := m.ints("array_of_displacements", displacements, n, large)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerIndexedBlock, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, slices.Concat([]int{n, blocklength}, displs), nil)
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeIndexedBlock(blocklength, displs, t.Datatype) })
}

// TypeCreateHindexedBlock is MPI_Type_create_hindexed_block.
func TypeCreateHindexedBlock(count, blocklength int, displacements uintptr, oldtype abi.Handle, newtype uintptr,
	large bool) int {
	m := makeType("MPI_Type_create_hindexed_block", newtype)
	n := m.count("count", count)
	m.length("blocklength", blocklength)
	displs := m.ints("array_of_displacements", displacements, n, true)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerHindexedBlock, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, []int{n, blocklength}, displs)
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeHindexedBlock(blocklength, displs, t.Datatype) })
}

// TypeCreateStruct is MPI_Type_create_struct.
func TypeCreateStruct(count int, blocklengths, displacements, oldtypes, newtype uintptr, large bool) int {
	m := makeType("MPI_Type_create_struct", newtype)
	n := m.count("count", count)
	lens := m.lens("array_of_blocklengths", blocklengths, n, large)
	displs := m.ints("array_of_displacements", displacements, n, true)
	made := cbinding.Recipe{Combiner: abi.CombinerStruct}
	made.Numbers(large, slices.Concat([]int{n}, lens), displs)
	var parts []*mpi.Datatype
	if m.err == nil {
		var hs []abi.Handle
		hs, m.err = cbinding.Handles("array_of_types", oldtypes, n)
		for _, h := range hs {
			if t := m.old(h); t != nil {
				made.Types = append(made.Types, t)
				parts = append(parts, t.Datatype)
			}
		}
	}
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeStruct(lens, displs, parts) })
}

// TypeCreateResized is MPI_Type_create_resized.
func TypeCreateResized(oldtype abi.Handle, lb, extent int, newtype uintptr, large bool) int {
	m := makeType("MPI_Type_create_resized", newtype)
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerResized, Types: []*cbinding.Datatype{t}}
	made.Numbers(large, nil, []int{lb, extent})
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeResized(t.Datatype, lb, extent) })
}

// length checks a block length.
func (m *typeMaker) length(name string, n int) {
	if m.err == nil && n < 0 {
		m.err = cbinding.ArgError(abi.ErrArg, name, n, "is negative")
	}
}
