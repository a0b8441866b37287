package datatype

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// builder collects the blocks of a datatype.
type builder struct {
	t     Type
	nodes []loop
	some  bool // there are bounds
	data  bool // there is data in them
}

// block is n items of t in a row, without checking n.
func (b *builder) block(n int, t *Type) (*Type, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: nil", mpierr.ErrDatatype)
	}
	if t.depth >= MaxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", mpierr.ErrDatatype, MaxDepth)
	}
	b.t.depth = max(b.t.depth, t.depth+1)
	b.t.align = max(b.t.align, t.align)
	if n == 1 {
		return t, nil
	}
	extent := t.ub - t.lb
	r := &Type{values: t.values, lb: t.lb, ub: t.ub, marked: t.marked, tlb: t.tlb, tub: t.tub}
	last, ok := Mul(extent, n-1)
	var ok1, ok2, ok3, ok4, ok5 bool
	if r.size, ok5 = Mul(t.size, n); last < 0 {
		r.lb, ok1 = Add(t.lb, last)
		r.tlb, ok2 = Add(t.tlb, last)
		ok3, ok4 = true, true
	} else {
		r.ub, ok3 = Add(t.ub, last)
		r.tub, ok4 = Add(t.tub, last)
		ok1, ok2 = true, true
	}
	if !(ok && ok1 && ok2 && ok3 && ok4 && ok5) {
		return nil, fmt.Errorf("%w: block of %d items of %d bytes", mpierr.ErrDatatype, n, extent)
	}
	r.root = t.root.repeat(n, extent)
	r.sig = t.sig.repeat(n)
	return r, nil
}

// place widens the bounds for a block at off. MPI-4.1, Section 5.1.6: the bounds are
// those of the parts with markers, if there are any; a part without data and markers
// has none.
func (b *builder) place(off int, t *Type) bool {
	lb, ok1 := Add(t.lb, off)
	ub, ok2 := Add(t.ub, off)
	tlb, ok3 := Add(t.tlb, off)
	tub, ok4 := Add(t.tub, off)
	switch {
	case t.marked && !b.t.marked, !b.some && (t.marked || t.size > 0):
		b.t.lb, b.t.ub, b.t.marked, b.some = lb, ub, t.marked, true
	case t.marked == b.t.marked && (t.marked || t.size > 0):
		b.t.lb, b.t.ub = min(b.t.lb, lb), max(b.t.ub, ub)
	}
	if t.size > 0 {
		if !b.data {
			b.t.tlb, b.t.tub, b.t.values, b.data = tlb, tub, t.values, true
		}
		if b.t.values != t.values {
			b.t.values = SigAny
		}
		b.t.tlb, b.t.tub = min(b.t.tlb, tlb), max(b.t.tub, tub)
	}
	return ok1 && ok2 && ok3 && ok4
}

// add appends a node with size bytes of data, joined with the one before if
// they are one run.
func (b *builder) add(n loop, size int) {
	if size == 0 {
		return
	}
	if k := len(b.nodes) - 1; k >= 0 {
		last := &b.nodes[k]
		if last.count == 1 && n.count == 1 && len(last.kids)+len(n.kids) == 0 && last.off+last.n == n.off {
			last.n += n.n
			return
		}
	}
	b.nodes = append(b.nodes, n)
}

func (b *builder) done() (*Type, error) {
	switch len(b.nodes) {
	case 0:
	case 1:
		b.t.root = b.nodes[0]
	default:
		b.t.root = nest(b.nodes)
	}
	return &b.t, nil
}

// MaxBytes bounds sizes, bounds and displacements, so that sums of two of
// them fit an int.
const MaxBytes = math.MaxInt / 4

// Mul returns a·b and reports whether that is within MaxBytes.
func Mul(a, b int) (int, bool) {
	hi, lo := bits.Mul64(uint64(abs(a)), uint64(abs(b)))
	return a * b, hi == 0 && lo <= MaxBytes
}

// Add returns a+b and reports whether that is within MaxBytes.
func Add(a, b int) (int, bool) {
	s := a + b
	return s, abs(a) <= 2*MaxBytes && abs(b) <= 2*MaxBytes && abs(s) <= MaxBytes
}

// abs returns the absolute value, and MaxInt for MinInt.
func abs(a int) int {
	switch {
	case a == math.MinInt:
		return math.MaxInt
	case a < 0:
		return -a
	}
	return a
}
