package datatype

import (
	"fmt"
	"strings"
	"unsafe"
)

// signature is the sequence of the elements of a datatype, in the order in
// which they are packed (MPI-4.1, Section 5.1: the type signature).
type signature []sigPart

// sigPart is a number of elements, or of signatures.
type sigPart struct {
	count int
	elem  *Layout // or nil, and
	kids  signature
	one   sigSums // of one repetition
}

// sigSums are sums over elements, kept so that asking for them takes no walk over a signature,
// whose length is exponential in its depth.
type sigSums struct {
	elems int // elements
	bytes int // in memory
	ext   int // bytes in external32, never more than in memory
}

func basicSignature(e *Layout) signature {
	if len(e.words) == 0 {
		return nil
	}
	return signature{{count: 1, elem: e, one: sigSums{1, e.Size, e.Ext}}}
}

// repeat returns s, n times.
func (s signature) repeat(n int) signature {
	switch {
	case n == 0 || len(s) == 0:
		return nil
	case n == 1:
		return s
	case len(s) == 1:
		p := s[0]
		p.count *= n
		return signature{p}
	}
	return signature{{count: n, kids: s, one: s.sums()}}
}

// sums returns the sums over all elements.
func (s signature) sums() (all sigSums) {
	for _, p := range s {
		all.elems += p.count * p.one.elems
		all.bytes += p.count * p.one.bytes
		all.ext += p.count * p.one.ext
	}
	return all
}

// join returns s and then t. It may change what lies behind the end of s.
func (s signature) join(t signature) signature {
	for _, p := range t {
		if k := len(s) - 1; k >= 0 && s[k].elem == p.elem && sameSignature(s[k].kids, p.kids) {
			s[k].count += p.count
			continue
		}
		s = append(s, p)
	}
	return s
}

// sameSignature reports whether s and t are the same slice.
func sameSignature(s, t signature) bool {
	return len(s) == len(t) && unsafe.SliceData(s) == unsafe.SliceData(t)
}

// equal reports whether s and t have the same elements in the same order.
func (s signature) equal(t signature) bool {
	type run struct {
		elem *Layout
		n    int
	}
	flat := func(s signature) []run {
		var out []run
		s.each(func(e *Layout, n int) {
			if k := len(out) - 1; k >= 0 && out[k].elem == e {
				out[k].n += n
			} else {
				out = append(out, run{e, n})
			}
		})
		return out
	}
	a, b := flat(s), flat(t)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// each calls f for the elements in order, n in a row at a time.
func (s signature) each(f func(e *Layout, n int)) {
	for _, p := range s {
		if p.elem != nil {
			f(p.elem, p.count)
			continue
		}
		for range p.count {
			p.kids.each(f)
		}
	}
}

// within returns how many elements the first n bytes hold as a whole, and how many bytes are
// left.
func (s signature) within(n int) (k, left int) {
	for _, p := range s {
		whole := min(n/p.one.bytes, p.count)
		n -= whole * p.one.bytes
		k += whole * p.one.elems
		if whole < p.count {
			more, left := p.kids.within(n) // none in an element
			return k + more, left
		}
	}
	return k, n
}

// first returns how many bytes the first k elements have.
func (s signature) first(k int) (n int) {
	for _, p := range s {
		whole := min(k/p.one.elems, p.count)
		k -= whole * p.one.elems
		n += whole * p.one.bytes
		if whole < p.count {
			return n + p.kids.first(k) // k is 0 for an element
		}
	}
	return n
}

// String lists the elements, as "2×int32 3×(float64 int8)".
func (s signature) String() string {
	var b strings.Builder
	for i, p := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		if p.count != 1 {
			fmt.Fprintf(&b, "%d×", p.count)
		}
		if p.elem != nil {
			b.WriteString(p.elem.Name)
		} else {
			fmt.Fprintf(&b, "(%v)", p.kids)
		}
	}
	return b.String()
}
