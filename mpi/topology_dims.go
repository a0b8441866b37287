package mpi

import (
	"fmt"
	"slices"
)

// Dims divides n ranks over the dimensions that are 0 in dims, as evenly as
// possible and the larger first; others are kept (MPI-4.1, Section 8.5.2). It
// returns ErrTopology if n is no multiple of those kept, or above 2³¹-1, the
// largest size of a communicator.
func Dims(n int, dims ...int) ([]int, error) {
	out := slices.Clone(dims)
	free := 0
	left := n
	for _, d := range dims {
		switch {
		case d < 0, n < 1, n > maxDims, d > 0 && left%d != 0:
			return nil, fmt.Errorf("%w: %d ranks in a grid of %v", ErrTopology, n, dims)
		case d == 0:
			free++
		default:
			left /= d
		}
	}
	if free == 0 {
		if left != 1 {
			return nil, fmt.Errorf("%w: %d ranks in a grid of %v", ErrTopology, n, dims)
		}
		return out, nil
	}
	best := factors(left, free)
	k := 0
	for i := range out {
		if out[i] == 0 {
			out[i] = best[k]
			k++
		}
	}
	return out, nil
}
