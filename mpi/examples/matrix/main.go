// Matrix multiplies two matrices that are cut into blocks, one per rank of a
// grid (SUMMA). For each k the ranks that have a part of column k of A send it
// along their row of the grid, those that have a part of row k of B along
// their column; then all ranks add the product of the two parts to their block.
//
//	weft run -n 4 ./mpi/examples/matrix
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/examples/internal/job"
)

const size = 60 // rows and columns

// part returns where part i of n begins, and how long it is.
func part(i, n int) (from, count int) {
	from = i * size / n
	return from, (i+1)*size/n - from
}

// owner returns which of n parts has index k.
func owner(k, n int) int {
	i := k * n / size
	for from, count := part(i, n); k >= from+count; from, count = part(i, n) {
		i++
	}
	return i
}

// The elements of the factors.
func a(i, k int) float64 { return float64((i*7+k*3)%11 - 5) }
func b(k, j int) float64 { return float64((k*5+j*2)%13 - 6) }

func run(ctx context.Context, c *mpi.Comm, out io.Writer) error {
	dims, err := mpi.Dims(c.Size(), 0, 0)
	if err != nil {
		return err
	}
	grid, err := mpi.NewCart(ctx, c, dims, []bool{false, false})
	if err != nil {
		return err
	}
	inRow, err := grid.Sub(ctx, false, true) // the ranks of my row of the grid
	if err != nil {
		return err
	}
	inColumn, err := grid.Sub(ctx, true, false)
	if err != nil {
		return err
	}
	at := grid.Coords(c.Rank())
	top, rows := part(at[0], dims[0])
	left, cols := part(at[1], dims[1])
	product := make([]float64, rows*cols)
	column, row := make([]float64, rows), make([]float64, cols)
	for k := range size {
		if has := owner(k, dims[1]); has == at[1] {
			for i := range column {
				column[i] = a(top+i, k)
			}
		}
		if err := mpi.Bcast(ctx, inRow.Comm(), column, owner(k, dims[1])); err != nil {
			return err
		}
		if has := owner(k, dims[0]); has == at[0] {
			for j := range row {
				row[j] = b(k, left+j)
			}
		}
		if err := mpi.Bcast(ctx, inColumn.Comm(), row, owner(k, dims[0])); err != nil {
			return err
		}
		for i, x := range column {
			for j, y := range row {
				product[i*cols+j] += x * y
			}
		}
	}
	// The elements are whole numbers, so the sums are exact.
	sums := make([]float64, 2)
	for i := range rows {
		for j := range cols {
			sums[0] += product[i*cols+j] * float64(1+(top+i)*size+left+j)
		}
		if d := top + i - left; d >= 0 && d < cols {
			sums[1] += product[i*cols+d]
		}
	}
	if err := mpi.Allreduce(ctx, c, sums, sums, mpi.Sum[float64]); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Fprintf(out, "checksum %.0f, trace %.0f\n", sums[0], sums[1])
	}
	return nil
}

func main() { job.Main(run) }
