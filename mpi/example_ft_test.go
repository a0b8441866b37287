package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weftstack/weft/mpi"
)

// Four ranks add numbers up; one dies, and the others go on without it.
func ExampleComm_Shrink() {
	die := errors.New("rank 2 dies")
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		if c.Rank() == 2 {
			return die
		}
		sum := make([]int, 1)
		for {
			err := mpi.Allreduce(ctx, c, []int{1}, sum, mpi.Sum)
			// All must know that it did not work for some.
			ok := uint64(1)
			if err != nil {
				ok = 0
			}
			if ok, aerr := c.Agree(ctx, ok); aerr == nil && ok == 1 {
				break
			}
			if c, err = c.Shrink(ctx); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			fmt.Fprintf(os.Stdout, "%d ranks are left\n", sum[0])
		}
		return nil
	}, mpi.WithFaultTolerance())
	fmt.Println(errors.Is(err, die))
	// Output:
	// 3 ranks are left
	// true
}
