package datatype

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Rebuild returns t made of other basic datatypes: leaf returns what takes the place of one.
// Displacements that count items grow and shrink with them, those in bytes stay as they are, which
// is how datatypes describe places in a file whose elements have another size than in memory
// (MPI-4.1, Section 14.5.1: "no scaling will be done").
func (t *Type) Rebuild(leaf func(*Type) (*Type, error)) (*Type, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: nil", mpierr.ErrDatatype)
	}
	// A datatype that is a part of many others is rebuilt once: a tree of them may be exponential in
	// its depth.
	return t.rebuild(leaf, make(map[*Type]*Type))
}

func (t *Type) rebuild(leaf func(*Type) (*Type, error), done map[*Type]*Type) (*Type, error) {
	if u := done[t]; u != nil {
		return u, nil
	}
	u, err := t.rebuildNew(leaf, done)
	if err == nil {
		done[t] = u
	}
	return u, err
}

func (t *Type) rebuildNew(leaf func(*Type) (*Type, error), done map[*Type]*Type) (*Type, error) {
	c := t.Contents()
	if t.named != nil || len(c.Types) == 0 && c.Combiner != CombinerStruct {
		return leaf(t)
	}
	for i, part := range c.Types {
		var err error
		if c.Types[i], err = part.rebuild(leaf, done); err != nil {
			return nil, err
		}
	}
	return c.Build()
}

// Opaque returns a basic datatype of n bytes, one element that is like no other. A file has such
// elements where they are longer or shorter than in memory.
func Opaque(n int) *Type {
	l := &Layout{Name: fmt.Sprintf("%d bytes", n), Size: n, Ext: n, words: []elemWord{{n: n, ext: n}}}
	return &Type{root: run(0, n), size: n, ub: n, tub: n, sig: basicSignature(l)}
}

// Prefix returns how many bytes the first n elements of items of t have (MPI_Get_elements, the
// other way round).
func (t *Type) Prefix(n int) int {
	all := t.sig.sums()
	if all.elems == 0 {
		return 0
	}
	return n/all.elems*all.bytes + t.sig.prefix(n%all.elems)
}

// prefix returns how many bytes the first n elements have; n is less than all of them.
func (s signature) prefix(n int) int {
	bytes := 0
	for _, p := range s {
		whole := min(n/p.one.elems, p.count)
		n -= whole * p.one.elems
		bytes += whole * p.one.bytes
		if whole < p.count {
			return bytes + p.kids.prefix(n) // nothing in an element
		}
	}
	return bytes
}

// ExternalTo converts packed data of count items of t to external32.
func (t *Type) ExternalTo(dst, packed []byte, count int) error {
	var err error
	t.sig.repeat(count).each(func(e *Layout, n int) {
		if err == nil {
			dst, packed, err = e.ToExternal(dst, packed, n)
		}
	})
	return err
}

// ExternalFrom converts the whole elements in src, which is in external32, to packed data of items of
// t, and returns how many bytes of that it has written.
func (t *Type) ExternalFrom(packed, src []byte, count int) int {
	all, ended := len(packed), false
	t.sig.repeat(count).each(func(e *Layout, n int) {
		if ended || e.Ext == 0 {
			return
		}
		k := min(n, len(src)/e.Ext)
		packed, src = e.FromExternal(packed, src, k)
		ended = k < n
	})
	return all - len(packed)
}

// Uniform returns the layout of the elements of an item, and how many there are, if they are all
// alike.
func (t *Type) Uniform() (*Layout, int) {
	if len(t.sig) != 1 {
		return nil, 0
	}
	return t.sig[0].elem, t.sig[0].count
}

// InRow returns a datatype of the data of t without gaps: with the same elements in the same order,
// and the same contents.
func (t *Type) InRow() *Type {
	u := *t
	u.root, u.lb, u.ub, u.tlb, u.tub, u.Handle = run(0, t.size), 0, t.size, 0, t.size, nil
	return &u
}
