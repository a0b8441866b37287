package mpi

import (
	"fmt"
	"slices"
)

// A Dist says how a dimension of an array is spread over ranks
// (MPI_Type_create_darray).
type Dist struct {
	kind distKind
	size int // of the blocks; 0: default
}

type distKind uint8

const (
	distNone distKind = iota
	distBlock
	distCyclic
)

// DistNone keeps a dimension whole (MPI_DISTRIBUTE_NONE).
func DistNone() Dist { return Dist{} }

// DistBlock gives each rank one block of n items; 0 stands for the smallest n
// that is enough (MPI_DISTRIBUTE_BLOCK).
func DistBlock(n int) Dist { return Dist{distBlock, n} }

// DistCyclic deals out blocks of n items in turn; 0 stands for 1
// (MPI_DISTRIBUTE_CYCLIC).
func DistCyclic(n int) Dist { return Dist{distCyclic, n} }

// TypeDarray is the part that a rank owns of an array of items with the given
// sizes, spread over a grid of ranks by dists. The grid is in row-major order,
// as that of NewCart; order is that of the array. The extent is that of the
// whole array (MPI-4.1, Section 5.1.4).
func TypeDarray(rank int, sizes []int, dists []Dist, grid []int, order Order, t *Datatype) (*Datatype, error) {
	d := len(sizes)
	if d == 0 || len(dists) != d || len(grid) != d || order != RowMajor && order != ColumnMajor {
		return nil, fmt.Errorf("%w: %d sizes, %d distributions, grid of %d dimensions", ErrDatatype, d, len(dists), len(grid))
	}
	coords := make([]int, d)
	r := rank
	for i := d - 1; i >= 0; i-- {
		if grid[i] < 1 || r < 0 {
			return nil, fmt.Errorf("%w: rank %d in a grid of %v", ErrDatatype, rank, grid)
		}
		coords[i] = r % grid[i]
		r /= grid[i]
	}
	if r != 0 {
		return nil, fmt.Errorf("%w: rank %d in a grid of %v", ErrDatatype, rank, grid)
	}
	out, stride := t, t.extent()
	var err error
	for k := range d {
		i := d - 1 - k // fastest first
		if order == ColumnMajor {
			i = k
		}
		if out, err = TypeResized(out, 0, stride); err != nil {
			return nil, err
		}
		if out, err = dists[i].part(out, sizes[i], grid[i], coords[i]); err != nil {
			return nil, err
		}
		var ok bool
		if stride, ok = mul2(stride, sizes[i]); !ok {
			return nil, fmt.Errorf("%w: array of %v", ErrDatatype, sizes)
		}
	}
	if out, err = TypeResized(out, 0, stride); err != nil {
		return nil, err
	}
	out.made = &Contents{Combiner: CombinerDarray, Integers: slices.Concat([]int{rank, d}, sizes, grid, []int{int(order)}),
		Dists: slices.Clone(dists), Types: []*Datatype{t}}
	return out, nil
}

// part is the items that one of p ranks owns of n items t in a row.
func (d Dist) part(t *Datatype, n, p, rank int) (*Datatype, error) {
	size, least := d.size, n/p+min(n%p, 1) // least is the smallest block that is enough
	switch {
	case n < 1 || size < 0 || d.kind == distNone && p != 1:
		return nil, fmt.Errorf("%w: %d items over %d ranks", ErrDatatype, n, p)
	case d.kind == distNone:
		size = n
	case d.kind == distBlock && size == 0:
		size = least
	case d.kind == distBlock && size < least:
		return nil, fmt.Errorf("%w: %d blocks of %d do not hold %d items", ErrDatatype, p, size, n)
	case size == 0:
		size = 1
	}
	round, ok1 := mul2(size, p)
	_, ok2 := mul2(n, max(t.extent(), 1))
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%w: %d items in blocks of %d", ErrDatatype, n, size)
	}
	// Whole blocks, the first at first, and what is left of one at the end.
	first := rank * size
	whole := 0
	if first+size <= n {
		whole = (n-first-size)/round + 1
	}
	last := first + whole*round
	blocks, err := TypeVector(whole, size, round, t)
	if err != nil {
		return nil, err
	}
	extent := t.extent()
	return TypeStruct([]int{1, max(min(n-last, size), 0)}, []int{first * extent, last * extent}, []*Datatype{blocks, t})
}
