package mpi_test

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// One rank spawns three workers, gives each a number, and gathers the squares.
// In a job of `weft run` the command is an executable, which gets the
// intercommunicator from World.Parent in the same way.
func ExampleComm_Spawn() {
	worker := func(ctx context.Context, w *mpi.World, args []string) error {
		x := make([]int, 1)
		if err := mpi.Scatter(ctx, w.Parent(), nil, x, 0); err != nil {
			return err
		}
		x[0] *= x[0]
		if err := mpi.Gather(ctx, w.Parent(), x, nil, 0); err != nil {
			return err
		}
		return w.Parent().Disconnect(ctx)
	}
	err := mpi.RunLocal(context.Background(), 1, func(ctx context.Context, w *mpi.World) error {
		workers, err := w.Comm().Spawn(ctx, mpi.Command{Path: "worker", N: 3}, 0)
		if err != nil {
			return err
		}
		if err := mpi.Scatter(ctx, workers, []int{2, 3, 4}, nil, mpi.Root); err != nil {
			return err
		}
		squares := make([]int, 3)
		if err := mpi.Gather(ctx, workers, nil, squares, mpi.Root); err != nil {
			return err
		}
		fmt.Println(squares)
		return workers.Disconnect(ctx)
	}, mpi.WithProgram("worker", worker))
	if err != nil {
		fmt.Println(err)
	}
	// Output: [4 9 16]
}
