package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/topology"
)

// Graph is a communicator whose ranks have any neighbours
// (MPI_Dist_graph_create_adjacent).
type Graph struct {
	c                *Comm
	sources, targets []int
	all              [][]int // of all ranks, if it was made by NewFullGraph

	sourceWeights, targetWeights []int // nil: without
}

// NewGraph makes a communicator on which the caller gets data from sources and
// sends data to targets; what is a target of one rank must be a source of the
// other, as often (MPI-4.1, Section 8.5.4). All ranks must call it; it blocks until they
// do, and fails on all alike.
func NewGraph(ctx context.Context, c *Comm, sources, targets []int, opts ...TopologyOption) (*Graph, error) {
	return newGraph(ctx, c, &Graph{sources: slices.Clone(sources), targets: slices.Clone(targets)}, nil, opts)
}

// newGraph makes the graph of what g says of the caller. bad is why that cannot be.
func newGraph(ctx context.Context, c *Comm, g *Graph, bad error, opts []TopologyOption) (*Graph, error) {
	if err := checkOneGroup(c); err != nil {
		return nil, err
	}
	for _, r := range slices.Concat(g.sources, g.targets) {
		if r != ProcNull && (r < 0 || r >= c.Size()) {
			bad = fmt.Errorf("%w: neighbour %d of %d", ErrRank, r, c.Size())
		}
	}
	if err := c.consent(ctx, bad, reorders(opts)); err != nil {
		return nil, err
	}
	if reorders(opts) {
		return reorderedGraph(ctx, c, g)
	}
	var err error
	if g.c, err = c.Dup(ctx); err != nil {
		return nil, err
	}
	g.c.topology = g
	return g, nil
}

func (g *Graph) on(c *Comm) Topology {
	d := *g
	d.c = c
	return &d
}

// Dup returns the same graph on a duplicate of its communicator: see Comm.Dup
// (MPI_Comm_dup). It does not block.
func (g *Graph) Dup(ctx context.Context) (*Graph, error) {
	d, err := g.c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return d.topology.(*Graph), nil
}

// Comm returns the communicator of the graph (MPI_Dist_graph_create_adjacent).
func (g *Graph) Comm() *Comm { return g.c }

// Neighbors returns the sources and targets given, after Reorder those given for
// the node that the caller is now (MPI_Dist_graph_neighbors).
func (g *Graph) Neighbors() (sources, targets []int) {
	return slices.Clone(g.sources), slices.Clone(g.targets)
}

func (g *Graph) flows() (sources, targets []int) {
	return make([]int, len(g.sources)), make([]int, len(g.targets))
}

// NewWeightedGraph is NewGraph with weights of the edges, one for each source and
// each target: what they mean is up to the program, for example how much is sent
// along an edge. They are not negative; an edge should have the same one at both
// ends (MPI-4.1, Section 8.5.4). It blocks until all ranks have called it. Errors
// to test for: ErrTopology, RankError.
func NewWeightedGraph(
	ctx context.Context, c *Comm, sources, sourceWeights, targets, targetWeights []int, opts ...TopologyOption,
) (*Graph, error) {
	bad := errors.Join(checkWeights(len(sources), sourceWeights), checkWeights(len(targets), targetWeights))
	g := &Graph{sources: slices.Clone(sources), targets: slices.Clone(targets),
		sourceWeights: cloneWeights(sourceWeights), targetWeights: cloneWeights(targetWeights)}
	return newGraph(ctx, c, g, bad, opts)
}

// cloneWeights is not nil even if there are none.
func cloneWeights(w []int) []int { return append([]int{}, w...) }

func checkWeights(n int, weights []int) error {
	if len(weights) != n {
		return fmt.Errorf("%w: %d weights of %d edges", ErrTopology, len(weights), n)
	}
	for _, w := range weights {
		if w < 0 {
			return fmt.Errorf("%w: weight %d", ErrTopology, w)
		}
	}
	return nil
}

// Weights returns the weights of the sources and targets of Neighbors, or nil if
// the graph was made without (MPI_Dist_graph_neighbors).
func (g *Graph) Weights() (sources, targets []int) {
	return slices.Clone(g.sourceWeights), slices.Clone(g.targetWeights)
}

// NewDistGraph makes a communicator whose ranks are the nodes of a graph of
// which every rank gives some edges, maybe of other ranks: targets[i] are those
// of the edges that leave node sources[i]. Neighbors of the result lists, for
// each node, the ranks in the order of who gave the edges. All ranks of c must
// call it; it blocks until they do, and fails on all if the edges of one cannot be
// (MPI-4.1, Section 8.5.4). Rank i of c is node i, unless Reorder is given.
func NewDistGraph(
	ctx context.Context, c *Comm, sources []int, targets [][]int, opts ...TopologyOption,
) (*Graph, error) {
	return newDistGraph(ctx, c, sources, targets, nil, opts)
}

// NewWeightedDistGraph is NewDistGraph with weights of the edges: weights[i][k] is
// that of the edge from sources[i] to targets[i][k] (MPI_Dist_graph_create). See
// NewWeightedGraph. It blocks until all ranks have called it. Errors to test for:
// ErrTopology, RankError.
func NewWeightedDistGraph(
	ctx context.Context, c *Comm, sources []int, targets, weights [][]int, opts ...TopologyOption,
) (*Graph, error) {
	return newDistGraph(ctx, c, sources, targets, &weights, opts)
}

func newDistGraph(
	ctx context.Context, c *Comm, sources []int, targets [][]int, weights *[][]int, opts []TopologyOption,
) (*Graph, error) {
	if err := checkOneGroup(c); err != nil {
		return nil, err
	}
	add, err := edgesByRank(c.Size(), sources, targets, weights)
	if err = c.consent(ctx, err, weights != nil); err != nil {
		if errors.Is(err, ErrNotSame) {
			err = fmt.Errorf("%w: only some ranks give weights: %w", ErrTopology, err)
		}
		return nil, err
	}
	got, err := AlltoallSlices(ctx, c, add)
	if err != nil {
		return nil, err
	}
	var lists, all [2][]int
	for _, edges := range got {
		for ; len(edges) >= 3; edges = edges[3:] {
			side := edges[0] & 1
			lists[side], all[side] = append(lists[side], edges[1]), append(all[side], edges[2])
		}
	}
	g := &Graph{sources: lists[1], targets: lists[0]}
	if weights != nil {
		g.sourceWeights, g.targetWeights = cloneWeights(all[1]), cloneWeights(all[0])
	}
	return newGraph(ctx, c, g, nil, opts)
}

// Kinds of the triples of edgesByRank.
const (
	edgeTo = iota
	edgeFrom
)

// edgesByRank returns for each rank triples of what is to be added to its
// lists: edgeTo and a target, or edgeFrom and a source; and the weight.
func edgesByRank(n int, sources []int, targets [][]int, weights *[][]int) (add [][]int, err error) {
	add = make([][]int, n)
	if len(sources) != len(targets) || weights != nil && len(*weights) != len(targets) {
		return add, fmt.Errorf("%w: %d sources, %d lists of targets, or not as many of weights", ErrTopology, len(sources), len(targets))
	}
	for i, s := range sources {
		if weights != nil {
			if err := checkWeights(len(targets[i]), (*weights)[i]); err != nil {
				return add, err
			}
		}
		for k, t := range targets[i] {
			if s < 0 || s >= n || t < 0 || t >= n {
				return add, fmt.Errorf("%w: edge from %d to %d of %d", ErrRank, s, t, n)
			}
			w := 0
			if weights != nil {
				w = (*weights)[i][k]
			}
			add[s] = append(add[s], edgeTo, t, w)
			add[t] = append(add[t], edgeFrom, s, w)
		}
	}
	return add, nil
}

// NewFullGraph makes a communicator whose ranks are the nodes of a graph that every
// rank knows as a whole: neighbors[i] are those of rank i, both as sources and as
// targets. Ranks of c beyond it get nil. All ranks must call it with the same graph
// (MPI_Graph_create, MPI-4.1, Section 8.5.3). Rank i of c is node i, unless Reorder is
// given. It blocks until all ranks have called it. Errors to test for: ErrTopology,
// RankError.
func NewFullGraph(ctx context.Context, c *Comm, neighbors [][]int, opts ...TopologyOption) (*Graph, error) {
	if err := c.consent(ctx, checkFullGraph(c, neighbors), neighbors, reorders(opts)); err != nil {
		return nil, err
	}
	all := make([][]int, len(neighbors))
	for i, list := range neighbors {
		all[i] = slices.Clone(list)
	}
	var own *Comm
	var err error
	if reorders(opts) {
		own, err = c.reordered(ctx, topology.GraphArcs(all, nil), nil)
	} else {
		own, err = c.first(len(all))
	}
	if err != nil || own == nil {
		return nil, err
	}
	list := all[own.Rank()]
	g := &Graph{c: own, sources: list, targets: list, all: all}
	own.topology = g
	return g, nil
}

func checkFullGraph(c *Comm, neighbors [][]int) error {
	if err := checkOneGroup(c); err != nil {
		return err
	}
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
// rank knows (MPI_Graph_map), or Undefined if it is not needed: that of NewFullGraph
// with Reorder, see CartMap. It is local.
func GraphMap(c *Comm, neighbors [][]int) (int, error) {
	if err := checkFullGraph(c, neighbors); err != nil {
		return Undefined, err
	}
	return c.mapRank(topology.GraphArcs(neighbors, nil), nil), nil
}

// Full reports whether every rank knows the graph as a whole: it was made by NewFullGraph
// (MPI_Topo_test: MPI_GRAPH, not MPI_DIST_GRAPH).
func (g *Graph) Full() bool { return g.all != nil }

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
