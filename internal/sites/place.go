package sites

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Place is where a process runs.
type Place struct {
	Site *Site
	Node uint16
	// Process is the number of the process on its node, or 0 if the caller numbers the processes of a host.
	Process uint16
}

// rankRange is the ranks lo to hi of a site.
type rankRange struct {
	lo, hi int
	site   *Site
	line   int
}

// ByRank reports whether ranks, not hosts, have sites.
func (f *File) ByRank() bool { return len(f.ranks) > 0 }

// RanksOf returns the ranks of a site as the file has them, in order: "0-3 8".
func (f *File) RanksOf(s *Site) string {
	var words []string
	for _, r := range f.ranks {
		switch {
		case r.site != s:
		case r.lo == r.hi:
			words = append(words, strconv.Itoa(r.lo))
		default:
			words = append(words, fmt.Sprintf("%d-%d", r.lo, r.hi))
		}
	}
	return strings.Join(words, " ")
}

// Place returns where a rank is that runs on a host. If the file gives hosts to sites, rank is not used, and host
// is found as it stands in the file, or by what is before its first dot. If the file gives ranks to sites, host is
// not used.
func (f *File) Place(host string, rank int) (Place, error) {
	if f.ByRank() {
		i, ok := slices.BinarySearchFunc(f.ranks, rank, func(r rankRange, rank int) int {
			switch {
			case rank < r.lo:
				return 1
			case rank > r.hi:
				return -1
			}
			return 0
		})
		if !ok {
			return Place{}, fmt.Errorf("%s: rank %d is in no site: want it in a line ranks", f.Name, rank)
		}
		return Place{Site: f.ranks[i].site, Node: 1, Process: uint16(rank + 1)}, nil
	}
	if p, ok := f.hosts[host]; ok {
		return p, nil
	}
	short, _, _ := strings.Cut(host, ".")
	names := f.short[short]
	if isAddress(host) {
		names = nil
	}
	// Of two full names with the same beginning neither is the host.
	if len(names) == 1 && (names[0] == short || host == short) {
		return f.hosts[names[0]], nil
	}
	if len(names) > 1 {
		return Place{}, fmt.Errorf("%s: host %q may be %s: want the full name", f.Name, host, strings.Join(names[:2], " or "))
	}
	return Place{}, fmt.Errorf("%s: host %q is in no site: want it in a line hosts", f.Name, host)
}
