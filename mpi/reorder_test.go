package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// withHosts makes ranks believe that they are on these hosts.
func withHosts(hosts []int) Option {
	return func(o *options) error {
		o.HostOf = func(rank int) string { return fmt.Sprint("host", hosts[rank]) }
		return nil
	}
}

// TestReorderedTopologies makes topologies on emulated hosts and lets neighbours
// talk.
func TestReorderedTopologies(t *testing.T) {
	hosts := []int{0, 1, 0, 1, 0, 1, 0, 1, 0} // the last one is not in the topologies
	ring := make([][]int, 8)
	for i := range ring {
		ring[i] = []int{(i + 1) % 8, (i + 7) % 8}
	}
	ctx := t.Context()
	err := RunLocal(ctx, len(hosts), func(ctx context.Context, w *World) error {
		c := w.Comm()
		eight, err := c.first(8)
		if err != nil {
			return err
		}
		grid, err := NewCart(ctx, c, []int{4, 2}, []bool{false, false}, Reorder())
		if err != nil {
			return err
		}
		full, err := NewFullGraph(ctx, c, ring, Reorder())
		if err != nil {
			return err
		}
		place, err := CartMap(c, []int{4, 2}, []bool{false, false})
		if err != nil {
			return err
		}
		node, err := GraphMap(c, ring)
		if err != nil {
			return err
		}
		if eight == nil {
			if grid != nil || full != nil || place != Undefined || node != Undefined {
				return fmt.Errorf("rank %d has a place: %v, %v, %d, %d", w.Rank(), grid, full, place, node)
			}
			return nil
		}
		if place != grid.Comm().Rank() || node != full.Comm().Rank() {
			return fmt.Errorf("mapped to %d and %d, is %d and %d", place, node, grid.Comm().Rank(), full.Comm().Rank())
		}
		if err := crossing(ctx, grid, hosts, 2*2); err != nil {
			return fmt.Errorf("grid: %w", err)
		}
		if err := crossing(ctx, full, hosts, 2*2); err != nil {
			return fmt.Errorf("graph: %w", err)
		}
		if want := ring[full.Comm().Rank()]; !slices.Equal(full.NeighborsOf(full.Comm().Rank()), want) {
			return fmt.Errorf("neighbours of node %d: %v", full.Comm().Rank(), full.NeighborsOf(full.Comm().Rank()))
		}
		me := eight.Rank()
		weight := func(a, b int) int { return 10*min(a, b) + max(a, b) + 1 }
		weights := func(node int) []int { return []int{weight(node, ring[node][0]), weight(node, ring[node][1])} }
		adjacent, err := NewWeightedGraph(ctx, eight, ring[me], weights(me), ring[me], weights(me), Reorder())
		if err != nil {
			return err
		}
		// Each rank gives the edges that leave another node.
		other := (me + 3) % 8
		dist, err := NewWeightedDistGraph(ctx, eight, []int{other}, [][]int{ring[other]}, [][]int{weights(other)}, Reorder())
		if err != nil {
			return err
		}
		plain, err := NewGraph(ctx, eight, ring[me], ring[me], Reorder())
		if err != nil {
			return err
		}
		for i, g := range []*Graph{adjacent, dist, plain} {
			node := g.Comm().Rank()
			sources, targets := g.Neighbors()
			if i == 1 {
				slices.Sort(sources)
			}
			want := slices.Clone(ring[node])
			if !slices.Equal(targets, want) {
				return fmt.Errorf("graph %d: targets of node %d: %v", i, node, targets)
			}
			if i == 1 {
				slices.Sort(want)
			}
			if !slices.Equal(sources, want) {
				return fmt.Errorf("graph %d: sources of node %d: %v", i, node, sources)
			}
			if _, tw := g.Weights(); i < 2 && !slices.Equal(tw, weights(node)) || i == 2 && tw != nil {
				return fmt.Errorf("graph %d: weights of node %d: %v", i, node, tw)
			}
			if err := crossing(ctx, g, hosts, 2*2); err != nil {
				return fmt.Errorf("graph %d: %w", i, err)
			}
		}
		// Without the option all keep their ranks.
		still, err := NewGraph(ctx, eight, ring[me], ring[me])
		if err != nil || still.Comm().Rank() != me {
			return fmt.Errorf("rank %d became %d: %w", me, still.Comm().Rank(), err)
		}
		// Edges that cannot be, of one rank, are an error on all.
		bad := slices.Clone(ring[me])
		if me == 3 {
			bad[0] = 77
		}
		if _, err := NewGraph(ctx, eight, bad, ring[me], Reorder()); err == nil || me == 3 && !errors.Is(err, ErrRank) {
			return fmt.Errorf("bad edges: %w", err)
		}
		return nil
	}, withHosts(hosts))
	if err != nil {
		t.Error(err)
	}
}

// crossing lets neighbours tell each other their rank in the world, and checks how
// many edges connect different hosts.
func crossing(ctx context.Context, top Topology, hosts []int, most int) error {
	c := top.Comm()
	sources, _ := top.Neighbors()
	got := make([]int, len(sources))
	if err := NeighborAllgather(ctx, top, []int{c.World().Rank()}, got); err != nil {
		return err
	}
	n := []int{0}
	for i, s := range sources {
		if s == ProcNull {
			continue
		}
		if want := int(c.group[s]); got[i] != want {
			return fmt.Errorf("neighbour %d is rank %d of the world, not %d", s, got[i], want)
		}
		if hosts[got[i]] != hosts[c.World().Rank()] {
			n[0]++
		}
	}
	if err := Allreduce(ctx, c, n, n, Sum[int]); err != nil {
		return err
	}
	if n[0] > most {
		return fmt.Errorf("%d ends of edges between hosts, want %d", n[0], most)
	}
	// The ranks of a host are those that share memory.
	shared, err := c.SplitType(ctx, SplitByMemory, 0, nil)
	if err == nil && shared.Size() != c.Size()/2 {
		err = fmt.Errorf("%d ranks on the host", shared.Size())
	}
	return err
}
