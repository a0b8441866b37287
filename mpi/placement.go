package mpi

import (
	"cmp"
	"container/heap"
	"slices"
)

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

func (h placeHeap) Len() int { return len(h) }

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
