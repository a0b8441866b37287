package topology

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A Grid is a Cartesian arrangement of ranks, the last dimension varying fastest. Dimension i is a
// ring if Periods[i].
type Grid struct {
	Dims    []int
	Periods []bool
}

// Check returns how many ranks the grid needs, of n that there are.
func (g Grid) Check(n int) (int, error) {
	if len(g.Dims) != len(g.Periods) {
		return 0, fmt.Errorf("%w: %d dimensions, %d periods", mpierr.ErrTopology, len(g.Dims), len(g.Periods))
	}
	size := 1
	for _, d := range g.Dims {
		if d < 1 || size > n/d {
			return 0, fmt.Errorf("%w: grid of %v on %d ranks", mpierr.ErrTopology, g.Dims, n)
		}
		size *= d
	}
	return size, nil
}

// Coords returns the place of a rank of the grid.
func (g Grid) Coords(rank int) []int {
	at := make([]int, len(g.Dims))
	for i := len(g.Dims) - 1; i >= 0; i-- {
		at[i] = rank % g.Dims[i]
		rank /= g.Dims[i]
	}
	return at
}

// Rank returns the rank at a place; in rings coordinates wrap. Outside the grid it returns ErrRank.
func (g Grid) Rank(coords []int) (int, error) {
	if len(coords) != len(g.Dims) {
		return 0, fmt.Errorf("%w: %d coordinates for %d dimensions", mpierr.ErrTopology, len(coords), len(g.Dims))
	}
	rank := 0
	for i, x := range coords {
		d := g.Dims[i]
		if g.Periods[i] {
			x = (x%d + d) % d
		}
		if x < 0 || x >= d {
			return 0, fmt.Errorf("%w: coordinates %v in %v", mpierr.ErrRank, coords, g.Dims)
		}
		rank = rank*d + x
	}
	return rank, nil
}

// Shift returns the rank that is disp further in one dimension than the place from, or none beyond
// an edge.
func (g Grid) Shift(from []int, dim, disp, none int) int {
	place := slices.Clone(from)
	if place[dim] += disp % g.Dims[dim]; !g.Periods[dim] {
		place[dim] = from[dim] + disp
	}
	rank, err := g.Rank(place)
	if err != nil {
		return none
	}
	return rank
}

// Sub returns the grid of the dimensions to keep that the rank at a place belongs to. Ranks of one
// such grid have the same color, and key is the rank in it.
func (g Grid) Sub(place []int, keep []bool) (sub Grid, color, key int) {
	for i, d := range g.Dims {
		if keep[i] {
			sub.Dims, sub.Periods = append(sub.Dims, d), append(sub.Periods, g.Periods[i])
			key = key*d + place[i]
		} else {
			color = color*d + place[i]
		}
	}
	return sub, color, key
}

// Arcs returns the edges of the grid.
func (g Grid) Arcs() [][]Arc {
	dims, periods := g.Dims, g.Periods
	n := 1
	for _, d := range dims {
		n *= d
	}
	arcs := make([][]Arc, n)
	for i := range arcs {
		stride := 1
		for k := len(dims) - 1; k >= 0; k-- {
			at := i / stride % dims[k]
			up := i + stride
			if at == dims[k]-1 {
				up -= dims[k] * stride
			}
			if up != i && (at < dims[k]-1 || periods[k]) {
				arcs[i], arcs[up] = append(arcs[i], Arc{up, 1}), append(arcs[up], Arc{i, 1})
			}
			stride *= dims[k]
		}
	}
	return arcs
}

// Blocks tries all ways to cut the grid into equal blocks, one for each host.
func (g Grid) Blocks() Candidates {
	dims := g.Dims
	return func(sizes []int, try func(Placement)) {
		for _, s := range sizes {
			if s != sizes[0] {
				return
			}
		}
		block := make([]int, len(dims))
		var choose func(k, left int)
		choose = func(k, left int) {
			if k == len(dims) {
				if left == 1 {
					try(inBlocks(dims, block))
				}
				return
			}
			for b := 1; b <= min(left, dims[k]); b++ {
				if left%b == 0 && dims[k]%b == 0 {
					block[k] = b
					choose(k+1, left/b)
				}
			}
		}
		choose(0, sizes[0])
	}
}

// inBlocks is a grid cut into blocks.
func inBlocks(dims, block []int) Placement {
	n := 1
	for _, d := range dims {
		n *= d
	}
	p := make(Placement, n)
	for i := range p {
		stride, hosts := 1, 1
		for k := len(dims) - 1; k >= 0; k-- {
			p[i] += i / stride % dims[k] / block[k] * hosts
			stride *= dims[k]
			hosts *= dims[k] / block[k]
		}
	}
	return p
}
