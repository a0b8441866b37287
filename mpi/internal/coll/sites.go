package coll

// Sites says which ranks of a communicator are at one site. The way between two sites takes long,
// and their ranks share it: so algorithms for several sites send as little as possible across, at
// the same time if they can, and what the ranks of a site have to tell each other within it.
type Sites struct {
	Of    []int   // number of the site of each rank; sites are numbered by their lowest rank
	Ranks [][]int // of each site, in order
	// Runs is true if the ranks of each site follow one another. Then operands that are combined
	// within the sites, and the results in the order of the sites, keep the order of the ranks.
	Runs bool

	place []int // of each rank among those of its site
}

// NewSites returns the sites of size ranks, from the names of the sites of each.
func NewSites(size int, name func(rank int) string) *Sites {
	t := &Sites{Of: make([]int, size), place: make([]int, size), Runs: true}
	numbers := make(map[string]int)
	for r := range size {
		n, ok := numbers[name(r)]
		if !ok {
			n = len(t.Ranks)
			numbers[name(r)] = n
			t.Ranks = append(t.Ranks, nil)
		}
		t.Runs = t.Runs && n == len(t.Ranks)-1
		t.Of[r], t.place[r] = n, len(t.Ranks[n])
		t.Ranks[n] = append(t.Ranks[n], r)
	}
	return t
}
