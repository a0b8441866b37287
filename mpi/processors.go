package mpi

import (
	"math/bits"

	"github.com/weftstack/weft/internal/affinity"
)

// cpuSet is the set of processors of the host on which a process may run: processor n is bit n%64
// of word n/64. It is empty if unknown.
type cpuSet []uint64

// processors returns where this process may run.
func processors() (s cpuSet) {
	for _, cpu := range affinity.Allowed() {
		for len(s) <= cpu/64 {
			s = append(s, 0)
		}
		s[cpu/64] |= 1 << (cpu % 64)
	}
	return s
}

func (s cpuSet) len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// meets reports whether s and o have a processor in common.
func (s cpuSet) meets(o cpuSet) bool {
	for i := range min(len(s), len(o)) {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// join returns s with the processors of o; it may change s.
func (s cpuSet) join(o cpuSet) cpuSet {
	for i, w := range o {
		if i == len(s) {
			return append(s, o[i:]...)
		}
		s[i] |= w
	}
	return s
}

// crowded reports whether the ranks that may run where one with the processors own
// may, outnumber the processors of them all, or those that this process uses at a
// time, procs, if that is less than it might. Local has the processors of all ranks of
// the host: a launcher or a container may have given each some of its own.
func crowded(own cpuSet, local []cpuSet, procs int) bool {
	if own.len() == 0 {
		return len(local) > procs || procs == 1
	}
	sharers, all := 0, cpuSet(nil)
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
