package mpi

import (
	"context"
	"fmt"
	"slices"
)

// Cart is a grid of ranks (MPI_Cart_create).
type Cart struct {
	c       *Comm
	dims    []int
	periods []bool
	coords  []int // of the caller
}

// NewCart arranges ranks of c in a grid with the given dimensions, the last
// varying fastest, and returns it on a new communicator. The dimension i is a
// ring if periods[i]. Ranks of c that are not needed get nil. The others keep their
// order, unless Reorder is given. All ranks must call it with the same arguments, else it
// gives ErrNotSame; it blocks until they do, and fails on all alike (MPI-4.1, Section
// 8.5.1).
func NewCart(ctx context.Context, c *Comm, dims []int, periods []bool, opts ...TopologyOption) (*Cart, error) {
	n, err := checkGrid(c, dims, periods)
	if err = c.consent(ctx, err, dims, periods, reorders(opts)); err != nil {
		return nil, err
	}
	var own *Comm
	if reorders(opts) {
		own, err = c.reordered(ctx, gridArcs(dims, periods), gridBlocks(dims))
	} else {
		own, err = c.first(n)
	}
	if err != nil || own == nil {
		return nil, err
	}
	t := &Cart{c: own, dims: slices.Clone(dims), periods: slices.Clone(periods)}
	t.coords = t.Coords(own.Rank())
	own.topology = t
	return t, nil
}

func (t *Cart) on(c *Comm) Topology {
	d := *t
	d.c = c
	return &d
}

// Dup returns the same grid on a duplicate of its communicator: see Comm.Dup
// (MPI_Comm_dup). It does not block.
func (t *Cart) Dup(ctx context.Context) (*Cart, error) {
	d, err := t.c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return d.topology.(*Cart), nil
}

// checkGrid returns how many ranks of c a grid needs.
func checkGrid(c *Comm, dims []int, periods []bool) (int, error) {
	if len(dims) != len(periods) {
		return 0, fmt.Errorf("%w: %d dimensions, %d periods", ErrTopology, len(dims), len(periods))
	}
	if err := checkOneGroup(c); err != nil {
		return 0, err
	}
	n := 1
	for _, d := range dims {
		if d < 1 || n > c.Size()/d {
			return 0, fmt.Errorf("%w: grid of %v on %d ranks", ErrTopology, dims, c.Size())
		}
		n *= d
	}
	return n, nil
}

// CartMap returns the rank that the caller should have in a grid (MPI_Cart_map),
// or Undefined if it is not needed: that of NewCart with Reorder, unless c has
// processes of several jobs, of which it is not known where they are. It is local.
func CartMap(c *Comm, dims []int, periods []bool) (int, error) {
	if _, err := checkGrid(c, dims, periods); err != nil {
		return Undefined, err
	}
	return c.mapRank(gridArcs(dims, periods), gridBlocks(dims)), nil
}

// Comm returns the communicator of the grid (MPI_Cart_create).
func (t *Cart) Comm() *Comm { return t.c }

// Dims returns the dimensions (MPI_Cart_get).
func (t *Cart) Dims() []int { return slices.Clone(t.dims) }

// Periods returns which dimensions are rings (MPI_Cart_get).
func (t *Cart) Periods() []bool { return slices.Clone(t.periods) }

// Coords returns the place of a rank in the grid, or nil if there is no such
// rank (MPI-4.1, Section 8.5.5).
func (t *Cart) Coords(rank int) []int {
	if rank < 0 || rank >= t.c.Size() {
		return nil
	}
	at := make([]int, len(t.dims))
	for i := len(t.dims) - 1; i >= 0; i-- {
		at[i] = rank % t.dims[i]
		rank /= t.dims[i]
	}
	return at
}

// Rank returns the rank at a place; in rings coordinates wrap (MPI_Cart_rank).
// Outside the grid it returns ErrRank.
func (t *Cart) Rank(coords ...int) (int, error) {
	if len(coords) != len(t.dims) {
		return 0, fmt.Errorf("%w: %d coordinates for %d dimensions", ErrTopology, len(coords), len(t.dims))
	}
	rank := 0
	for i, x := range coords {
		d := t.dims[i]
		if t.periods[i] {
			x = (x%d + d) % d
		}
		if x < 0 || x >= d {
			return 0, fmt.Errorf("%w: coordinates %v in %v", ErrRank, coords, t.dims)
		}
		rank = rank*d + x
	}
	return rank, nil
}

// Shift returns the ranks that are disp below and above the caller in one
// dimension, ProcNull beyond an edge: what the caller receives from and sends
// to when all shift data by disp (MPI-4.1, Section 8.5.6).
func (t *Cart) Shift(dim, disp int) (source, target int, err error) {
	if dim < 0 || dim >= len(t.dims) {
		return 0, 0, fmt.Errorf("%w: dimension %d of %d", ErrTopology, dim, len(t.dims))
	}
	at := func(d int) int {
		place := slices.Clone(t.coords)
		if place[dim] += d % max(t.dims[dim], 1); !t.periods[dim] {
			place[dim] = t.coords[dim] + d
		}
		rank, err := t.Rank(place...)
		if err != nil {
			return ProcNull
		}
		return rank
	}
	return at(-disp), at(disp), nil
}

// Sub divides the grid into those of the dimensions to keep, and returns the
// caller's. All ranks must call it with the same arguments (MPI-4.1, Section
// 8.5.7). It blocks until they do.
func (t *Cart) Sub(ctx context.Context, keep ...bool) (*Cart, error) {
	var bad error
	if len(keep) != len(t.dims) {
		bad = fmt.Errorf("%w: %d of %d dimensions named", ErrTopology, len(keep), len(t.dims))
	}
	if err := t.c.consent(ctx, bad, keep); err != nil {
		return nil, err
	}
	s := &Cart{}
	color, key := 0, 0
	for i, d := range t.dims {
		if keep[i] {
			s.dims, s.periods = append(s.dims, d), append(s.periods, t.periods[i])
			key = key*d + t.coords[i]
		} else {
			color = color*d + t.coords[i]
		}
	}
	var err error
	if s.c, err = t.c.Split(ctx, color, key); err != nil {
		return nil, err
	}
	s.coords = s.Coords(s.c.Rank())
	s.c.topology = s
	return s, nil
}

// Neighbors returns, for each dimension in turn, the rank below and the rank
// above, both as source and as target (MPI-4.1, Section 8.6).
func (t *Cart) Neighbors() (sources, targets []int) {
	for i := range t.dims {
		below, above, _ := t.Shift(i, 1) // the dimension exists
		sources = append(sources, below, above)
	}
	return sources, slices.Clone(sources)
}

// flows tells directions apart: what goes down to a rank comes there from
// above, which matters in rings of two ranks and of one.
func (t *Cart) flows() (sources, targets []int) {
	for range t.dims {
		sources, targets = append(sources, 0, 1), append(targets, 1, 0)
	}
	return sources, targets
}
