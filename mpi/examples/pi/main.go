// Pi computes π as the area under 4/(1+x²) between 0 and 1. Each rank adds up
// every nth strip, and Reduce adds up the ranks.
//
//	weft run -n 4 ./mpi/examples/pi
package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/examples/internal/job"
)

const strips = 1_000_000

func run(ctx context.Context, c *mpi.Comm, out io.Writer) error {
	width := 1.0 / strips
	area := 0.0
	for i := c.Rank(); i < strips; i += c.Size() {
		x := (float64(i) + 0.5) * width
		area += 4 / (1 + x*x) * width
	}
	pi := make([]float64, 1)
	if err := mpi.Reduce(ctx, c, []float64{area}, pi, mpi.Sum[float64], 0); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Fprintf(out, "pi is about %.10f, off by less than 1e-10: %v\n", pi[0], math.Abs(pi[0]-math.Pi) < 1e-10)
	}
	return nil
}

func main() { job.Main(run) }
