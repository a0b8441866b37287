package cbinding

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// neighborLists returns the neighbours of each node of a graph: index[i] is how many edges the nodes up to i
// have together.
func neighborLists(nnodes int, index, edges uintptr) ([][]int, error) {
	if nnodes < 0 {
		return nil, argError(abi.ErrArg, "nnodes", nnodes, "is negative")
	}
	ends, err := ints("index", index, nnodes, false)
	if err != nil {
		return nil, err
	}
	last := 0
	for i, end := range ends {
		if end < last {
			return nil, argError(abi.ErrArg, fmt.Sprintf("index[%d]", i), end,
				fmt.Sprintf("is less than %d, of the nodes before", last))
		}
		last = end
	}
	all, err := ints("edges", edges, last, false)
	if err != nil {
		return nil, err
	}
	lists := make([][]int, nnodes)
	from := 0
	for i, end := range ends {
		lists[i], from = all[from:end], end
	}
	return lists, nil
}

// GraphCreate is MPI_Graph_create.
func GraphCreate(commOld Handle, nnodes int, index, edges uintptr, reorder int, commGraph uintptr) int {
	nullHandle(commGraph, abi.CommNull)
	const proc = "MPI_Graph_create"
	c, err := commOf(commOld)
	if err != nil {
		return fail(proc, err)
	}
	lists, err := neighborLists(nnodes, index, edges)
	if err == nil {
		err = out("comm_graph", commGraph)
	}
	if err != nil {
		return c.newTopology(proc, commGraph, nil, err)
	}
	g, err := mpi.NewFullGraph(background, c.Comm, lists, reordering(reorder)...)
	if g == nil {
		return c.newTopology(proc, commGraph, nil, asArgument(abi.ErrArg, err))
	}
	return c.newTopology(proc, commGraph, g.Comm(), nil)
}

// GraphMap is MPI_Graph_map.
func GraphMap(comm Handle, nnodes int, index, edges, newrank uintptr) int {
	const proc = "MPI_Graph_map"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	lists, err := neighborLists(nnodes, index, edges)
	if err != nil {
		return c.done(proc, err)
	}
	rank, err := mpi.GraphMap(c.Comm, lists)
	if err != nil {
		return c.done(proc, asArgument(abi.ErrArg, err))
	}
	return c.done(proc, setInt(newrank, rankToC(rank), false))
}

// wholeGraph returns how many edges the nodes up to each have together, and all edges.
func wholeGraph(g *mpi.Graph) (index, edges []int) {
	for i := range g.Comm().Size() {
		edges = append(edges, g.NeighborsOf(i)...)
		index = append(index, len(edges))
	}
	return index, edges
}

// GraphdimsGet is MPI_Graphdims_get.
func GraphdimsGet(comm Handle, nnodes, nedges uintptr) int {
	const proc = "MPI_Graphdims_get"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	index, edges := wholeGraph(g)
	err := setInt(nnodes, len(index), false)
	if err == nil {
		err = setInt(nedges, len(edges), false)
	}
	return c.done(proc, err)
}

// GraphGet is MPI_Graph_get.
func GraphGet(comm Handle, maxindex, maxedges int, index, edges uintptr) int {
	const proc = "MPI_Graph_get"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	i, e := wholeGraph(g)
	if maxindex < len(i) {
		return c.done(proc, argError(abi.ErrArg, "maxindex", maxindex, fmt.Sprintf("is less than %d nodes", len(i))))
	}
	if maxedges < len(e) {
		return c.done(proc, argError(abi.ErrArg, "maxedges", maxedges, fmt.Sprintf("is less than %d edges", len(e))))
	}
	err := setInts(index, i, false)
	if err == nil {
		err = setInts(edges, e, false)
	}
	return c.done(proc, err)
}

// GraphNeighborsCount is MPI_Graph_neighbors_count.
func GraphNeighborsCount(comm Handle, rank int, nneighbors uintptr) int {
	const proc = "MPI_Graph_neighbors_count"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	if rank < 0 || rank >= c.Size() {
		return c.done(proc, c.badRank("rank", rank, abi.ErrRank))
	}
	return c.done(proc, setInt(nneighbors, len(g.NeighborsOf(rank)), false))
}

// GraphNeighbors is MPI_Graph_neighbors.
func GraphNeighbors(comm Handle, rank, maxneighbors int, neighbors uintptr) int {
	const proc = "MPI_Graph_neighbors"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	if rank < 0 || rank >= c.Size() {
		return c.done(proc, c.badRank("rank", rank, abi.ErrRank))
	}
	return c.done(proc, setRanks(neighbors, g.NeighborsOf(rank), maxneighbors))
}

// setRanks stores as many of the ranks as there is room for (MPI-4.1, Section 8.5.5).
func setRanks(p uintptr, ranks []int, most int) error {
	if most < 0 {
		return argError(abi.ErrArg, "length", most, "is negative")
	}
	ranks = ranks[:min(most, len(ranks))]
	for i, r := range ranks {
		ranks[i] = rankToC(r)
	}
	return setInts(p, ranks, false)
}

// ranks returns the n ranks at p.
func (c *communicator) ranks(name string, p uintptr, n int) ([]int, error) {
	if n < 0 {
		return nil, argError(abi.ErrArg, name, n, "are not as many ranks")
	}
	list, err := ints(name, p, n, false)
	for i, r := range list {
		if list[i], err = c.peer(name, r); err != nil {
			return nil, err
		}
	}
	return list, err
}

// weights returns the n weights at p, which is no special value unless there are none.
func weights(name string, p uintptr, n int) ([]int, error) {
	if n == 0 {
		return nil, nil
	}
	if p < lowestAddress {
		return nil, argError(abi.ErrArg, name, p, fmt.Sprintf("is no array of %d weights", n))
	}
	list, err := ints(name, p, n, false)
	for i, w := range list {
		if w < 0 {
			return nil, argError(abi.ErrArg, fmt.Sprintf("%s[%d]", name, i), w, "is negative")
		}
	}
	return list, err
}

// DistGraphCreateAdjacent is MPI_Dist_graph_create_adjacent.
func DistGraphCreateAdjacent(commOld Handle, indegree int, sources, sourceweights uintptr, outdegree int,
	destinations, destweights uintptr, info Handle, reorder int, result uintptr) int {
	nullHandle(result, abi.CommNull)
	const proc = "MPI_Dist_graph_create_adjacent"
	c, err := commOf(commOld)
	if err != nil {
		return fail(proc, err)
	}
	g, err := c.adjacentGraph(indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder,
		result)
	if g == nil {
		return c.newTopology(proc, result, nil, asArgument(abi.ErrArg, err))
	}
	return c.newTopology(proc, result, g.Comm(), nil)
}

func (c *communicator) adjacentGraph(indegree int, sources, sourceweights uintptr, outdegree int,
	destinations, destweights uintptr, info Handle, reorder int, result uintptr) (*mpi.Graph, error) {
	if err := out("comm_dist_graph", result); err != nil {
		return nil, err
	}
	if _, err := hintsOf(info); err != nil {
		return nil, err
	}
	from, err := c.ranks("sources", sources, indegree)
	if err != nil {
		return nil, err
	}
	to, err := c.ranks("destinations", destinations, outdegree)
	if err != nil {
		return nil, err
	}
	if (sourceweights == abi.Unweighted) != (destweights == abi.Unweighted) {
		return nil, argError(abi.ErrArg, "destweights", destweights, "and sourceweights are not both MPI_UNWEIGHTED")
	}
	if sourceweights == abi.Unweighted {
		return mpi.NewGraph(background, c.Comm, from, to, reordering(reorder)...)
	}
	fromWeights, err := weights("sourceweights", sourceweights, indegree)
	if err != nil {
		return nil, err
	}
	toWeights, err := weights("destweights", destweights, outdegree)
	if err != nil {
		return nil, err
	}
	return mpi.NewWeightedGraph(background, c.Comm, from, fromWeights, to, toWeights, reordering(reorder)...)
}

// DistGraphCreate is MPI_Dist_graph_create.
func DistGraphCreate(commOld Handle, n int, sources, degrees, destinations, edgeWeights uintptr, info Handle,
	reorder int, result uintptr) int {
	nullHandle(result, abi.CommNull)
	const proc = "MPI_Dist_graph_create"
	c, err := commOf(commOld)
	if err != nil {
		return fail(proc, err)
	}
	g, err := c.distGraph(n, sources, degrees, destinations, edgeWeights, info, reorder, result)
	if g == nil {
		return c.newTopology(proc, result, nil, asArgument(abi.ErrArg, err))
	}
	return c.newTopology(proc, result, g.Comm(), nil)
}

func (c *communicator) distGraph(n int, sources, degrees, destinations, edgeWeights uintptr, info Handle,
	reorder int, result uintptr) (*mpi.Graph, error) {
	if err := out("comm_dist_graph", result); err != nil {
		return nil, err
	}
	if _, err := hintsOf(info); err != nil {
		return nil, err
	}
	nodes, err := c.ranks("sources", sources, n)
	if err != nil {
		return nil, err
	}
	counts, err := ints("degrees", degrees, n, false)
	if err != nil {
		return nil, err
	}
	all := 0
	for i, d := range counts {
		if d < 0 {
			return nil, argError(abi.ErrArg, fmt.Sprintf("degrees[%d]", i), d, "is negative")
		}
		all += d
	}
	to, err := c.ranks("destinations", destinations, all)
	if err != nil {
		return nil, err
	}
	var w []int
	if edgeWeights != abi.Unweighted {
		if w, err = weights("weights", edgeWeights, all); err != nil {
			return nil, err
		}
	}
	targets, byNode := make([][]int, n), make([][]int, n)
	at := 0
	for i, d := range counts {
		targets[i] = to[at : at+d]
		if edgeWeights != abi.Unweighted {
			byNode[i] = w[at : at+d]
		}
		at += d
	}
	if edgeWeights == abi.Unweighted {
		return mpi.NewDistGraph(background, c.Comm, nodes, targets, reordering(reorder)...)
	}
	return mpi.NewWeightedDistGraph(background, c.Comm, nodes, targets, byNode, reordering(reorder)...)
}

// DistGraphNeighborsCount is MPI_Dist_graph_neighbors_count.
func DistGraphNeighborsCount(comm Handle, indegree, outdegree, weighted uintptr) int {
	const proc = "MPI_Dist_graph_neighbors_count"
	c, g, code := graphOf(proc, comm, false)
	if c == nil {
		return code
	}
	from, to := g.Neighbors()
	w, _ := g.Weights()
	err := setInt(indegree, len(from), false)
	if err == nil {
		err = setInt(outdegree, len(to), false)
	}
	if err == nil {
		err = setFlag(weighted, w != nil)
	}
	return c.done(proc, err)
}

// DistGraphNeighbors is MPI_Dist_graph_neighbors.
func DistGraphNeighbors(comm Handle, maxindegree int, sources, sourceweights uintptr, maxoutdegree int,
	destinations, destweights uintptr) int {
	const proc = "MPI_Dist_graph_neighbors"
	c, g, code := graphOf(proc, comm, false)
	if c == nil {
		return code
	}
	from, to := g.Neighbors()
	fromWeights, toWeights := g.Weights()
	err := setRanks(sources, from, maxindegree)
	if err == nil {
		err = setRanks(destinations, to, maxoutdegree)
	}
	if err == nil {
		err = setWeights("sourceweights", sourceweights, fromWeights, maxindegree)
	}
	if err == nil {
		err = setWeights("destweights", destweights, toWeights, maxoutdegree)
	}
	return c.done(proc, err)
}

// setWeights stores as many of the weights as there is room for, unless they are not wanted.
func setWeights(name string, p uintptr, w []int, most int) error {
	w = w[:min(most, len(w))]
	switch {
	case len(w) == 0 || p == abi.Unweighted:
		return nil
	case p < lowestAddress:
		return argError(abi.ErrArg, name, p, fmt.Sprintf("is no array of %d weights", len(w)))
	}
	return setInts(p, w, false)
}
