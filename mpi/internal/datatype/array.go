package datatype

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Orders of the dimensions of an array in memory. They have no type, so that package mpi
// can give them its own.
const (
	RowMajor    = iota // MPI_ORDER_C: the last index varies fastest
	ColumnMajor        // MPI_ORDER_FORTRAN: the first index varies fastest
)

// Subarray is the part of an array of items with the given sizes that
// begins at starts and has subsizes items in each dimension. Its extent is that
// of the whole array (MPI-4.1, Section 5.1.3).
func Subarray(sizes, subsizes, starts []int, order int, t *Type) (*Type, error) {
	d := len(sizes)
	if d == 0 || len(subsizes) != d || len(starts) != d || order != RowMajor && order != ColumnMajor {
		return nil, fmt.Errorf("%w: %d sizes, %d subsizes, %d starts", mpierr.ErrDatatype, d, len(subsizes), len(starts))
	}
	extent := t.Extent()
	out, stride, off := t, extent, 0
	var err error
	for k := range d {
		i := d - 1 - k // fastest first
		if order == ColumnMajor {
			i = k
		}
		if sizes[i] < 1 || subsizes[i] < 1 || starts[i] < 0 || starts[i] > sizes[i]-subsizes[i] {
			return nil, fmt.Errorf("%w: %d items from %d of %d", mpierr.ErrDatatype, subsizes[i], starts[i], sizes[i])
		}
		if out, err = repeated(subsizes[i], stride, 1, out); err != nil {
			return nil, err
		}
		skip, ok1 := Mul(starts[i], stride)
		sum, ok2 := Add(off, skip)
		next, ok3 := Mul(stride, sizes[i])
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("%w: array of %v", mpierr.ErrDatatype, sizes)
		}
		off, stride = sum, next
	}
	if out, err = HindexedBlock(1, []int{off}, out); err != nil {
		return nil, err
	}
	out, err = Resized(out, 0, stride)
	return out.madeBy(err, CombinerSubarray, slices.Concat([]int{d}, sizes, subsizes, starts, []int{order}), t)
}

// A Dist says how a dimension of an array is spread over ranks.
type Dist struct {
	Kind DistKind
	Size int // items of a block; 0: the default, which is the smallest that is enough, and 1 if cyclic
}

// A DistKind is a way to spread a dimension.
type DistKind uint8

// Ways to spread a dimension.
const (
	DistNone   DistKind = iota // the dimension is whole
	DistBlock                  // a block for each rank
	DistCyclic                 // blocks in turn
)

// Darray is the part that a rank owns of an array of items with the given
// sizes, spread over a grid of ranks by dists. The grid is in row-major order,
// as that of mpi.NewCart; order is that of the array. The extent is that of the
// whole array (MPI-4.1, Section 5.1.4).
func Darray(rank int, sizes []int, dists []Dist, grid []int, order int, t *Type) (*Type, error) {
	d := len(sizes)
	if d == 0 || len(dists) != d || len(grid) != d || order != RowMajor && order != ColumnMajor {
		return nil, fmt.Errorf("%w: %d sizes, %d distributions, grid of %d dimensions", mpierr.ErrDatatype, d, len(dists), len(grid))
	}
	coords := make([]int, d)
	r := rank
	for i := d - 1; i >= 0; i-- {
		if grid[i] < 1 || r < 0 {
			return nil, fmt.Errorf("%w: rank %d in a grid of %v", mpierr.ErrDatatype, rank, grid)
		}
		coords[i] = r % grid[i]
		r /= grid[i]
	}
	if r != 0 {
		return nil, fmt.Errorf("%w: rank %d in a grid of %v", mpierr.ErrDatatype, rank, grid)
	}
	out, stride := t, t.Extent()
	var err error
	for k := range d {
		i := d - 1 - k // fastest first
		if order == ColumnMajor {
			i = k
		}
		if out, err = Resized(out, 0, stride); err != nil {
			return nil, err
		}
		if out, err = dists[i].part(out, sizes[i], grid[i], coords[i]); err != nil {
			return nil, err
		}
		var ok bool
		if stride, ok = Mul(stride, sizes[i]); !ok {
			return nil, fmt.Errorf("%w: array of %v", mpierr.ErrDatatype, sizes)
		}
	}
	if out, err = Resized(out, 0, stride); err != nil {
		return nil, err
	}
	out.made = &Contents{Combiner: CombinerDarray, Integers: slices.Concat([]int{rank, d}, sizes, grid, []int{order}),
		Dists: slices.Clone(dists), Types: []*Type{t}}
	return out, nil
}

// part is the items that one of p ranks owns of n items t in a row.
func (d Dist) part(t *Type, n, p, rank int) (*Type, error) {
	size, least := d.Size, n/p+min(n%p, 1) // least is the smallest block that is enough
	switch {
	case n < 1 || size < 0 || d.Kind == DistNone && p != 1:
		return nil, fmt.Errorf("%w: %d items over %d ranks", mpierr.ErrDatatype, n, p)
	case d.Kind == DistNone:
		size = n
	case d.Kind == DistBlock && size == 0:
		size = least
	case d.Kind == DistBlock && size < least:
		return nil, fmt.Errorf("%w: %d blocks of %d do not hold %d items", mpierr.ErrDatatype, p, size, n)
	case size == 0:
		size = 1
	}
	round, ok1 := Mul(size, p)
	_, ok2 := Mul(n, max(t.Extent(), 1))
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%w: %d items in blocks of %d", mpierr.ErrDatatype, n, size)
	}
	// Whole blocks, the first at first, and what is left of one at the end.
	first := rank * size
	whole := 0
	if first+size <= n {
		whole = (n-first-size)/round + 1
	}
	last := first + whole*round
	blocks, err := Vector(whole, size, round, t)
	if err != nil {
		return nil, err
	}
	extent := t.Extent()
	return Struct([]int{1, max(min(n-last, size), 0)}, []int{first * extent, last * extent}, []*Type{blocks, t})
}
