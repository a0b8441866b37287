package mpi_test

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// Ranks that share a bar of metal put the temperatures at their borders into
// each other's halo cells: the target of a Put calls nothing but the fences.
func ExampleWin_Put() {
	const cells, steps = 4, 200
	err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		win, err := mpi.WinAllocate[float64](ctx, c, cells+2)
		if err != nil {
			return err
		}
		t, next := win.Buf(), make([]float64, cells+2)
		left, right := c.Rank()-1, c.Rank()+1
		if c.Rank() == 0 {
			left, t[0] = mpi.ProcNull, 100 // the hot end
		}
		if right == c.Size() {
			right = mpi.ProcNull // the cold end stays at 0
		}
		for range steps {
			if err := win.Fence(ctx); err != nil { // all are done with the last step
				return err
			}
			if err := win.Put(ctx, t[1:2], left, cells+1); err != nil {
				return err
			}
			if err := win.Put(ctx, t[cells:cells+1], right, 0); err != nil {
				return err
			}
			if err := win.Fence(ctx); err != nil { // the halo cells are there
				return err
			}
			for i := 1; i <= cells; i++ {
				next[i] = (t[i-1] + t[i+1]) / 2
			}
			copy(t[1:cells+1], next[1:cells+1])
		}
		if c.Rank() == 1 {
			fmt.Printf("%.0f\n", t[1:cells+1])
		}
		return win.Free(ctx)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [61 54 46 38]
}

// A counter that all ranks draw numbers from.
func ExampleWin_FetchAndOp() {
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		counter, err := mpi.WinAllocate[int64](ctx, c, 1)
		if err != nil {
			return err
		}
		mine := make([]int64, 1)
		if mine[0], err = counter.FetchAndOp(ctx, 1, 0, 0, mpi.Sum); err != nil {
			return err
		}
		all := make([]int64, 4)
		if err := mpi.Gather(ctx, c, mine, all, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("sum of the numbers drawn:", all[0]+all[1]+all[2]+all[3])
		}
		return counter.Free(ctx)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: sum of the numbers drawn: 6
}

// One rank reads the memory of another over RDMA, on loopback.
func ExampleWin_Get() {
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		data := make([]byte, 11)
		if c.Rank() == 1 {
			copy(data, "hello there")
		}
		win, err := mpi.WinCreate(ctx, c, data, mpi.WithAccess(mpi.AccessRead))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			got := make([]byte, 5)
			if err := win.Get(ctx, got, 1, 6); err != nil {
				return err
			}
			if err := win.Flush(ctx, 1); err != nil {
				return err
			}
			fmt.Println(string(got), win.RDMA())
			fmt.Println(win.Put(ctx, got, 1, 0))
		}
		return win.Free(ctx)
	}, mpi.WithTransport(mpi.TransportHybrid))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// there true
	// mpi: access right missing: rank 1
}
