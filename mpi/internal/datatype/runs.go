package datatype

import "iter"

// A Run is a run of bytes in memory: where it begins, from the beginning of the items, and how
// long it is.
type Run struct{ Off, Len int }

// Runs returns the runs of data in count items: where they begin, and how long
// they are.
func (t *Type) Runs(count int) iter.Seq2[int, int] {
	return func(yield func(off, n int) bool) {
		if off, n, ok := t.OneRun(count); ok {
			if n > 0 {
				yield(off, n)
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

// LongRuns reports whether the runs of an item have at least n bytes on average.
func (t *Type) LongRuns(n int) bool { return t.size > 0 && t.size/t.RunCount() >= n }

// RunCount returns how many runs an item has at most.
func (t *Type) RunCount() int {
	if t.size == 0 {
		return 0
	}
	return t.root.runCount()
}

// FillRuns stores to runs the runs that hold the part of the packed stream of count items that
// begins at from and ends at to, and joins those that touch. It stops where runs is full, and
// returns how many runs there are, and how many bytes they hold.
func (t *Type) FillRuns(runs []Run, count, from, to int) (k, n int) {
	if to = min(to, t.size*count); from >= to || len(runs) == 0 {
		return 0, 0
	}
	all := to - from
	f := runFiller{runs: runs, left: all}
	if off, _, ok := t.OneRun(count); ok {
		f.add(off+from, all)
		return f.k, all
	}
	i := from / t.size
	from -= i * t.size
	extent := t.ub - t.lb
	for base := i * extent; t.root.fill(&f, base, from); base += extent {
		from = 0
	}
	return f.k, all - f.left
}

// A runFiller stores runs.
type runFiller struct {
	runs []Run
	k    int // runs stored
	left int // bytes wanted
}

// add stores a run of at most n bytes, and reports whether there is room for more, and more is
// wanted.
func (f *runFiller) add(off, n int) bool {
	n = min(n, f.left)
	if k := f.k - 1; k >= 0 && f.runs[k].Off+f.runs[k].Len == off {
		f.runs[k].Len += n
	} else if f.k == len(f.runs) {
		return false
	} else {
		f.runs[f.k] = Run{off, n}
		f.k++
	}
	f.left -= n
	return f.left > 0
}

// fill adds the runs of the loop at base, without the first from bytes of its data.
func (x *loop) fill(f *runFiller, base, from int) bool {
	i := from / x.n
	from -= i * x.n
	base += x.off + i*x.stride
	for ; i < x.count; i++ {
		if len(x.kids) == 0 {
			if !f.add(base+from, x.n-from) {
				return false
			}
		} else {
			k := x.kidAt(from)
			for from -= x.kids[k].at; k < len(x.kids); k++ {
				if !x.kids[k].fill(f, base, from) {
					return false
				}
				from = 0
			}
		}
		base += x.stride
		from = 0
	}
	return true
}
