// Package cpuset has sets of processors, which tell whether the ranks of a host outnumber the
// processors that they may run on.
package cpuset

import (
	"math/bits"

	"github.com/weftstack/weft/internal/affinity"
)

// Set is the set of processors of the host on which a process may run: processor n is bit n%64
// of word n/64. It is empty if unknown.
type Set []uint64

// Allowed returns where this process may run.
func Allowed() (s Set) {
	for _, cpu := range affinity.Allowed() {
		for len(s) <= cpu/64 {
			s = append(s, 0)
		}
		s[cpu/64] |= 1 << (cpu % 64)
	}
	return s
}

func (s Set) len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// meets reports whether s and o have a processor in common.
func (s Set) meets(o Set) bool {
	for i := range min(len(s), len(o)) {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// join returns s with the processors of o; it may change s.
func (s Set) join(o Set) Set {
	for i, w := range o {
		if i == len(s) {
			return append(s, o[i:]...)
		}
		s[i] |= w
	}
	return s
}

// Crowded reports whether the ranks that may run where one with the processors own
// may, outnumber the processors of them all, or those that this process uses at a
// time, procs, if that is less than it might. local has the processors of all ranks of
// the host: a launcher or a container may have given each some of its own.
func Crowded(own Set, local []Set, procs int) bool {
	if own.len() == 0 {
		return len(local) > procs || procs == 1
	}
	sharers, all := 0, Set(nil)
	for _, s := range local {
		if s.meets(own) || s.len() == 0 {
			sharers++
			all = all.join(s)
		}
	}
	n := all.len()
	if procs < own.len() {
		n = min(n, procs)
	}
	return sharers > n
}
