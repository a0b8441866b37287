package topology

import (
	"cmp"
	"container/heap"
	"slices"
)

// An Arc is one end of an edge between two places.
type Arc struct{ To, Weight int }

// A Placement is where the places of a topology are: by place, the index of a host.
type Placement []int

// Candidates tries further placements, of as many ranks on each host as sizes says.
type Candidates func(sizes []int, try func(Placement))

// cut returns the weight of the edges between hosts, each counted at both ends.
func (p Placement) cut(arcs [][]Arc) (sum int) {
	for i, list := range arcs {
		for _, a := range list {
			if p[i] != p[a.To] {
				sum += a.Weight
			}
		}
	}
	return sum
}

// Arrange returns which rank takes each place. hosts is by rank. Of the
// identity, more that the caller knows, and what can always be tried, it takes the
// placement with the least cut.
func Arrange(hosts []int, arcs [][]Arc, more Candidates) []int {
	n := len(hosts)
	number := make(map[int]int) // of each host, by its first rank
	identity := make(Placement, n)
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
	try := func(p Placement) {
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
func inOrder(sizes []int) Placement {
	var p Placement
	for h, n := range sizes {
		for range n {
			p = append(p, h)
		}
	}
	return p
}

// grown fills the hosts one after the other, the largest first, each with the place
// that has most in common with what is there.
func grown(sizes []int, arcs [][]Arc) Placement {
	order := make([]int, len(sizes))
	for h := range order {
		order[h] = h
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	p := make(Placement, len(arcs))
	free := make([]int, len(arcs)) // weight of edges to places that are not taken
	var rest placeHeap             // all of those
	for i := range p {
		p[i] = -1
		for _, a := range arcs[i] {
			free[i] += a.Weight
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
				free[a.To] -= a.Weight
				if p[a.To] < 0 {
					inside[a.To] += a.Weight
					heap.Push(&near, candidate{a.To, inside[a.To], free[a.To]})
					heap.Push(&rest, candidate{a.To, 0, free[a.To]})
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

// GraphArcs returns the edges of a graph. A negative target is no neighbour.
func GraphArcs(targets, weights [][]int) [][]Arc {
	arcs := make([][]Arc, len(targets))
	for i, list := range targets {
		for k, j := range list {
			w := 1
			if weights != nil && weights[i] != nil {
				w = weights[i][k]
			}
			if j >= 0 && j != i {
				arcs[i], arcs[j] = append(arcs[i], Arc{j, w}), append(arcs[j], Arc{i, w})
			}
		}
	}
	return arcs
}
