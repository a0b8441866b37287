package datatype

import (
	"iter"
)

// A loop is a tree of loops over runs of bytes (ROMIO and MPICH: a flattened datatype, a
// dataloop). Offsets are relative to the loop around it.
type loop struct {
	off    int
	count  int // how often n bytes, or kids, are repeated
	stride int // bytes apart
	n      int // length of the run, if there are no kids
	kids   []loop
}

func run(off, n int) loop { return loop{off: off, count: 1, n: n} }

// repeat returns the loop for count times x, stride bytes apart.
func (x loop) repeat(count, stride int) loop {
	switch {
	case count == 1 || x.count == 0:
		return x
	case len(x.kids) == 0 && x.count == 1 && stride == x.n:
		x.n *= count
		return x
	case x.count == 1:
		x.count, x.stride = count, stride
		return x
	case x.count*x.stride == stride:
		x.count *= count
		return x
	}
	off := x.off
	x.off = 0
	return loop{off: off, count: count, stride: stride, kids: []loop{x}}
}

// pack copies the data of the loop at base from src to dst and returns how
// much it was.
func (x *loop) pack(dst, src []byte, base int) int {
	base += x.off
	m := 0
	if len(x.kids) > 0 {
		for range x.count {
			for i := range x.kids {
				m += x.kids[i].pack(dst[m:], src, base)
			}
			base += x.stride
		}
		return m
	}
	switch x.n {
	case 8: // one word; worth not calling memmove
		for range x.count {
			*(*[8]byte)(dst[m:]) = *(*[8]byte)(src[base:])
			m += 8
			base += x.stride
		}
	case 4:
		for range x.count {
			*(*[4]byte)(dst[m:]) = *(*[4]byte)(src[base:])
			m += 4
			base += x.stride
		}
	default:
		for range x.count {
			m += copy(dst[m:], src[base:base+x.n])
			base += x.stride
		}
	}
	return m
}

// unpack is the reverse of pack. It stops where src ends, and returns what of
// src it did not use.
func (x *loop) unpack(dst, src []byte, base int) []byte {
	base += x.off
	for range x.count {
		if len(src) == 0 {
			return nil
		}
		if len(x.kids) == 0 {
			src = src[copy(dst[base:base+x.n], src):]
		}
		for i := range x.kids {
			src = x.kids[i].unpack(dst, src, base)
		}
		base += x.stride
	}
	return src
}

// Pack copies the data of count items from src to dst.
func (t *Type) Pack(dst, src []byte, count int) {
	for i, m := 0, 0; i < count; i++ {
		m += t.root.pack(dst[m:], src, i*(t.ub-t.lb))
	}
}

// Unpack is the reverse of Pack. It stops where src ends.
func (t *Type) Unpack(dst, src []byte, count int) {
	for i := 0; i < count && len(src) > 0; i++ {
		src = t.root.unpack(dst, src, i*(t.ub-t.lb))
	}
}

// Runs returns the runs of data in count items: where they begin, and how long
// they are.
func (t *Type) Runs(count int) iter.Seq2[int, int] {
	return func(yield func(off, n int) bool) {
		if t.Dense(count) {
			if n := t.size * count; n > 0 {
				yield(0, n)
			}
			return
		}
		for i := range count {
			if !t.root.runs(i*t.Extent(), yield) {
				return
			}
		}
	}
}

// runs calls yield for the runs of the loop at base, until it returns false.
func (x *loop) runs(base int, yield func(off, n int) bool) bool {
	base += x.off
	for range x.count {
		if len(x.kids) == 0 && x.n > 0 && !yield(base, x.n) {
			return false
		}
		for i := range x.kids {
			if !x.kids[i].runs(base, yield) {
				return false
			}
		}
		base += x.stride
	}
	return true
}
