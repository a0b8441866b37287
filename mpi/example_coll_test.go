package mpi_test

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// Two matrices are multiplied by four ranks: each gets some rows of the first
// and all of the second, and the rows of the product come together on rank 0.
func ExampleGather() {
	const n = 8
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		rows := n / c.Size()
		var a, product []float64
		b := make([]float64, n*n)
		if c.Rank() == 0 {
			a, product = make([]float64, n*n), make([]float64, n*n)
			for i := range n {
				for j := range n {
					a[i*n+j] = float64(i + j)
					if i == j {
						b[i*n+j] = 2
					}
				}
			}
		}
		mine, result := make([]float64, rows*n), make([]float64, rows*n)
		if err := mpi.Scatter(ctx, c, a, mine, 0); err != nil {
			return err
		}
		if err := mpi.Bcast(ctx, c, b, 0); err != nil {
			return err
		}
		for i := range rows {
			for j := range n {
				for k := range n {
					result[i*n+j] += mine[i*n+k] * b[k*n+j]
				}
			}
		}
		if err := mpi.Gather(ctx, c, result, product, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(product[:4], product[n*n-4:])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [0 2 4 6] [22 24 26 28]
}

// Every rank learns the sum over all ranks, and where the greatest value is.
func ExampleAllreduce() {
	err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		v := []float64{1, float64(c.Rank())}
		if err := mpi.Allreduce(ctx, c, v, v, mpi.Sum); err != nil { // in place
			return err
		}
		where := []mpi.ValLoc[int]{{Val: 10 - (c.Rank()-1)*(c.Rank()-1), Loc: c.Rank()}}
		if err := mpi.Allreduce(ctx, c, where, where, mpi.MaxLoc); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(v, where)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [3 3] [{10 1}]
}

// An operator of the program's own: the composition of affine maps, which is
// associative and not commutative.
func ExampleNewOp() {
	type affine struct{ a, b int } // x → a·x + b
	then := mpi.NewOp(func(f, g affine) affine { return affine{g.a * f.a, g.a*f.b + g.b} }, false)
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		f := []affine{{a: 2, b: c.Rank()}}
		if err := mpi.Scan(ctx, c, f, f, then); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(f[0])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: {16 11}
}

// A communication that overlaps with computation.
func ExampleIallreduce() {
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		send, recv := []int{c.Rank()}, make([]int, 1)
		r, err := mpi.Iallreduce(c, send, recv, mpi.Max)
		if err != nil {
			return err
		}
		work := 0
		for i := range 1000 {
			work += i
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(recv[0], work)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 3 499500
}

// A program prints the choice of algorithms and overrides it.
func ExampleParseTuning() {
	t, err := mpi.ParseTuning("allreduce ring 4 65536; deterministic")
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := t.Rules()
	last := rules[len(rules)-1]
	fmt.Println(last.Coll, last.Algorithm, last.MinRanks, last.MinBytes, t.Deterministic)
	fmt.Println(mpi.Algorithms(mpi.CollBcast))
	// Output:
	// allreduce ring 4 65536 true
	// [binomial scatter-ring scatter-doubling chain linear sites sites-split]
}

// The columns of a matrix that is stored by rows are sent as they lie.
func ExampleTypeVector() {
	const rows, cols = 3, 4
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Rank() == 1 {
			column := make([]int32, rows)
			_, err := mpi.Recv(ctx, c, column, 0, 0)
			fmt.Println(column)
			return err
		}
		m := make([]int32, rows*cols)
		for i := range m {
			m[i] = int32(i)
		}
		element, err := mpi.TypeOf[int32]()
		if err != nil {
			return err
		}
		column, err := mpi.TypeVector(rows, 1, cols, element)
		if err != nil {
			return err
		}
		return mpi.SendType(ctx, c, m[2:], 1, column, 1, 0)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [2 6 10]
}
