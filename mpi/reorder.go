package mpi

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
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

// host names the host of this rank.
func (w *World) host() string {
	if f := w.opts.hostOf; f != nil {
		return f(w.Rank())
	}
	return hostID()
}

func (w *World) hostColor() int { return colorOf(w.host()) }

// colorOf makes a color of a host: not negative, where an int has 32 bits, either.
func colorOf(host string) int { return int(hashOf("host", host) & math.MaxInt) }

// hosts returns which host each member of c is on, as equal numbers; nil if that
// is not known without asking, which is the same on all: they are of several jobs.
func (c *Comm) hosts() []int {
	out := make([]int, len(c.peers))
	for i, p := range c.peers {
		if p.remote != nil {
			return nil
		}
		out[i] = p.host
	}
	return out
}

// askHosts is hosts that asks if need be. All ranks of c must call it.
func (c *Comm) askHosts(ctx context.Context) ([]int, error) {
	if hosts := c.hosts(); hosts != nil {
		return hosts, nil
	}
	out := make([]int, c.Size())
	return out, Allgather(ctx, c, []int{c.w.hostColor()}, out)
}

// arc is one end of an edge between two places.
type arc struct{ to, weight int }

// placement is where the places of a topology are: by place, the index of a host.
type placement []int

// cut returns the weight of the edges between hosts, each counted at both ends.
func (p placement) cut(arcs [][]arc) (sum int) {
	for i, list := range arcs {
		for _, a := range list {
			if p[i] != p[a.to] {
				sum += a.weight
			}
		}
	}
	return sum
}

// reorderRanks returns which rank takes each place. hosts is by rank. Of the
// identity, more that the caller knows, and what can always be tried, it takes the
// placement with the least cut.
func reorderRanks(hosts []int, arcs [][]arc, more func(sizes []int, try func(placement))) []int {
	n := len(hosts)
	number := make(map[int]int) // of each host, by its first rank
	identity := make(placement, n)
	var sizes []int
	for r, h := range hosts {
		k, ok := number[h]
		if !ok {
			k = len(sizes)
			number[h] = k
			sizes = append(sizes, 0)
		}
		identity[r] = k
		sizes[k]++
	}
	best, least := identity, identity.cut(arcs)
	try := func(p placement) {
		if cut := p.cut(arcs); cut < least {
			best, least = p, cut
		}
	}
	if len(sizes) > 1 && least > 0 {
		try(inOrder(sizes))
		if more != nil {
			more(sizes, try)
		}
		try(grown(sizes, arcs))
	}
	ranks := make([][]int, len(sizes))
	for r := range hosts {
		ranks[identity[r]] = append(ranks[identity[r]], r)
	}
	out := make([]int, n)
	for place, h := range best {
		out[place] = ranks[h][0]
		ranks[h] = ranks[h][1:]
	}
	return out
}

// inOrder fills one host after the other.
func inOrder(sizes []int) placement {
	var p placement
	for h, n := range sizes {
		for range n {
			p = append(p, h)
		}
	}
	return p
}

// grown fills the hosts one after the other, the largest first, each with the place
// that has most in common with what is there.
func grown(sizes []int, arcs [][]arc) placement {
	order := make([]int, len(sizes))
	for h := range order {
		order[h] = h
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	p := make(placement, len(arcs))
	free := make([]int, len(arcs)) // weight of edges to places that are not taken
	var rest placeHeap             // all of those
	for i := range p {
		p[i] = -1
		for _, a := range arcs[i] {
			free[i] += a.weight
		}
		rest = append(rest, candidate{place: i, free: free[i]})
	}
	heap.Init(&rest)
	for _, h := range order {
		inside := make(map[int]int) // weight of edges to this host
		var near placeHeap
		// Both heaps have old entries, too.
		take := func(from *placeHeap) int {
			for from.Len() > 0 {
				c := heap.Pop(from).(candidate)
				if p[c.place] < 0 && c.free == free[c.place] && (from == &rest || c.inside == inside[c.place]) {
					return c.place
				}
			}
			return -1
		}
		for range sizes[h] {
			next := take(&near)
			if next < 0 {
				next = take(&rest) // a corner
			}
			p[next] = h
			for _, a := range arcs[next] {
				free[a.to] -= a.weight
				if p[a.to] < 0 {
					inside[a.to] += a.weight
					heap.Push(&near, candidate{a.to, inside[a.to], free[a.to]})
					heap.Push(&rest, candidate{a.to, 0, free[a.to]})
				}
			}
		}
	}
	return p
}

// candidate is a place next to a host that is being filled.
type candidate struct{ place, inside, free int }

// placeHeap has the candidate with the most edges to the host first, of several the
// one with the fewest others.
type placeHeap []candidate

func (h placeHeap) Len() int      { return len(h) }
func (h placeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h placeHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(cmp.Compare(b.inside, a.inside), cmp.Compare(a.free, b.free), cmp.Compare(a.place, b.place)) < 0
}
func (h *placeHeap) Push(x any) { *h = append(*h, x.(candidate)) }
func (h *placeHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// gridArcs returns the edges of a grid.
func gridArcs(dims []int, periods []bool) [][]arc {
	n := 1
	for _, d := range dims {
		n *= d
	}
	arcs := make([][]arc, n)
	for i := range arcs {
		stride := 1
		for k := len(dims) - 1; k >= 0; k-- {
			at := i / stride % dims[k]
			up := i + stride
			if at == dims[k]-1 {
				up -= dims[k] * stride
			}
			if up != i && (at < dims[k]-1 || periods[k]) {
				arcs[i], arcs[up] = append(arcs[i], arc{up, 1}), append(arcs[up], arc{i, 1})
			}
			stride *= dims[k]
		}
	}
	return arcs
}

// gridBlocks tries all ways to cut a grid into equal blocks, one for each host.
func gridBlocks(dims []int) func(sizes []int, try func(placement)) {
	return func(sizes []int, try func(placement)) {
		for _, s := range sizes {
			if s != sizes[0] {
				return
			}
		}
		block := make([]int, len(dims))
		var choose func(k, left int)
		choose = func(k, left int) {
			if k == len(dims) {
				if left == 1 {
					try(inBlocks(dims, block))
				}
				return
			}
			for b := 1; b <= min(left, dims[k]); b++ {
				if left%b == 0 && dims[k]%b == 0 {
					block[k] = b
					choose(k+1, left/b)
				}
			}
		}
		choose(0, sizes[0])
	}
}

// inBlocks is a grid cut into blocks.
func inBlocks(dims, block []int) placement {
	n := 1
	for _, d := range dims {
		n *= d
	}
	p := make(placement, n)
	for i := range p {
		stride, hosts := 1, 1
		for k := len(dims) - 1; k >= 0; k-- {
			p[i] += i / stride % dims[k] / block[k] * hosts
			stride *= dims[k]
			hosts *= dims[k] / block[k]
		}
	}
	return p
}

// graphArcs returns the edges of a graph.
func graphArcs(targets, weights [][]int) [][]arc {
	arcs := make([][]arc, len(targets))
	for i, list := range targets {
		for k, j := range list {
			w := 1
			if weights != nil && weights[i] != nil {
				w = weights[i][k]
			}
			if j != ProcNull && j != i {
				arcs[i], arcs[j] = append(arcs[i], arc{j, w}), append(arcs[j], arc{i, w})
			}
		}
	}
	return arcs
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
func (c *Comm) reordered(ctx context.Context, arcs [][]arc, more func([]int, func(placement))) (*Comm, error) {
	hosts, err := c.askHosts(ctx)
	if err != nil {
		return nil, err
	}
	return c.arranged(reorderRanks(hosts[:len(arcs)], arcs, more))
}

// mapRank returns the place of the caller in such a topology, without asking.
func (c *Comm) mapRank(arcs [][]arc, more func([]int, func(placement))) int {
	if c.rank >= len(arcs) {
		return Undefined
	}
	hosts := c.hosts()
	if hosts == nil {
		return c.rank
	}
	return slices.Index(reorderRanks(hosts[:len(arcs)], arcs, more), c.rank)
}

// reorderedGraph makes a graph of what each rank of c knows of the node with its
// number.
func reorderedGraph(ctx context.Context, c *Comm, g *Graph) (*Graph, error) {
	weighted := 0
	if g.sourceWeights != nil {
		weighted = 1
	}
	flat := slices.Concat([]int{len(g.sources), len(g.targets), weighted}, g.sources, g.targets, g.sourceWeights, g.targetWeights)
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
	own, err := c.reordered(ctx, graphArcs(targets, weights), nil)
	if err != nil {
		return nil, err
	}
	out := nodes[own.Rank()]
	out.c = own
	own.topology = out
	return out, nil
}
