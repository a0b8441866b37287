package coll

import (
	"slices"
	"strconv"
)

// Kind is a collective operation.
type Kind uint8

// The collective operations that have algorithms to choose from.
const (
	Barrier Kind = iota
	Bcast
	Reduce
	Allreduce
	Gather
	Gatherv
	Scatter
	Scatterv
	Allgather
	Allgatherv
	Alltoall
	Alltoallv
	ReduceScatter
	ReduceScatterBlock
	Scan
	Exscan
	Kinds // how many there are
)

// The operations without a choice.
const (
	Neighbor  Kind = 254
	Alltoallw Kind = 255
)

var kindNames = [Kinds]string{
	"barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather",
	"allgatherv", "alltoall", "alltoallv", "reduce-scatter", "reduce-scatter-block", "scan", "exscan",
}

// String returns the name that tuning tables use.
func (k Kind) String() string {
	if k < Kinds {
		return kindNames[k]
	}
	switch k {
	case Neighbor:
		return "neighbour collective"
	case Alltoallw:
		return "alltoallw"
	}
	return "collective " + strconv.Itoa(int(k))
}

// KindOf returns the operation with a name that tuning tables use.
func KindOf(name string) (k Kind, ok bool) {
	i := slices.Index(kindNames[:], name)
	return Kind(i), i >= 0
}
