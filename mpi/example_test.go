package mpi_test

import (
	"context"
	"fmt"
	"math"

	"github.com/weftstack/weft/mpi"
)

// A token goes once around a ring of four ranks, each adding its number.
func Example_ring() {
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		next, prev := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		token := []int{0}
		if c.Rank() == 0 {
			if err := mpi.Send(ctx, c, token, next, 0); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(ctx, c, token, prev, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("sum", token[0])
			return nil
		}
		token[0] += c.Rank()
		return mpi.Send(ctx, c, token, next, 0)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: sum 6
}

// Two ranks bounce a message of a struct type.
func Example_pingPong() {
	type ball struct {
		Bounces int32
		Speed   float64
	}
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		b := []ball{{Speed: 1}}
		for range 5 {
			if c.Rank() == 0 {
				if err := mpi.Send(ctx, c, b, 1, 7); err != nil {
					return err
				}
				if _, err := mpi.Recv(ctx, c, b, 1, 7); err != nil {
					return err
				}
				continue
			}
			if _, err := mpi.Recv(ctx, c, b, 0, 7); err != nil {
				return err
			}
			b[0].Bounces++
			b[0].Speed /= 2
			if err := mpi.Send(ctx, c, b, 0, 7); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			fmt.Printf("%+v\n", b[0])
		}
		return nil
	}, mpi.WithTransport(mpi.TransportSCTP))
	if err != nil {
		fmt.Println(err)
	}
	// Output: {Bounces:5 Speed:0.03125}
}

// All ranks integrate 4/(1+x²), each a part, and rank 0 adds up.
func Example_pi() {
	const steps = 100_000
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		part := []float64{0}
		for i := c.Rank(); i < steps; i += c.Size() {
			x := (float64(i) + 0.5) / steps
			part[0] += 4 / (1 + x*x) / steps
		}
		pi := []float64{0}
		if err := mpi.Reduce(ctx, c, part, pi, mpi.Sum, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("%.6f, error below 1e-9: %v\n", pi[0], math.Abs(pi[0]-math.Pi) < 1e-9)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 3.141593, error below 1e-9: true
}

// A manager hands tasks to whoever asks, with nonblocking sends and a wildcard
// receive.
func Example_workers() {
	const tasks, tagAsk, tagTask = 10, 1, 2
	err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Rank() != 0 {
			sum := []int{0}
			for task := []int{0}; task[0] >= 0; sum[0] += max(task[0], 0) {
				if err := mpi.Send(ctx, c, sum, 0, tagAsk); err != nil {
					return err
				}
				if _, err := mpi.Recv(ctx, c, task, 0, tagTask); err != nil {
					return err
				}
			}
			return nil
		}
		results := make([]int, c.Size())
		ask := make([]int, 1)
		var sends []*mpi.Request
		for i := range tasks + c.Size() - 1 {
			st, err := mpi.Recv(ctx, c, ask, mpi.AnySource, tagAsk)
			if err != nil {
				return err
			}
			results[st.Source] = ask[0]
			task := []int{i}
			if i >= tasks {
				task[0] = -1
			}
			r, err := mpi.Isend(c, task, st.Source, tagTask)
			if err != nil {
				return err
			}
			sends = append(sends, r)
		}
		total := 0
		for _, r := range results {
			total += r
		}
		fmt.Println("total", total)
		_, err := mpi.Waitall(ctx, sends...)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: total 45
}

// Results are handled in the order in which they come.
func ExampleCompletions() {
	err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Rank() > 0 {
			return mpi.Send(ctx, c, []int{10 * c.Rank()}, 0, 0)
		}
		results := make([]int, 2)
		var reqs []*mpi.Request
		for i := range results {
			r, err := mpi.Irecv(c, results[i:i+1], i+1, 0)
			if err != nil {
				return err
			}
			reqs = append(reqs, r)
		}
		sum := 0
		for done, err := range mpi.Completions(ctx, reqs...) {
			if err != nil {
				return err
			}
			sum += results[done.Index]
		}
		fmt.Println("sum", sum)
		return nil
	})
	fmt.Println(err)
	// Output:
	// sum 30
	// <nil>
}

// A column of a matrix is sent, and received as a row, with the methods that take items of a
// datatype.
func ExampleItems() {
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Rank() == 0 {
			m := []float64{
				1, 2, 3,
				4, 5, 6,
			}
			column := mpi.MustType(mpi.TypeVector(2, 1, 3, mpi.MustType(mpi.TypeOf[float64]())))
			return c.Send(ctx, mpi.Items(m[2:], 1, column), 1, 0)
		}
		row := make([]float64, 2)
		_, err := c.Recv(ctx, mpi.Elements(row), 0, 0)
		fmt.Println(row)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [3 6]
}
