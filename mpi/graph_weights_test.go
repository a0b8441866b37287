package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Weights come back as they were given, by whoever gave the edge.
func TestGraphWeights(t *testing.T) {
	const p = 4
	local(t, p, func(ctx context.Context, c *Comm) error {
		me := c.Rank()
		next, before := (me+1)%p, (me+p-1)%p
		g, err := NewWeightedGraph(ctx, c, []int{before, me}, []int{before, 50}, []int{next, me}, []int{me, 60})
		if err != nil {
			return err
		}
		in, out := g.Weights()
		if err := errors.Join(diff("in", in, []int{before, 50}), diff("out", out, []int{me, 60})); err != nil {
			return err
		}
		// Everybody gives the edges of the next one: to all, with products as weights.
		targets, weights := []int{0, 1, 2, 3}, []int{0, next, 2 * next, 3 * next}
		if g, err = NewWeightedDistGraph(ctx, c, []int{next}, [][]int{targets}, [][]int{weights}); err != nil {
			return err
		}
		sources, targets := g.Neighbors()
		in, out = g.Weights()
		if len(in) != p || len(out) != p {
			return fmt.Errorf("weights %v, %v", in, out)
		}
		for i := range in {
			if in[i] != sources[i]*me || out[i] != targets[i]*me {
				return fmt.Errorf("rank %d: sources %v with weights %v, targets %v with %v", me, sources, in, targets, out)
			}
		}
		sum := make([]int, p)
		if err := NeighborAllgather(ctx, g, []int{me}, sum); err != nil || diff("gathered", sum, sources) != nil {
			return fmt.Errorf("gathered %v from %v, %w", sum, sources, err)
		}
		// A node without edges has weights, of which there are none.
		if g, err = NewWeightedDistGraph(ctx, c, nil, nil, nil); err != nil {
			return err
		}
		if in, out = g.Weights(); in == nil || out == nil || len(in)+len(out) > 0 {
			return fmt.Errorf("weights %v, %v of no edges", in, out)
		}
		if g, err = NewDistGraph(ctx, c, []int{me}, [][]int{{next}}); err != nil {
			return err
		}
		if in, out = g.Weights(); in != nil || out != nil {
			return fmt.Errorf("weights %v, %v of a graph without", in, out)
		}
		// Edges of both kinds are an error on all, whose edges they are or not.
		for _, targets := range [][]int{{0, 1, 2, 3}, {me}, nil} {
			if me == 0 {
				_, err = NewWeightedDistGraph(ctx, c, []int{0}, [][]int{targets}, [][]int{make([]int, len(targets))})
			} else {
				_, err = NewDistGraph(ctx, c, []int{me}, [][]int{targets})
			}
			if !errors.Is(err, ErrTopology) {
				return fmt.Errorf("some with weights, to %v: %w", targets, err)
			}
			d, err := c.Dup(ctx)
			if err == nil {
				err = Barrier(ctx, d) // they still agree on which communicator this is
			}
			if err != nil {
				return err
			}
		}
		// What is wrong on one rank is told to the others.
		if me == 2 {
			_, err = NewDistGraph(ctx, c, []int{0}, [][]int{{p}})
		} else {
			_, err = NewDistGraph(ctx, c, []int{0}, [][]int{{1}})
		}
		if !errors.Is(err, ErrRank) {
			return fmt.Errorf("an edge to nobody, on rank %d: %w", me, err)
		}
		for i, err := range []error{
			func() error { _, err := NewWeightedGraph(ctx, c, []int{0}, []int{1, 2}, nil, nil); return err }(),
			func() error { _, err := NewWeightedGraph(ctx, c, nil, nil, []int{0}, []int{-1}); return err }(),
			func() error { _, err := NewWeightedDistGraph(ctx, c, []int{0}, [][]int{{0}}, nil); return err }(),
			func() error { _, err := NewWeightedDistGraph(ctx, c, []int{0}, [][]int{{0}}, [][]int{{}}); return err }(),
		} {
			if !errors.Is(err, ErrTopology) {
				return fmt.Errorf("wrong weights %d: %w", i, err)
			}
		}
		return nil
	})
}
