package sites

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// mesh returns n sites s0, s1, … with a gateway each, a leg between neighbors in a ring, and more lines.
func mesh(n int, more string) string {
	var b strings.Builder
	b.WriteString("jobs key-file k\n")
	for i := range n {
		fmt.Fprintf(&b, "site s%d\nranks %[1]d\ngateway g lan 10.0.0.1:1 wan 192.0.%d.%d:1\n", i, i/250, i%250+1)
	}
	for i := range n {
		if n > 2 || i > 0 {
			fmt.Fprintf(&b, "leg s%d s%d key-file k\n", i, (i+1)%n)
		}
	}
	return b.String() + more
}

func TestRoutes(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // paths, or one error
	}{
		{"ring of 3", mesh(3, ""), []string{"s0-s1", "s0-s2", "s1-s2"}},
		// Both ways have two legs: that over the leg s0-s1, which stands first, is taken.
		{"ring of 4", mesh(4, ""), []string{"s0-s1-s2", "s1-s0-s3", "s2-s3"}},
		{"ring of 5 by a route", mesh(5, "route s0 s2 via s4 s3\n"), []string{"s0-s4-s3-s2", "s4-s3-s2", "s0-s4-s3"}},
		{"ring of 4 by a route", mesh(4, "route s0 s2 via s3\n"), []string{"s0-s3-s2", "s1-s0-s3"}},
		{"shortcut", mesh(6, "leg s0 s3 key-file k\n"), []string{"s0-s3", "s0-s1-s2", "s1-s0-s3"}},
		{"route over a missing leg", mesh(4, "route s0 s1 via s2\n"), []string{"error route s0-s2-s1: there is no leg between s0 and s2"}},
		{"route between neighbors", mesh(4, "route s0 s1 via s3 s2\n"), []string{"error route s0-s3-s2-s1: s0 and s1 have a leg of their own: want the route without the sites between them"}},
		{"route with a loop", mesh(4, "route s0 s2 via s3 s0\n"), []string{"error route s0 s2: a loop: site s0 twice in s0 s3 s0 s2"}},
		{"route to itself", mesh(4, "route s0 s0 via s1\n"), []string{"error route s0 s0: a loop: site s0 twice in s0 s1 s0"}},
		{"routes that contradict", mesh(4, "route s0 s2 via s3\nroute s2 s0 via s1\n"), []string{"error route s2-s1-s0: from s2 to s0 through s1, but through s3 by the route of line 18"}},
		{"route without via", mesh(4, "route s0 s2 s1\n"), []string{`error route s0 s2 "s1": want via, and the sites between them in order`}},
		{"route via nothing", mesh(4, "route s0 s2 via\n"), []string{"error route s0 s2 via: want a name of a site after it"}},
		{"route too long", mesh(8, "route s0 s4 via s7 s6 s5 s4 s3\n"), []string{"error route s0 s4: 7 sites, want at most 6"}},
		// From s0 messages come to s1, whose route is not the shortest.
		{"asymmetric", mesh(6, "leg s1 s4 key-file k\nroute s1 s3 via s4\n"), []string{
			"error f:11: from s0 to s3 the routes lead by s0-s1-s4-s3, and back by s3-s2-s1-s0: want a line route s0 s3 via …"}},
		{"too far", mesh(12, ""), []string{"error no way from site s0 to site s6 over at most 5 legs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse("f", []byte(tt.text))
			if want, ok := strings.CutPrefix(tt.want[0], "error "); ok {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				ends := strings.Split(want, "-")
				if got := names(f.Path(f.Site(ends[0]), f.Site(ends[len(ends)-1]))); got != want {
					t.Errorf("path %s, want %s", got, want)
				}
			}
		})
	}
}

// On random networks all ways are shortest ones, the same in both directions, and each part of one is one.
func TestRandomRoutes(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 3 + r.IntN(8)
		var more strings.Builder
		have := make(map[[2]int]bool)
		for range r.IntN(2 * n) {
			a, b := r.IntN(n), r.IntN(n)
			if a > b {
				a, b = b, a
			}
			if d := b - a; d < 2 || d == n-1 || have[[2]int{a, b}] {
				continue
			}
			have[[2]int{a, b}] = true
			fmt.Fprintf(&more, "leg s%d s%d key-file k\n", a, b)
		}
		f, err := Parse("f", []byte(mesh(n, more.String())))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		dist := distances(f)
		for _, a := range f.Sites {
			for _, b := range f.Sites {
				there, back := f.Path(a, b), f.Path(b, a)
				slices.Reverse(back)
				if !slices.Equal(there, back) || len(there)-1 != dist[a.index][b.index] {
					t.Fatalf("seed %d: %s, back %s, want %d legs", seed, names(there), names(back), dist[a.index][b.index])
				}
				for i := range there {
					if part := f.Path(there[i], b); !slices.Equal(part, there[i:]) {
						t.Fatalf("seed %d: %s, but %s", seed, names(there), names(part))
					}
				}
			}
		}
	}
}

// distances returns the number of legs between all sites, by Floyd and Warshall.
func distances(f *File) [][]int {
	n := len(f.Sites)
	d := make([][]int, n)
	for i := range d {
		d[i] = make([]int, n)
		for j := range d[i] {
			if i != j {
				d[i][j] = n
			}
		}
	}
	for _, l := range f.Legs {
		d[l.A.index][l.B.index], d[l.B.index][l.A.index] = 1, 1
	}
	for k := range n {
		for i := range n {
			for j := range n {
				d[i][j] = min(d[i][j], d[i][k]+d[k][j])
			}
		}
	}
	return d
}
