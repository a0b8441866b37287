package sites

import (
	"slices"
	"strings"
)

// route is a line of the file: the way between two sites, in both directions.
type route struct {
	path []*Site
	line int
}

// Next returns the site that messages from one site to another go to first, which is the destination if there is a
// leg; nil if the sites are the same.
func (f *File) Next(from, to *Site) *Site { return f.next[from.index][to.index] }

// Path returns the sites on the way, both ends included.
func (f *File) Path(from, to *Site) []*Site {
	path := []*Site{from}
	for from != to {
		from = f.next[from.index][to.index]
		path = append(path, from)
	}
	return path
}

// way is the best path found to a site: its legs' indexes in File.Legs in ascending order, and the site before.
type way struct {
	legs []int
	from *Site
}

// better orders paths: fewer legs, then the path over the leg that stands earlier in the file. The order is strict
// and does not depend on the direction, so the way back is the same, and each part of a best path is the best one
// between its ends.
func better(a, b []int) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return slices.Compare(a, b) < 0
}

// findRoutes computes where messages go, and checks it.
func (p *parser) findRoutes(routes []route) error {
	f := p.f
	n := len(f.Sites)
	f.next = make([][]*Site, n)
	given := make([][]int, n) // line that gave the entry
	legs := make([][]int, n)  // by site
	for i := range f.next {
		f.next[i], given[i] = make([]*Site, n), make([]int, n)
	}
	for i, l := range f.Legs {
		legs[l.A.index] = append(legs[l.A.index], i)
		legs[l.B.index] = append(legs[l.B.index], i)
	}
	for _, s := range f.Sites {
		f.computeNext(s, legs)
	}
	for _, r := range routes {
		if err := p.apply(r, given); err != nil {
			return err
		}
	}
	return p.checkRoutes()
}

// computeNext sets the next hop of all sites towards s.
func (f *File) computeNext(s *Site, legs [][]int) {
	best := make([]*way, len(f.Sites))
	best[s.index] = &way{}
	level := []*Site{s}
	for range MaxPath - 1 {
		found := make(map[*Site]*way)
		for _, at := range level {
			for _, i := range legs[at.index] {
				to := f.Legs[i].Other(at)
				if best[to.index] != nil {
					continue
				}
				list := slices.Clone(best[at.index].legs)
				j, _ := slices.BinarySearch(list, i)
				list = slices.Insert(list, j, i)
				if w := found[to]; w == nil || better(list, w.legs) {
					found[to] = &way{legs: list, from: at}
				}
			}
		}
		level = level[:0]
		for _, to := range f.Sites {
			if w := found[to]; w != nil {
				best[to.index] = w
				f.next[to.index][s.index] = w.from
				level = append(level, to)
			}
		}
	}
}

// apply sets the entries for all parts of a path, in both directions.
func (p *parser) apply(r route, given [][]int) error {
	f := p.f
	for i := range len(r.path) - 1 {
		if a, b := r.path[i], r.path[i+1]; f.Leg(a, b) == nil {
			return p.errorf(r.line, "route %s: there is no leg between %s and %s", names(r.path), a.Name, b.Name)
		}
	}
	for i, a := range r.path {
		for j, b := range r.path {
			d := j - i
			if d >= -1 && d <= 1 {
				continue // a leg, or the same site
			}
			if f.Leg(a, b) != nil {
				return p.errorf(r.line, "route %s: %s and %s have a leg of their own: want the route without the sites between them",
					names(r.path), a.Name, b.Name)
			}
			step := 1
			if d < 0 {
				step = -1
			}
			hop := r.path[i+step]
			if line := given[a.index][b.index]; line != 0 && f.next[a.index][b.index] != hop {
				return p.errorf(r.line, "route %s: from %s to %s through %s, but through %s by the route of line %d",
					names(r.path), a.Name, b.Name, hop.Name, f.next[a.index][b.index].Name, line)
			}
			f.next[a.index][b.index], given[a.index][b.index] = hop, r.line
		}
	}
	return nil
}

// checkRoutes follows the entries from each site to each other one.
func (p *parser) checkRoutes() error {
	for _, a := range p.f.Sites {
		for _, b := range p.f.Sites {
			if a == b {
				continue
			}
			there, err := p.follow(a, b)
			if err != nil {
				return err
			}
			// A gateway takes a message of a site only from where its own messages to that site go.
			back, err := p.follow(b, a)
			if err != nil {
				return err
			}
			text := names(back)
			slices.Reverse(back)
			if !slices.Equal(there, back) {
				return p.errorf(b.Line, "from %s to %s the routes lead by %s, and back by %s: want a line route %[1]s %[2]s via …",
					a.Name, b.Name, names(there), text)
			}
		}
	}
	return nil
}

// follow returns the path from a to b, or why there is none.
func (p *parser) follow(a, b *Site) ([]*Site, error) {
	path := []*Site{a}
	for at := a; at != b; {
		at = p.f.next[at.index][b.index]
		if at == nil {
			return nil, p.errorf(b.Line, "no way from site %s to site %s over at most %d legs: want a line leg %[1]s %[2]s key-file FILE, or legs to sites between them",
				a.Name, b.Name, MaxPath-1)
		}
		if slices.Contains(path, at) {
			return nil, p.errorf(b.Line, "the routes from site %s to site %s form a loop: %s: want a line route %[1]s %[2]s via …",
				a.Name, b.Name, names(append(path, at)))
		}
		if path = append(path, at); len(path) > MaxPath {
			return nil, p.errorf(b.Line, "the way from site %s to site %s has more than %d sites: %s", a.Name, b.Name, MaxPath, names(path))
		}
	}
	return path, nil
}

// names returns a path as text.
func names(path []*Site) string {
	var b strings.Builder
	for i, s := range path {
		if i > 0 {
			b.WriteByte('-')
		}
		b.WriteString(s.Name)
	}
	return b.String()
}
