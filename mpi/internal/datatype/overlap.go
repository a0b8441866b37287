package datatype

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Overlap reports whether items of a share a byte of memory with items of b. Items of one set
// may: blocks that are sent may overlap each other. Items that only interleave, as the blocks
// that a collective sends and receives in one array, do not overlap. It looks at runs only if
// the spans of memory from the first byte to the last meet; then it holds 16 bytes for each run
// of the set that has fewer.
func Overlap(a, b []Buffer) bool {
	x, y := hullOf(a), hullOf(b)
	if x.lo >= y.hi || y.lo >= x.hi {
		return false
	}
	if x.runs == 1 && y.runs == 1 {
		return true
	}
	if x.runs > y.runs {
		a, b, y = b, a, x
	}
	var all []Run // of a, by address
	for _, items := range a {
		for off, n := range items.Type.Runs(items.Count) {
			if off += int(items.Mem.Addr()); off < y.hi && off+n > y.lo {
				all = append(all, Run{off, n})
			}
		}
	}
	all = disjoint(all)
	for _, items := range b {
		for off, n := range items.Type.Runs(items.Count) {
			off += int(items.Mem.Addr())
			// The first that ends behind off.
			i := sort.Search(len(all), func(i int) bool { return all[i].Off+all[i].Len > off })
			if i < len(all) && all[i].Off < off+n {
				return true
			}
		}
	}
	return false
}

// A hull is the addresses from the first byte of items to the last.
type hull struct {
	lo, hi int
	runs   int // an upper bound
}

func hullOf(items []Buffer) hull {
	h := hull{lo: math.MaxInt, hi: math.MinInt}
	for _, x := range items {
		size, lo, hi, err := x.Type.reach(x.Count)
		if err != nil || size == 0 {
			continue
		}
		a := int(x.Mem.Addr())
		h.lo, h.hi = min(h.lo, a+lo), max(h.hi, a+hi)
		if _, _, ok := x.Type.OneRun(x.Count); ok {
			h.runs++
		} else {
			h.runs += x.Count * x.Type.RunCount()
		}
	}
	return h
}

// runCount returns the number of runs of a loop, at most MaxBytes.
func (x *loop) runCount() int {
	n, ok := Mul(x.count, max(x.kidRuns, 1))
	if !ok {
		return MaxBytes
	}
	return n
}

// disjoint sorts runs and joins those that overlap or touch.
func disjoint(runs []Run) []Run {
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(a.Off, b.Off) })
	k := 0
	for _, r := range runs {
		if k > 0 && r.Off <= runs[k-1].Off+runs[k-1].Len {
			last := &runs[k-1]
			last.Len = max(last.Len, r.Off+r.Len-last.Off)
			continue
		}
		runs[k] = r
		k++
	}
	return runs[:k]
}
