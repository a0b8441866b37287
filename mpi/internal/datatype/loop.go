package datatype

import "sort"

// A loop is a tree of loops over runs of bytes (ROMIO and MPICH: a flattened datatype, a
// dataloop). Offsets are relative to the loop around it.
type loop struct {
	off     int
	count   int    // how often n bytes, or kids, are repeated
	stride  int    // bytes apart
	n       int    // bytes of data of one repetition; without kids they are one run
	at      int    // of a kid: bytes of data that the kids before it have in one repetition
	kidRuns int    // runs of the kids in one repetition, at most MaxBytes
	kids    []loop // in the order in which they are packed
}

func run(off, n int) loop { return loop{off: off, count: 1, n: n} }

// nest returns the loop that goes through kids once.
func nest(kids []loop) loop {
	x := loop{count: 1, kids: kids}
	for i := range kids {
		kids[i].at = x.n
		x.n += kids[i].count * kids[i].n
		x.kidRuns = min(x.kidRuns+kids[i].runCount(), MaxBytes)
	}
	return x
}

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
	x = nest([]loop{x})
	x.off, x.count, x.stride = off, count, stride
	return x
}

// kidAt returns the kid that holds the byte at of the data of one repetition.
func (x *loop) kidAt(at int) int {
	if at == 0 {
		return 0
	}
	return sort.Search(len(x.kids), func(k int) bool { return x.kids[k].at > at }) - 1
}
