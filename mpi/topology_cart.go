package mpi

import (
	"context"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/topology"
)

// Cart is a grid of ranks (MPI_Cart_create).
type Cart struct {
	c      *Comm
	grid   topology.Grid
	coords []int // of the caller
}

// NewCart arranges ranks of c in a grid with the given dimensions, the last
// varying fastest, and returns it on a new communicator. The dimension i is a
// ring if periods[i]. Ranks of c that are not needed get nil. The others keep their
// order, unless Reorder is given. All ranks must call it with the same arguments, else it
// gives ErrNotSame; it blocks until they do, and fails on all alike (MPI-4.1, Section
// 8.5.1).
func NewCart(ctx context.Context, c *Comm, dims []int, periods []bool, opts ...TopologyOption) (*Cart, error) {
	grid := topology.Grid{Dims: slices.Clone(dims), Periods: slices.Clone(periods)}
	n, err := checkGrid(c, grid)
	if err = c.consent(ctx, err, dims, periods, reorders(opts)); err != nil {
		return nil, err
	}
	var own *Comm
	if reorders(opts) {
		own, err = c.reordered(ctx, grid.Arcs(), grid.Blocks())
	} else {
		own, err = c.first(n)
	}
	if err != nil || own == nil {
		return nil, err
	}
	t := &Cart{c: own, grid: grid, coords: grid.Coords(own.Rank())}
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
func checkGrid(c *Comm, g topology.Grid) (int, error) {
	if err := checkOneGroup(c); err != nil {
		return 0, err
	}
	return g.Check(c.Size())
}

// CartMap returns the rank that the caller should have in a grid (MPI_Cart_map),
// or Undefined if it is not needed: that of NewCart with Reorder, unless c has
// processes of several jobs, of which it is not known where they are. It is local.
func CartMap(c *Comm, dims []int, periods []bool) (int, error) {
	grid := topology.Grid{Dims: dims, Periods: periods}
	if _, err := checkGrid(c, grid); err != nil {
		return Undefined, err
	}
	return c.mapRank(grid.Arcs(), grid.Blocks()), nil
}

// Comm returns the communicator of the grid (MPI_Cart_create).
func (t *Cart) Comm() *Comm { return t.c }

// Dims returns the dimensions (MPI_Cart_get).
func (t *Cart) Dims() []int { return slices.Clone(t.grid.Dims) }

// Periods returns which dimensions are rings (MPI_Cart_get).
func (t *Cart) Periods() []bool { return slices.Clone(t.grid.Periods) }

// Coords returns the place of a rank in the grid, or nil if there is no such
// rank (MPI-4.1, Section 8.5.5).
func (t *Cart) Coords(rank int) []int {
	if rank < 0 || rank >= t.c.Size() {
		return nil
	}
	return t.grid.Coords(rank)
}

// Rank returns the rank at a place; in rings coordinates wrap (MPI_Cart_rank).
// Outside the grid it returns ErrRank.
func (t *Cart) Rank(coords ...int) (int, error) { return t.grid.Rank(coords) }

// Shift returns the ranks that are disp below and above the caller in one
// dimension, ProcNull beyond an edge: what the caller receives from and sends
// to when all shift data by disp (MPI-4.1, Section 8.5.6).
func (t *Cart) Shift(dim, disp int) (source, target int, err error) {
	if dim < 0 || dim >= len(t.grid.Dims) {
		return 0, 0, fmt.Errorf("%w: dimension %d of %d", ErrTopology, dim, len(t.grid.Dims))
	}
	return t.grid.Shift(t.coords, dim, -disp, ProcNull), t.grid.Shift(t.coords, dim, disp, ProcNull), nil
}

// Sub divides the grid into those of the dimensions to keep, and returns the
// caller's. All ranks must call it with the same arguments (MPI-4.1, Section
// 8.5.7). It blocks until they do.
func (t *Cart) Sub(ctx context.Context, keep ...bool) (*Cart, error) {
	var bad error
	if n := len(t.grid.Dims); len(keep) != n {
		bad = fmt.Errorf("%w: %d of %d dimensions named", ErrTopology, len(keep), n)
	}
	if err := t.c.consent(ctx, bad, keep); err != nil {
		return nil, err
	}
	grid, color, key := t.grid.Sub(t.coords, keep)
	own, err := t.c.Split(ctx, color, key)
	if err != nil {
		return nil, err
	}
	s := &Cart{c: own, grid: grid, coords: grid.Coords(own.Rank())}
	own.topology = s
	return s, nil
}

// Neighbors returns, for each dimension in turn, the rank below and the rank
// above, both as source and as target (MPI-4.1, Section 8.6).
func (t *Cart) Neighbors() (sources, targets []int) {
	for i := range t.grid.Dims {
		below, above, _ := t.Shift(i, 1) // the dimension exists
		sources = append(sources, below, above)
	}
	return sources, slices.Clone(sources)
}

// flows tells directions apart: what goes down to a rank comes there from
// above, which matters in rings of two ranks and of one.
func (t *Cart) flows() (sources, targets []int) {
	for range t.grid.Dims {
		sources, targets = append(sources, 0, 1), append(targets, 1, 0)
	}
	return sources, targets
}

// Dims divides n ranks over the dimensions that are 0 in dims, as evenly as
// possible and the larger first; others are kept (MPI-4.1, Section 8.5.2). It
// returns ErrTopology if n is no multiple of those kept, or above 2³¹-1, the
// largest size of a communicator.
func Dims(n int, dims ...int) ([]int, error) { return topology.Dims(n, dims) }
