package mpi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weftstack/weft/mpi"
)

// Each rank adds to a counter of 32 bits in the window of rank 0, whose displacements are bytes, and stores its number
// behind it.
func ExampleWindow() {
	i32 := mpi.MustType(mpi.TypeOf[int32]())
	err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
		win, err := mpi.WindowAllocate(ctx, w.Comm(), 16, 1)
		if err != nil {
			return err
		}
		me := int32(w.Comm().Rank())
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if err := win.Accumulate(ctx, mpi.Elements([]int32{1}), 0, 0, 1, i32, mpi.OpSum); err != nil {
			return err
		}
		if err := win.Put(ctx, mpi.Elements([]int32{me}), 0, 4+4*int(me), 1, i32); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if me == 0 {
			fmt.Println(win.Base()[0], win.Base()[4], win.Base()[8], win.Base()[12])
		}
		return win.Free(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 3 0 1 2
}
