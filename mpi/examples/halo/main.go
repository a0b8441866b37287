// Halo solves the heat equation on a square plate whose left edge is hot. The
// plate is cut into blocks, one per rank of a grid. Before each step every block
// gets the cells along its edges, the halo, from its neighbours: rows as they
// lie in memory, columns with a strided datatype.
//
//	weft run -n 4 ./mpi/examples/halo
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/examples/internal/job"
)

const (
	cells = 48  // along each side of the plate
	steps = 200 // of time
)

// block is a rank's part of the plate, with a halo one cell wide.
type block struct {
	rows, cols int // without the halo
	top, left  int // place on the plate
	t          []float64
}

func (b *block) at(i, j int) *float64 { return &b.t[(i+1)*(b.cols+2)+j+1] }

// share returns where part i of n begins, and how long it is.
func share(i, n int) (from, count int) {
	from = i * cells / n
	return from, (i+1)*cells/n - from
}

func newBlock(grid *mpi.Cart) *block {
	at, dims := grid.Coords(grid.Comm().Rank()), grid.Dims()
	b := new(block)
	b.top, b.rows = share(at[0], dims[0])
	b.left, b.cols = share(at[1], dims[1])
	b.t = make([]float64, (b.rows+2)*(b.cols+2))
	if b.left == 0 {
		for i := -1; i <= b.rows; i++ {
			*b.at(i, -1) = 100
		}
	}
	return b
}

// halo prepares the exchange of the edges with the neighbours: above, below, to
// the left and to the right.
func (b *block) halo(grid *mpi.Cart) (*mpi.Persistent, error) {
	cell, err := mpi.TypeOf[float64]()
	if err != nil {
		return nil, err
	}
	row, err := mpi.TypeContiguous(b.cols, cell)
	if err != nil {
		return nil, err
	}
	column, err := mpi.TypeVector(b.rows, 1, b.cols+2, cell)
	if err != nil {
		return nil, err
	}
	at := func(i, j int) int { return ((i+1)*(b.cols+2) + j + 1) * cell.Size() }
	inner := []int{at(0, 0), at(b.rows-1, 0), at(0, 0), at(0, b.cols-1)}
	outer := []int{at(-1, 0), at(b.rows, 0), at(0, -1), at(0, b.cols)}
	types := []*mpi.Datatype{row, row, column, column}
	one := []int{1, 1, 1, 1}
	return mpi.NeighborAlltoallwInit(grid, b.t, one, inner, types, b.t, one, outer, types)
}

// step lets every cell become the mean of its neighbours.
func (b *block) step(next *block) {
	for i := range b.rows {
		for j := range b.cols {
			*next.at(i, j) = (*b.at(i-1, j) + *b.at(i+1, j) + *b.at(i, j-1) + *b.at(i, j+1)) / 4
		}
	}
}

func run(ctx context.Context, c *mpi.Comm, out io.Writer) error {
	dims, err := mpi.Dims(c.Size(), 0, 0)
	if err != nil {
		return err
	}
	grid, err := mpi.NewCart(ctx, c, dims, []bool{false, false})
	if err != nil {
		return err
	}
	now, next := newBlock(grid), newBlock(grid)
	nowHalo, err := now.halo(grid)
	if err != nil {
		return err
	}
	nextHalo, err := next.halo(grid)
	if err != nil {
		return err
	}
	for range steps {
		r, err := nowHalo.Start()
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		now.step(next)
		now, next, nowHalo, nextHalo = next, now, nextHalo, nowHalo
	}
	heat := 0.0
	for i := range now.rows {
		for j := range now.cols {
			heat += *now.at(i, j)
		}
	}
	total := make([]float64, 1)
	if err := mpi.Reduce(ctx, grid.Comm(), []float64{heat}, total, mpi.Sum[float64], 0); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Fprintf(out, "after %d steps the mean temperature is %.6f\n", steps, total[0]/(cells*cells))
	}
	return nil
}

func main() { job.Main(run) }
