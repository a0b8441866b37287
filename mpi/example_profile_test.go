package mpi_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
)

// counter is a Profiler that counts calls.
type counter struct{ calls, bytes atomic.Int64 }

func (c *counter) Record(r mpi.CallRecord) {
	c.calls.Add(1)
	c.bytes.Add(int64(r.Bytes))
}

// A Profiler sees every call.
func ExampleWithProfiler() {
	var n counter
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		return mpi.Bcast(ctx, w.Comm(), make([]byte, 1000), 0)
	}, mpi.WithProfiler(&n))
	fmt.Println(n.calls.Load(), "calls,", n.bytes.Load(), "bytes,", err)
	// Output: 2 calls, 2000 bytes, <nil>
}

// A Profile sums up the calls of a rank by name.
func ExampleProfile() {
	var p mpi.Profile
	err := mpi.RunLocal(context.Background(), 1, func(ctx context.Context, w *mpi.World) error {
		for range 3 {
			if err := mpi.Barrier(ctx, w.Comm()); err != nil {
				return err
			}
		}
		return nil
	}, mpi.WithProfiler(&p))
	for _, c := range p.Calls() {
		fmt.Println(c.Name, c.Count)
	}
	fmt.Println(err)
	// Output:
	// Barrier 3
	// <nil>
}

// Stats tells what a rank has sent to each other.
func ExampleWorld_Stats() {
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Rank() == 1 {
			_, err := mpi.Recv(ctx, c, make([]float64, 10), 0, 0)
			return err
		}
		err := mpi.Send(ctx, c, make([]float64, 10), 1, 0)
		fmt.Println(w.Stats().Peers[1].Messages)
		return err
	})
	fmt.Println(err)
	// Output:
	// {1 80}
	// <nil>
}
