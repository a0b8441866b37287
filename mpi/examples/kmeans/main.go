// Kmeans finds the centres of clusters of points that are spread over the
// ranks. In each round every rank assigns its points to the nearest centre, and
// Allreduce adds up, for each centre, the points and their number; their means
// are the new centres, the same on all ranks.
//
//	weft run -n 4 ./mpi/examples/kmeans
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/examples/internal/job"
)

const (
	points   = 20_000 // in all
	clusters = 4
	rounds   = 20
)

type point struct{ X, Y float64 }

// mine returns the caller's share of the points, which lie around four corners.
func mine(c *mpi.Comm) []point {
	rng := rand.New(rand.NewPCG(3, 4))
	var own []point
	for i := range points {
		p := point{float64(i%2) + 0.1*rng.NormFloat64(), float64(i/2%2) + 0.1*rng.NormFloat64()}
		if i*c.Size()/points == c.Rank() {
			own = append(own, p)
		}
	}
	return own
}

// A tally is the sum of the points of a cluster.
type tally struct {
	X, Y float64
	N    int64
}

func add(a, b tally) tally { return tally{a.X + b.X, a.Y + b.Y, a.N + b.N} }

func nearest(p point, centres []point) (best int) {
	distance := math.Inf(1)
	for i, q := range centres {
		if d := (p.X-q.X)*(p.X-q.X) + (p.Y-q.Y)*(p.Y-q.Y); d < distance {
			best, distance = i, d
		}
	}
	return best
}

func run(ctx context.Context, c *mpi.Comm, out io.Writer) error {
	own := mine(c)
	centres := make([]point, clusters)
	if c.Rank() == 0 {
		copy(centres, own) // some points to begin with
	}
	if err := mpi.Bcast(ctx, c, centres, 0); err != nil {
		return err
	}
	sum := mpi.NewOp(add, true)
	for range rounds {
		tallies := make([]tally, clusters)
		for _, p := range own {
			i := nearest(p, centres)
			tallies[i] = add(tallies[i], tally{p.X, p.Y, 1})
		}
		if err := mpi.Allreduce(ctx, c, tallies, tallies, sum); err != nil {
			return err
		}
		for i, t := range tallies {
			if t.N > 0 {
				centres[i] = point{t.X / float64(t.N), t.Y / float64(t.N)}
			}
		}
	}
	if c.Rank() == 0 {
		for _, p := range centres {
			fmt.Fprintf(out, "centre at (%.2f, %.2f)\n", math.Abs(p.X), math.Abs(p.Y)) // there is no -0.00
		}
	}
	return nil
}

func main() { job.Main(run) }
