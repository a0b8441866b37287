package mpi

import (
	"math/bits"

	"golang.org/x/sys/unix"
)

// processors returns where this process may run.
func processors() (s cpuSet) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil // more processors than fit there
	}
	for i, w := range set {
		for w := uint(w); w != 0; w &= w - 1 {
			n := i*bits.UintSize + bits.TrailingZeros(w)
			for len(s) <= n/64 {
				s = append(s, 0)
			}
			s[n/64] |= 1 << (n % 64)
		}
	}
	return s
}
