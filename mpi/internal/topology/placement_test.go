package topology

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// edgesBetween counts the edges between hosts when place i is taken by rank order[i].
func edgesBetween(hosts, order []int, arcs [][]Arc) (sum int) {
	for i, list := range arcs {
		for _, a := range list {
			if hosts[order[i]] != hosts[order[a.To]] {
				sum += a.Weight
			}
		}
	}
	return sum
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestReorderNeverWorse compares random topologies on random hosts with the order
// of the ranks, which is kept if there is nothing to gain.
func TestReorderNeverWorse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	better := 0
	for try := range 3000 {
		var arcs [][]Arc
		var more Candidates
		var n int
		if try%2 == 0 {
			dims, periods := make([]int, 1+rng.IntN(3)), make([]bool, 3)
			n = 1
			for i := range dims {
				dims[i], periods[i] = 1+rng.IntN(5), rng.IntN(2) == 0
				n *= dims[i]
			}
			arcs, more = Grid{dims, periods[:len(dims)]}.Arcs(), Grid{dims, periods}.Blocks()
		} else {
			n = 1 + rng.IntN(24)
			targets, weights := make([][]int, n), make([][]int, n)
			for i := range targets {
				for range rng.IntN(5) {
					targets[i], weights[i] = append(targets[i], rng.IntN(n)), append(weights[i], rng.IntN(9))
				}
			}
			arcs = GraphArcs(targets, weights)
		}
		hosts := make([]int, n)
		for i, kinds := 0, 1+rng.IntN(5); i < n; i++ {
			hosts[i] = rng.IntN(kinds)
			if try%3 == 0 {
				hosts[i] = i % kinds
			}
		}
		order := Arrange(hosts, arcs, more)
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, upTo(n)) {
			t.Fatalf("try %d: order %v", try, order)
		}
		was, is := edgesBetween(hosts, upTo(n), arcs), edgesBetween(hosts, order, arcs)
		if is > was || is == was && !slices.Equal(order, upTo(n)) {
			t.Fatalf("try %d: %d edges between hosts %v before, %d in the order %v", try, was, hosts, is, order)
		}
		if is < was {
			better++
		}
	}
	if better < 500 {
		t.Errorf("only %d are better than before", better)
	}
}

// TestReorderFindsBlocks wants the best that there is, where that is known.
func TestReorderFindsBlocks(t *testing.T) {
	for _, tt := range []struct {
		dims    []int
		periods []bool
		hosts   int
		want    int // edges between hosts
	}{
		{[]int{4, 4}, []bool{false, false}, 4, 8},
		{[]int{6, 4}, []bool{false, false}, 2, 4},
		{[]int{4, 4, 4}, []bool{false, false, false}, 8, 48},
		{[]int{8}, []bool{true}, 2, 2},
		{[]int{8, 8}, []bool{true, true}, 4, 32},
	} {
		grid := Grid{tt.dims, tt.periods}
		arcs := grid.Arcs()
		hosts := make([]int, len(arcs))
		for i := range hosts {
			hosts[i] = i % tt.hosts
		}
		for name, more := range map[string]Candidates{"blocks": grid.Blocks(), "graph": nil} {
			got := edgesBetween(hosts, Arrange(hosts, arcs, more), arcs) / 2
			if more != nil && got != tt.want || got > 2*tt.want {
				t.Errorf("%v on %d hosts, %s: %d edges between hosts, want %d", tt.dims, tt.hosts, name, got, tt.want)
			}
		}
	}
}

// TestReorderUnequalHosts grows parts of a graph where blocks do not fit.
func TestReorderUnequalHosts(t *testing.T) {
	hosts := []int{0, 1, 0, 1, 0, 1, 0, 0} // five and three
	arcs := Grid{[]int{8}, []bool{false}}.Arcs()
	if got := edgesBetween(hosts, Arrange(hosts, arcs, nil), arcs) / 2; got != 1 {
		t.Errorf("a chain is cut %d times", got)
	}
}
