package mpi

import (
	"context"
	"fmt"
	"slices"
)

// NewDistGraph makes a communicator whose ranks are the nodes of a graph of
// which every rank gives some edges, maybe of other ranks: targets[i] are those
// of the edges that leave node sources[i]. Neighbors of the result lists, for
// each node, the ranks in the order of who gave the edges. All ranks of c must
// call it; it blocks until they do (MPI-4.1, Section 8.5.4; without weights and
// reordering).
func NewDistGraph(ctx context.Context, c *Comm, sources []int, targets [][]int) (*Graph, error) {
	if len(sources) != len(targets) {
		return nil, fmt.Errorf("%w: %d sources, %d lists of targets", ErrTopology, len(sources), len(targets))
	}
	n := c.Size()
	// For each rank pairs of what is to be added to its lists: 0, a target, or 1, a source.
	add := make([][]int, n)
	for i, s := range sources {
		for _, t := range targets[i] {
			if s < 0 || s >= n || t < 0 || t >= n {
				return nil, fmt.Errorf("%w: edge from %d to %d of %d", ErrRank, s, t, n)
			}
			add[s] = append(add[s], 0, t)
			add[t] = append(add[t], 1, s)
		}
	}
	got, err := AlltoallSlices(ctx, c, add)
	if err != nil {
		return nil, err
	}
	var lists [2][]int
	for _, edges := range got {
		for i := 0; i+1 < len(edges); i += 2 {
			lists[edges[i]&1] = append(lists[edges[i]&1], edges[i+1])
		}
	}
	return NewGraph(ctx, c, lists[1], lists[0])
}

// NewFullGraph makes a communicator whose ranks are the nodes of a graph that
// every rank knows as a whole: neighbors[i] are those of rank i, both as sources
// and as targets. Ranks of c beyond it get nil. All ranks must call it with the
// same graph (MPI_Graph_create, MPI-4.1, Section 8.5.3).
func NewFullGraph(ctx context.Context, c *Comm, neighbors [][]int) (*Graph, error) {
	if err := checkFullGraph(c, neighbors); err != nil {
		return nil, err
	}
	all := make([][]int, len(neighbors))
	for i, list := range neighbors {
		all[i] = slices.Clone(list)
	}
	own, err := c.first(ctx, len(all))
	if err != nil || own == nil {
		return nil, err
	}
	list := all[own.Rank()]
	return &Graph{c: own, sources: list, targets: list, all: all}, nil
}

func checkFullGraph(c *Comm, neighbors [][]int) error {
	n := len(neighbors)
	if n > c.Size() {
		return fmt.Errorf("%w: %d nodes on %d ranks", ErrTopology, n, c.Size())
	}
	for _, list := range neighbors {
		for _, r := range list {
			if r < 0 || r >= n {
				return fmt.Errorf("%w: neighbour %d of %d", ErrRank, r, n)
			}
		}
	}
	return nil
}

// GraphMap returns the rank that the caller should have in a graph that every
// rank knows (MPI_Graph_map), or Undefined if it is not needed. Ranks keep their
// order, as with NewFullGraph. It is local.
func GraphMap(c *Comm, neighbors [][]int) (int, error) {
	if err := checkFullGraph(c, neighbors); err != nil || c.rank >= len(neighbors) {
		return Undefined, err
	}
	return c.rank, nil
}

// NeighborsOf returns the neighbours of any rank of a graph made by
// NewFullGraph (MPI_Graph_neighbors), else of the caller's targets only.
func (g *Graph) NeighborsOf(rank int) []int {
	switch {
	case rank < 0 || rank >= g.c.Size():
		return nil
	case g.all != nil:
		return slices.Clone(g.all[rank])
	case rank == g.c.Rank():
		return slices.Clone(g.targets)
	}
	return nil
}
