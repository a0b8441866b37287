package seq

import "math/bits"

// Set is a set of TSNs within a window of at most its capacity, kept as a
// bitmap ring under two levels of summary, so that adding, removing and finding
// the next member take constant time up to 262,144 TSNs.
type Set struct {
	l0, l1, l2 []uint64
	mask       uint32
	n          int
}

func wordsFor(n int) int { return (n + 63) / 64 }

// SmallSet is how many words a set for windows of up to 64 TSNs takes.
const SmallSet = 3

// NewSet returns a set for windows of size TSNs, a power of two.
func NewSet(size int) Set {
	n0 := wordsFor(size)
	n1 := wordsFor(n0)
	return SetIn(make([]uint64, n0+n1+wordsFor(n1)), size)
}

// SetIn is NewSet with the memory given: as many words as it needs, all of them zero.
func SetIn(words []uint64, size int) Set {
	n0 := wordsFor(size)
	n1 := n0 + wordsFor(n0)
	return Set{words[:n0:n0], words[n0:n1:n1], words[n1:], uint32(size - 1), 0}
}

// Len returns the number of members.
func (s *Set) Len() int { return s.n }

// Has reports whether t is a member.
func (s *Set) Has(t TSN) bool {
	i := uint32(t) & s.mask
	return s.l0[i>>6]&(1<<(i&63)) != 0
}

// Add makes t a member.
func (s *Set) Add(t TSN) {
	i := uint32(t) & s.mask
	w, b := &s.l0[i>>6], uint64(1)<<(i&63)
	if *w&b != 0 {
		return
	}
	s.n++
	if *w |= b; *w == b {
		j := i >> 6
		s.l1[j>>6] |= 1 << (j & 63)
		s.l2[j>>12] |= 1 << (j >> 6 & 63)
	}
}

// Remove takes t out, if it is a member.
func (s *Set) Remove(t TSN) {
	i := uint32(t) & s.mask
	w, b := &s.l0[i>>6], uint64(1)<<(i&63)
	if *w&b == 0 {
		return
	}
	s.n--
	if *w &^= b; *w == 0 {
		j := i >> 6
		if s.l1[j>>6] &^= 1 << (j & 63); s.l1[j>>6] == 0 {
			s.l2[j>>12] &^= 1 << (j >> 6 & 63)
		}
	}
}

// Next returns the first member at or after from and before end. The window
// [from, end) must not be larger than the capacity, and no member may lie
// outside the window that the owner keeps.
func (s *Set) Next(from, end TSN) (TSN, bool) {
	if s.n == 0 {
		return 0, false
	}
	i := uint32(from) & s.mask
	p, ok := s.find(i)
	if !ok {
		// Wrap around the ring: members below i come after those above it.
		if p, ok = s.find(0); !ok {
			return 0, false
		}
	}
	t := from + TSN((p-i)&s.mask)
	return t, t.Less(end)
}

// find returns the position of the first bit at or after i.
func (s *Set) find(i uint32) (uint32, bool) {
	if w := s.l0[i>>6] >> (i & 63); w != 0 {
		return i + uint32(bits.TrailingZeros64(w)), true
	}
	j := i>>6 + 1
	if int(j) >= len(s.l0) {
		return 0, false
	}
	if w := s.l1[j>>6] >> (j & 63); w != 0 {
		return s.first(j + uint32(bits.TrailingZeros64(w))), true
	}
	k := j>>6 + 1
	for int(k) < len(s.l1) {
		if w := s.l2[k>>6] >> (k & 63); w != 0 {
			k += uint32(bits.TrailingZeros64(w))
			return s.first(k<<6 + uint32(bits.TrailingZeros64(s.l1[k]))), true
		}
		k = (k>>6 + 1) << 6
	}
	return 0, false
}

func (s *Set) first(j uint32) uint32 {
	return j<<6 + uint32(bits.TrailingZeros64(s.l0[j]))
}

// Grow returns the set with a larger capacity; [from, end) holds all members.
func (s *Set) Grow(size int, from, end TSN) Set {
	g := NewSet(size)
	for from.Less(end) {
		t, ok := s.Next(from, end)
		if !ok {
			break
		}
		g.Add(t)
		from = t + 1
	}
	return g
}
