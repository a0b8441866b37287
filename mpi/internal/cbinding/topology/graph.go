package topology

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// neighborLists returns the neighbours of each node of a graph: index[i] is how many edges the nodes up to i
// have together.
func neighborLists(nnodes int, index, edges uintptr) ([][]int, error) {
	if nnodes < 0 {
		return nil, cbinding.ArgError(abi.ErrArg, "nnodes", nnodes, "is negative")
	}
	ends, err := cbinding.Ints("index", index, nnodes, false)
	if err != nil {
		return nil, err
	}
	last := 0
	for i, end := range ends {
		if end < last {
			return nil, cbinding.ArgError(abi.ErrArg, fmt.Sprintf("index[%d]", i), end,
				fmt.Sprintf("is less than %d, of the nodes before", last))
		}
		last = end
	}
	all, err := cbinding.Ints("edges", edges, last, false)
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

// refuseGraph takes part in the making of a graph as a rank whose arguments are wrong: the others, which wait for it,
// get an error too. It returns err.
func refuseGraph(c *cbinding.Communicator, err error) error {
	if c.IsInter() {
		return err
	}
	return c.Refuse(err, func() {
		_, _ = mpi.NewGraph(cbinding.Background, c.Comm, []int{c.Size()}, nil) // there is no such rank
	})
}

// GraphCreate is MPI_Graph_create.
func GraphCreate(commOld abi.Handle, nnodes int, index, edges uintptr, reorder int, commGraph uintptr) int {
	cbinding.NullHandle(commGraph, abi.CommNull)
	const proc = "MPI_Graph_create"
	c, err := cbinding.CommOf(commOld)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	lists, err := neighborLists(nnodes, index, edges)
	if err == nil {
		err = cbinding.CommRoom("comm_graph", commGraph)
	}
	if err != nil {
		return newTopology(c, proc, commGraph, nil, refuseGraph(c, err))
	}
	g, err := mpi.NewFullGraph(cbinding.Background, c.Comm, lists, reordering(reorder)...)
	if g == nil {
		return newTopology(c, proc, commGraph, nil, asArgument(abi.ErrArg, err))
	}
	return newTopology(c, proc, commGraph, g.Comm(), nil)
}

// GraphMap is MPI_Graph_map.
func GraphMap(comm abi.Handle, nnodes int, index, edges, newrank uintptr) int {
	const proc = "MPI_Graph_map"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	lists, err := neighborLists(nnodes, index, edges)
	if err != nil {
		return c.Done(proc, err)
	}
	rank, err := mpi.GraphMap(c.Comm, lists)
	if err != nil {
		return c.Done(proc, asArgument(abi.ErrArg, err))
	}
	return c.Done(proc, cbinding.SetInt(newrank, cbinding.RankToC(rank), false))
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
func GraphdimsGet(comm abi.Handle, nnodes, nedges uintptr) int {
	const proc = "MPI_Graphdims_get"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	index, edges := wholeGraph(g)
	err := cbinding.SetInt(nnodes, len(index), false)
	if err == nil {
		err = cbinding.SetInt(nedges, len(edges), false)
	}
	return c.Done(proc, err)
}

// GraphGet is MPI_Graph_get.
func GraphGet(comm abi.Handle, maxindex, maxedges int, index, edges uintptr) int {
	const proc = "MPI_Graph_get"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	i, e := wholeGraph(g)
	if maxindex < len(i) {
		return c.Done(proc, cbinding.ArgError(abi.ErrArg, "maxindex", maxindex, fmt.Sprintf("is less than %d nodes", len(i))))
	}
	if maxedges < len(e) {
		return c.Done(proc, cbinding.ArgError(abi.ErrArg, "maxedges", maxedges, fmt.Sprintf("is less than %d edges", len(e))))
	}
	err := cbinding.SetInts(index, i, false)
	if err == nil {
		err = cbinding.SetInts(edges, e, false)
	}
	return c.Done(proc, err)
}

// GraphNeighborsCount is MPI_Graph_neighbors_count.
func GraphNeighborsCount(comm abi.Handle, rank int, nneighbors uintptr) int {
	const proc = "MPI_Graph_neighbors_count"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	if rank < 0 || rank >= c.Size() {
		return c.Done(proc, c.BadRank("rank", rank, abi.ErrRank))
	}
	return c.Done(proc, cbinding.SetInt(nneighbors, len(g.NeighborsOf(rank)), false))
}

// GraphNeighbors is MPI_Graph_neighbors.
func GraphNeighbors(comm abi.Handle, rank, maxneighbors int, neighbors uintptr) int {
	const proc = "MPI_Graph_neighbors"
	c, g, code := graphOf(proc, comm, true)
	if c == nil {
		return code
	}
	if rank < 0 || rank >= c.Size() {
		return c.Done(proc, c.BadRank("rank", rank, abi.ErrRank))
	}
	return c.Done(proc, setRanks(neighbors, g.NeighborsOf(rank), maxneighbors))
}

// setRanks stores as many of the ranks as there is room for (MPI-4.1, Section 8.5.5).
func setRanks(p uintptr, ranks []int, most int) error {
	if most < 0 {
		return cbinding.ArgError(abi.ErrArg, "length", most, "is negative")
	}
	ranks = ranks[:min(most, len(ranks))]
	for i, r := range ranks {
		ranks[i] = cbinding.RankToC(r)
	}
	return cbinding.SetInts(p, ranks, false)
}

// ranks returns the n ranks at p.
func ranksOf(c *cbinding.Communicator, name string, p uintptr, n int) ([]int, error) {
	if n < 0 {
		return nil, cbinding.ArgError(abi.ErrArg, name, n, "are not as many ranks")
	}
	list, err := cbinding.Ints(name, p, n, false)
	for i, r := range list {
		if list[i], err = c.Peer(name, r); err != nil {
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
	if p < cbinding.LowestAddress {
		return nil, cbinding.ArgError(abi.ErrArg, name, p, fmt.Sprintf("is no array of %d weights", n))
	}
	list, err := cbinding.Ints(name, p, n, false)
	for i, w := range list {
		if w < 0 {
			return nil, cbinding.ArgError(abi.ErrArg, fmt.Sprintf("%s[%d]", name, i), w, "is negative")
		}
	}
	return list, err
}

// DistGraphCreateAdjacent is MPI_Dist_graph_create_adjacent.
func DistGraphCreateAdjacent(commOld abi.Handle, indegree int, sources, sourceweights uintptr, outdegree int,
	destinations, destweights uintptr, info abi.Handle, reorder int, result uintptr) int {
	cbinding.NullHandle(result, abi.CommNull)
	const proc = "MPI_Dist_graph_create_adjacent"
	c, err := cbinding.CommOf(commOld)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	g, err := adjacentGraph(c, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder,
		result)
	if g == nil {
		return newTopology(c, proc, result, nil, asArgument(abi.ErrArg, err))
	}
	return newTopology(c, proc, result, g.Comm(), nil)
}

func adjacentGraph(c *cbinding.Communicator, indegree int, sources, sourceweights uintptr, outdegree int,
	destinations, destweights uintptr, info abi.Handle, reorder int, result uintptr) (g *mpi.Graph, err error) {
	begun := false
	defer func() {
		if !begun {
			err = refuseGraph(c, err)
		}
	}()
	if err := cbinding.CommRoom("comm_dist_graph", result); err != nil {
		return nil, err
	}
	if _, err := cbinding.HintsOf(info); err != nil {
		return nil, err
	}
	from, err := ranksOf(c, "sources", sources, indegree)
	if err != nil {
		return nil, err
	}
	to, err := ranksOf(c, "destinations", destinations, outdegree)
	if err != nil {
		return nil, err
	}
	if (sourceweights == abi.Unweighted) != (destweights == abi.Unweighted) {
		return nil, cbinding.ArgError(abi.ErrArg, "destweights", destweights, "and sourceweights are not both MPI_UNWEIGHTED")
	}
	if sourceweights == abi.Unweighted {
		begun = true
		return mpi.NewGraph(cbinding.Background, c.Comm, from, to, reordering(reorder)...)
	}
	fromWeights, err := weights("sourceweights", sourceweights, indegree)
	if err != nil {
		return nil, err
	}
	toWeights, err := weights("destweights", destweights, outdegree)
	if err != nil {
		return nil, err
	}
	begun = true
	return mpi.NewWeightedGraph(cbinding.Background, c.Comm, from, fromWeights, to, toWeights, reordering(reorder)...)
}

// DistGraphCreate is MPI_Dist_graph_create.
func DistGraphCreate(commOld abi.Handle, n int, sources, degrees, destinations, edgeWeights uintptr, info abi.Handle,
	reorder int, result uintptr) int {
	cbinding.NullHandle(result, abi.CommNull)
	const proc = "MPI_Dist_graph_create"
	c, err := cbinding.CommOf(commOld)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	g, err := distGraph(c, n, sources, degrees, destinations, edgeWeights, info, reorder, result)
	if g == nil {
		return newTopology(c, proc, result, nil, asArgument(abi.ErrArg, err))
	}
	return newTopology(c, proc, result, g.Comm(), nil)
}

func distGraph(c *cbinding.Communicator, n int, sources, degrees, destinations, edgeWeights uintptr, info abi.Handle,
	reorder int, result uintptr) (g *mpi.Graph, err error) {
	begun := false
	defer func() {
		if !begun {
			err = refuseGraph(c, err)
		}
	}()
	if err := cbinding.CommRoom("comm_dist_graph", result); err != nil {
		return nil, err
	}
	if _, err := cbinding.HintsOf(info); err != nil {
		return nil, err
	}
	nodes, err := ranksOf(c, "sources", sources, n)
	if err != nil {
		return nil, err
	}
	counts, err := cbinding.Ints("degrees", degrees, n, false)
	if err != nil {
		return nil, err
	}
	all := 0
	for i, d := range counts {
		if d < 0 {
			return nil, cbinding.ArgError(abi.ErrArg, fmt.Sprintf("degrees[%d]", i), d, "is negative")
		}
		all += d
	}
	to, err := ranksOf(c, "destinations", destinations, all)
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
		begun = true
		return mpi.NewDistGraph(cbinding.Background, c.Comm, nodes, targets, reordering(reorder)...)
	}
	begun = true
	return mpi.NewWeightedDistGraph(cbinding.Background, c.Comm, nodes, targets, byNode, reordering(reorder)...)
}

// DistGraphNeighborsCount is MPI_Dist_graph_neighbors_count.
func DistGraphNeighborsCount(comm abi.Handle, indegree, outdegree, weighted uintptr) int {
	const proc = "MPI_Dist_graph_neighbors_count"
	c, g, code := graphOf(proc, comm, false)
	if c == nil {
		return code
	}
	from, to := g.Neighbors()
	w, _ := g.Weights()
	err := cbinding.SetInt(indegree, len(from), false)
	if err == nil {
		err = cbinding.SetInt(outdegree, len(to), false)
	}
	if err == nil {
		err = cbinding.SetFlag(weighted, w != nil)
	}
	return c.Done(proc, err)
}

// DistGraphNeighbors is MPI_Dist_graph_neighbors.
func DistGraphNeighbors(comm abi.Handle, maxindegree int, sources, sourceweights uintptr, maxoutdegree int,
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
	return c.Done(proc, err)
}

// setWeights stores as many of the weights as there is room for, unless they are not wanted.
func setWeights(name string, p uintptr, w []int, most int) error {
	w = w[:min(most, len(w))]
	switch {
	case len(w) == 0 || p == abi.Unweighted:
		return nil
	case p < cbinding.LowestAddress:
		return cbinding.ArgError(abi.ErrArg, name, p, fmt.Sprintf("is no array of %d weights", len(w)))
	}
	return cbinding.SetInts(p, w, false)
}
