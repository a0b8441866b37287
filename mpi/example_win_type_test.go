package mpi_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// Every rank adds its column of a matrix to that of rank 0, under a lock that
// nobody else asks for in the wrong mode, so that it needs no message.
func ExampleWin_AccumulateType() {
	const rows, cols = 3, 4
	err := mpi.RunLocal(context.Background(), cols, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		item, err := mpi.TypeOf[int]()
		if err != nil {
			return err
		}
		column, err := mpi.TypeVector(rows, 1, cols, item)
		if err != nil {
			return err
		}
		win, err := mpi.WinAllocate[int](ctx, c, rows*cols, mpi.WithInfo(mpi.Info{mpi.InfoSameSize: "true"}))
		if err != nil {
			return err
		}
		mine := []int{1, 10, 100}
		if err := errors.Join(
			win.LockAll(ctx, mpi.AssertNoCheck),
			win.AccumulateType(ctx, mine, rows, item, 0, c.Rank(), 1, column, mpi.Sum),
			win.AccumulateType(ctx, mine, rows, item, 0, 0, 1, column, mpi.Sum),
			win.UnlockAll(ctx),
			mpi.Barrier(ctx, c),
		); err != nil {
			return err
		}
		if c.Rank() == 0 {
			win.Sync()
			for r := range rows {
				fmt.Println(win.Buf()[r*cols : (r+1)*cols])
			}
		}
		return win.Free(ctx)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [5 1 1 1]
	// [50 10 10 10]
	// [500 100 100 100]
}
