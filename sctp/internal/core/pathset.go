package core

import "net/netip"

// pathSet has the paths of an association. What was said of a path names it by its place, which
// stays until the path is removed; then the place is free for another one.
type pathSet struct {
	paths    []path
	pathIDs  uint32 // of paths so far
	primary  int
	lastPath int // of the last packet received
	failed   int // where an error was counted last
}

// clearPaths forgets all paths: the peer has restarted with other addresses.
func (s *pathSet) clearPaths() { s.paths, s.primary, s.lastPath, s.failed = s.paths[:0], 0, 0, 0 }

// pathByAddr returns the path to remote, or -1.
func (s *pathSet) pathByAddr(remote netip.AddrPort) int {
	if i := s.lastPath; i < len(s.paths) && s.paths[i].Remote == remote {
		return i
	}
	for i := range s.paths {
		if s.paths[i].Remote == remote {
			s.lastPath = i
			return i
		}
	}
	return -1
}

// pathByIP returns the path to an IP address, or -1.
func (s *pathSet) pathByIP(ip netip.Addr) int {
	for i := range s.paths {
		if s.paths[i].Remote.Addr() == ip {
			return i
		}
	}
	return -1
}

// pathByID returns the path with a number that no other one ever had, or -1.
func (s *pathSet) pathByID(id uint32) int {
	for i := range s.paths {
		if s.paths[i].id == id {
			return i
		}
	}
	return -1
}

// NumPaths returns how many paths there are.
func (s *pathSet) NumPaths() (n int) {
	for i := range s.paths {
		if !s.paths[i].gone {
			n++
		}
	}
	return n
}

// freePath returns the place of a removed path, or that behind the last one.
func (s *pathSet) freePath() int {
	for i := range s.paths {
		if s.paths[i].gone {
			return i
		}
	}
	return len(s.paths)
}

// livePath returns the place of the ith path that was not removed.
func (s *pathSet) livePath(i int) int {
	for k := range s.paths {
		if s.paths[k].gone {
			continue
		}
		if i == 0 {
			return k
		}
		i--
	}
	return 0
}

// pathClass orders paths by their fitness for data (RFC 7829, Section 3.2,
// rules 3 and 4, and Section 4.1).
type pathClass uint8

const (
	pathUsable pathClass = iota
	pathPF
	pathInactive
	pathUnconfirmed
)

func (p *path) class() pathClass {
	switch {
	case !p.confirmed:
		return pathUnconfirmed
	case !p.active:
		return pathInactive
	case p.pf:
		return pathPF
	}
	return pathUsable
}

// fitter reports whether p is better for data than q: by class and then, "the
// lowest error count (fewest consecutive timeouts)".
func (p *path) fitter(q *path) bool {
	if x, y := p.class(), q.class(); x != y {
		return x < y
	}
	return p.class() != pathUsable && p.errors < q.errors
}

// dataPath returns the path for new data: the primary one, or while that is
// potentially failed or inactive another active one (RFC 9260, Sections 6.4 and
// 6.4.1; RFC 7829, Section 3.2, rule 3). If none is active it is a path all the
// same: something must find out when the peer is back.
func (s *pathSet) dataPath() int {
	if s.paths[s.primary].usable() {
		return s.primary
	}
	best := s.primary
	for i := range s.paths {
		p, q := &s.paths[i], &s.paths[best]
		// RFC 7829, Section 4.1, rule 3: of several with the same error count, one
		// apart from "the last source -- destination pair where failure was
		// observed".
		if p.fitter(q) || best == s.failed && p.class() == q.class() && p.errors == q.errors && q.class() != pathUnconfirmed {
			best = i
		}
	}
	return best
}

// otherPath returns the path to retransmit by what timed out on path i: another
// active one (RFC 9260, Section 6.4: "SHOULD try to retransmit a chunk that
// timed out to an active destination transport address that is different"), or
// the least bad one.
func (s *pathSet) otherPath(i int) int {
	best := i
	for k := 1; k < len(s.paths); k++ {
		j := (i + k) % len(s.paths)
		p, q := &s.paths[j], &s.paths[best]
		if p.fitter(q) || best == i && p.confirmed && !q.fitter(p) {
			best = j
		}
	}
	return best
}

// replyPath returns where a reply to a packet from path i goes: back there,
// unless nothing but heartbeats may be sent to it (RFC 9260, Sections 5.4 and
// 6.4).
func (s *pathSet) replyPath(i int) int {
	if i < len(s.paths) && s.paths[i].confirmed {
		return i
	}
	return s.dataPath()
}

// amdcs returns the size of the largest chunk with user data, header included,
// while path d carries the data: RFC 9260, Section 7.3, "The sender SHOULD track
// an AMDCS that will be the smallest PMDCS discovered for all of the peer's
// destination addresses". Paths that are not in use, and not measured yet, do
// not count.
func (s *pathSet) amdcs(d int) int {
	n := s.paths[d].pmdcs()
	for i := range s.paths {
		if p := &s.paths[i]; p.confirmed && p.active && p.plpmtu.Stable() {
			n = min(n, p.pmdcs())
		}
	}
	return n
}
