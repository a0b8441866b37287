package mpi

import (
	"context"
	"slices"

	"github.com/weftstack/weft/mpi/internal/topology"
)

// This file gives the ranks of a topology other numbers than they have in the
// communicator that it is made of, so that neighbours are on one host (MPI-4.1,
// Section 8.5: "reorder"). Each host keeps the places that its ranks have taken:
// what changes is which places of the topology these are.

// TopologyOption says how a topology is made.
type TopologyOption func(*topologyOptions)

type topologyOptions struct{ reorder bool }

// Reorder lets ranks have other numbers in a topology than in the communicator it
// is made of, so that fewer edges connect different hosts: fewer in number, or by
// their weights if they have any (the reorder argument of MPI_Cart_create). If no
// better order is found they keep theirs. A rank then is another node of the
// graph than the one whose edges it gave, see Graph.Neighbors. All ranks must
// give the same options.
func Reorder() TopologyOption { return func(o *topologyOptions) { o.reorder = true } }

func reorders(opts []TopologyOption) bool {
	var o topologyOptions
	for _, f := range opts {
		f(&o)
	}
	return o.reorder
}

// hosts returns which host each member of c is on, as equal numbers; nil if that
// is not known without asking, which is the same on all: they are of several jobs.
func (c *Comm) hosts() []int {
	out := make([]int, len(c.comm.Peers))
	for i, p := range c.comm.Peers {
		if p.Remote != nil {
			return nil
		}
		out[i] = p.Host
	}
	return out
}

// askHosts is hosts that asks if need be. All ranks of c must call it.
func (c *Comm) askHosts(ctx context.Context) ([]int, error) {
	if hosts := c.hosts(); hosts != nil {
		return hosts, nil
	}
	out := make([]int, c.Size())
	return out, Allgather(ctx, c, []int{c.w.job.HostColor()}, out)
}

// arranged makes a communicator of the given ranks of c, in that order; the others
// get nil. All ranks of c must call it.
func (c *Comm) arranged(ranks []int) (*Comm, error) {
	g, err := c.Group().Incl(ranks...)
	if err != nil {
		return nil, err
	}
	return c.create(g), nil
}

// reordered makes the communicator of a topology with these edges of the first
// ranks of c.
func (c *Comm) reordered(ctx context.Context, arcs [][]topology.Arc, more topology.Candidates) (*Comm, error) {
	hosts, err := c.askHosts(ctx)
	if err != nil {
		return nil, err
	}
	return c.arranged(topology.Arrange(hosts[:len(arcs)], arcs, more))
}

// mapRank returns the place of the caller in such a topology, without asking.
func (c *Comm) mapRank(arcs [][]topology.Arc, more topology.Candidates) int {
	if c.comm.Rank >= len(arcs) {
		return Undefined
	}
	hosts := c.hosts()
	if hosts == nil {
		return c.comm.Rank
	}
	return slices.Index(topology.Arrange(hosts[:len(arcs)], arcs, more), c.comm.Rank)
}

// reorderedGraph makes a graph of what each rank of c knows of the node with its
// number.
func reorderedGraph(ctx context.Context, c *Comm, g *Graph) (*Graph, error) {
	weighted := 0
	if g.sourceWeights != nil {
		weighted = 1
	}
	flat := slices.Concat([]int{len(g.sources), len(g.targets), weighted}, g.sources, g.targets, g.sourceWeights,
		g.targetWeights)
	all, err := AllgatherSlices(ctx, c, flat)
	if err != nil {
		return nil, err
	}
	nodes, targets, weights := make([]*Graph, len(all)), make([][]int, len(all)), make([][]int, len(all))
	for r, list := range all {
		next := func(n int) (part []int) {
			part, list = list[:n:n], list[n:]
			return part
		}
		head := next(3)
		nodes[r] = &Graph{sources: next(head[0]), targets: next(head[1])}
		if head[2] != 0 {
			nodes[r].sourceWeights, nodes[r].targetWeights = next(head[0]), next(head[1])
		}
		targets[r], weights[r] = nodes[r].targets, nodes[r].targetWeights
	}
	own, err := c.reordered(ctx, topology.GraphArcs(targets, weights), nil)
	if err != nil {
		return nil, err
	}
	out := nodes[own.Rank()]
	out.c = own
	own.topology = out
	return out, nil
}
