package mpi

import "github.com/weftstack/weft/mpi/internal/datatype"

// Order is the order of the dimensions of an array in memory (MPI_ORDER_C).
type Order int

// Orders of TypeSubarray.
const (
	RowMajor    Order = datatype.RowMajor    // MPI_ORDER_C: the last index varies fastest, as in Go
	ColumnMajor Order = datatype.ColumnMajor // MPI_ORDER_FORTRAN: the first index varies fastest, as in Fortran
)

// TypeSubarray is the part of an array of items with the given sizes that
// begins at starts and has subsizes items in each dimension. Its extent is that
// of the whole array (MPI-4.1, Section 5.1.3).
func TypeSubarray(sizes, subsizes, starts []int, order Order, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Subarray(sizes, subsizes, starts, int(order), t.typ()))
}

// A Dist says how a dimension of an array is spread over ranks
// (MPI_Type_create_darray).
type Dist struct{ dist datatype.Dist }

// DistNone keeps a dimension whole (MPI_DISTRIBUTE_NONE).
func DistNone() Dist { return Dist{} }

// DistBlock gives each rank one block of n items; 0 stands for the smallest n
// that is enough (MPI_DISTRIBUTE_BLOCK).
func DistBlock(n int) Dist { return Dist{datatype.Dist{Kind: datatype.DistBlock, Size: n}} }

// DistCyclic deals out blocks of n items in turn; 0 stands for 1
// (MPI_DISTRIBUTE_CYCLIC).
func DistCyclic(n int) Dist { return Dist{datatype.Dist{Kind: datatype.DistCyclic, Size: n}} }

// TypeDarray is the part that a rank owns of an array of items with the given
// sizes, spread over a grid of ranks by dists. The grid is in row-major order,
// as that of NewCart; order is that of the array. The extent is that of the
// whole array (MPI-4.1, Section 5.1.4).
func TypeDarray(rank int, sizes []int, dists []Dist, grid []int, order Order, t *Datatype) (*Datatype, error) {
	return datatypeOf(datatype.Darray(rank, sizes, distsOf(dists), grid, int(order), t.typ()))
}

// distsOf returns the distributions without the type of this package.
func distsOf(dists []Dist) []datatype.Dist {
	out := make([]datatype.Dist, len(dists))
	for i, d := range dists {
		out[i] = d.dist
	}
	return out
}
