package coll

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/weftstack/weft/mpi/internal/op"
)

// crossings counts the messages between sites.
type crossings struct {
	sites *Sites

	mu       sync.Mutex
	messages [][]int // from site to site
	bytes    [][]int
}

func newCrossings(sites *Sites) *crossings {
	c := &crossings{sites: sites}
	for range sites.Ranks {
		c.messages = append(c.messages, make([]int, len(sites.Ranks)))
		c.bytes = append(c.bytes, make([]int, len(sites.Ranks)))
	}
	return c
}

func (c *crossings) count(src, dst, n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := c.sites.Of[src], c.sites.Of[dst]
	c.messages[from][to]++
	c.bytes[from][to] += n
}

// siteTables returns the sites of the ranks, a letter for each, of communicators of all shapes.
func siteTables(r *rand.Rand) []string {
	tables := []string{
		"AB", "ABC", "ABCD", // a rank for each site
		"AAAABBBB", "AABBCC", "ABBBBBB", "AAAAAB", // sites that follow one another, of unequal size
		"ABABABAB", "ABCABCABC", "ABBA", "BAAAC", // sites that interleave
	}
	for range 6 {
		b := make([]byte, 2+r.IntN(10))
		for i := range b {
			b[i] = "ABC"[r.IntN(3)]
		}
		if b[0] == b[1] {
			b[1] = 'D' // at least two sites
		}
		tables = append(tables, string(b))
	}
	return tables
}

// crossing returns the fewest bytes that must go from one site to another in a collective with blocks,
// or buffers, of n bytes.
func (c *crossings) crossing(kind Kind, root, n, from, to int) int {
	a, b := len(c.sites.Ranks[from]), len(c.sites.Ranks[to])
	fromRoot, toRoot := c.sites.Of[root] == from, c.sites.Of[root] == to
	switch kind {
	case Bcast:
		if fromRoot {
			return n
		}
	case Reduce:
		if toRoot {
			return n
		}
	case Allreduce:
		return n
	case Gather, Gatherv:
		if toRoot {
			return a * n
		}
	case Scatter, Scatterv:
		if fromRoot {
			return b * n
		}
	case Allgather, Allgatherv:
		return a * n
	case Alltoall, Alltoallv:
		return a * b * n
	case ReduceScatter, ReduceScatterBlock:
		return b * n
	case Scan, Exscan:
		if from < to {
			return n
		}
	}
	return 0
}

// TestSites runs every algorithm for sites on ranks at several sites, compares with what the operation is
// defined to give, and counts what crosses between each two sites: every byte that has to, once, and if
// the algorithm is called sites, in one message.
func TestSites(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, table := range siteTables(r) {
		sites := NewSites(len(table), func(rank int) string { return table[rank : rank+1] })
		for kind := range Kinds {
			for _, alg := range Algorithms(kind) {
				if !strings.HasPrefix(alg.Name, "sites") {
					continue
				}
				for _, red := range []op.Reducer{op.Sum[uint16]{}, affine} {
					if !alg.Serves(&Schedule{Size: len(table), Op: red, Sites: sites}, false) {
						continue
					}
					for _, elems := range []int{0, 1, 2 + r.IntN(9), 1000 + r.IntN(1000)} {
						root := r.IntN(len(table))
						c := newCrossings(sites)
						runAlgorithm(t, kind, &alg, len(table), root, red, 2*elems, r.IntN(2) == 0, r.IntN(2) == 0, c)
						if t.Failed() {
							t.Fatalf("%s: %v by %s, root %d, %d elements", table, kind, alg.Name, root, elems)
						}
						c.check(t, fmt.Sprintf("%s: %v by %s, root %d, %d elements", table, kind, alg.Name, root, elems),
							kind, alg.Name, root, 2*elems)
					}
				}
			}
		}
	}
}

func (c *crossings) check(t *testing.T, what string, kind Kind, name string, root, n int) {
	t.Helper()
	for from := range c.sites.Ranks {
		for to := range c.sites.Ranks {
			if from == to {
				continue
			}
			want := c.crossing(kind, root, n, from, to)
			if got := c.bytes[from][to]; got != want {
				t.Errorf("%s: %d bytes from site %d to %d, want %d", what, got, from, to, want)
			}
			most := max(1, (want+farSegment-1)/farSegment)
			switch a, b := len(c.sites.Ranks[from]), len(c.sites.Ranks[to]); {
			case kind == ReduceScatter || kind == ReduceScatterBlock:
				most = b
			case name == "sites-direct":
				most = a * b
			case kind == Allgather && name == "sites-split" || kind == Allgatherv:
				most = a
			case name == "sites-split":
				most = a + b - 1
			}
			if want == 0 && n > 0 && kind != Barrier {
				most = 0
			}
			if got := c.messages[from][to]; got > most || kind == Barrier && got != 1 {
				t.Errorf("%s: %d messages from site %d to %d, at most %d", what, got, from, to, most)
			}
		}
	}
}

// TestSitesCutLongMessages has the buffers of a collective cross in messages below the eager limit.
func TestSitesCutLongMessages(t *testing.T) {
	const n = 5*farSegment + 2
	sites := NewSites(4, func(rank int) string { return "AABB"[rank : rank+1] })
	for kind, names := range map[Kind][]string{Bcast: {"sites", "sites-split"}, Allreduce: {"sites", "sites-split"}, Alltoall: {"sites-direct"}} {
		for _, alg := range Algorithms(kind) {
			for _, name := range names {
				if alg.Name != name {
					continue
				}
				c := newCrossings(sites)
				runAlgorithm(t, kind, &alg, 4, 1, op.Sum[uint16]{}, n, false, false, c)
				messages, bytes := c.messages[0][1], c.bytes[0][1]
				if bytes > messages*farSegment {
					t.Errorf("%v by %s: %d bytes in %d messages, want at most %d in each", kind, name, bytes, messages, farSegment)
				}
			}
		}
	}
}

// TestSitesRule has the built-in table choose an algorithm for sites if there are several, and none if
// there is one.
func TestSitesRule(t *testing.T) {
	sites := NewSites(8, func(rank int) string { return "AAAABBBB"[rank : rank+1] })
	for kind := range Kinds {
		for _, n := range []int{0, 8, 1 << 10, 64 << 10, 2 << 20} {
			s := &Schedule{Size: 8, Op: op.Sum[uint16]{}}
			alg, err := Builtin().Pick(s, kind, n, false)
			if err != nil || strings.HasPrefix(alg.Name, "sites") {
				t.Errorf("%v of %d bytes at one site: %v, %v", kind, n, alg, err)
			}
			s.Sites = sites
			alg, err = Builtin().Pick(s, kind, n, false)
			linear := kind == Gatherv || kind == Scatterv || n >= 8<<10 && (kind == Gather || kind == Scatter)
			if err != nil || strings.HasPrefix(alg.Name, "sites") == linear {
				t.Errorf("%v of %d bytes at two sites: %v, %v", kind, n, alg, err)
			}
		}
	}
}
