package topology

import (
	"fmt"
	"math"
	"slices"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// maxDims bounds what Dims divides: handles of ranks have 31 bits. It also
// bounds the work: trial division needs at most 46,341 steps, and a number has at most
// 1,536 divisors.
const maxDims = math.MaxInt32

// Dims divides n ranks over the dimensions that are 0 in dims, as evenly as possible and the larger
// first; others are kept. It returns ErrTopology if n is no multiple of those kept, or too large.
func Dims(n int, dims []int) ([]int, error) {
	out := slices.Clone(dims)
	free := 0
	left := n
	for _, d := range dims {
		switch {
		case d < 0, n < 1, n > maxDims, d > 0 && left%d != 0:
			return nil, fmt.Errorf("%w: %d ranks in a grid of %v", mpierr.ErrTopology, n, dims)
		case d == 0:
			free++
		default:
			left /= d
		}
	}
	if free == 0 {
		if left != 1 {
			return nil, fmt.Errorf("%w: %d ranks in a grid of %v", mpierr.ErrTopology, n, dims)
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

// factors splits n into k factors, the largest first and as small as possible.
func factors(n, k int) []int {
	primes := primeFactors(n)
	// More factors than primes are of no use: the others are 1.
	s := splitter{divisors: divisors(primes), memo: make(map[[2]int][]int)}
	out := slices.Clone(s.split(n, min(k, max(len(primes), 1))))
	for len(out) < k {
		out = append(out, 1)
	}
	return out
}

// primeFactors returns the prime factors of n in ascending order.
func primeFactors(n int) []int {
	var out []int
	for p := 2; p <= n/p; p++ {
		for n%p == 0 {
			out = append(out, p)
			n /= p
		}
	}
	if n > 1 {
		out = append(out, n)
	}
	return out
}

// divisors returns all divisors of the product of primes in ascending order.
func divisors(primes []int) []int {
	out := []int{1}
	for i := 0; i < len(primes); {
		j := i
		for j < len(primes) && primes[j] == primes[i] {
			j++
		}
		power := 1
		base := len(out)
		for ; i < j; i++ {
			power *= primes[j-1]
			for _, d := range out[:base] {
				out = append(out, d*power)
			}
		}
	}
	slices.Sort(out)
	return out
}

// splitter finds the factors of a number and of its divisors.
type splitter struct {
	divisors []int
	memo     map[[2]int][]int // by number and count
}

// split returns k factors of n, which is one of the divisors.
func (s *splitter) split(n, k int) []int {
	if k == 1 {
		return []int{n}
	}
	key := [2]int{n, k}
	if out := s.memo[key]; out != nil {
		return out
	}
	for _, d := range s.divisors {
		if n%d != 0 || tooSmall(d, k, n) {
			continue
		}
		// d is the largest factor: the others multiply to n/d.
		if rest := s.split(n/d, k-1); rest[0] <= d {
			out := append([]int{d}, rest...)
			s.memo[key] = out
			return out
		}
	}
	panic("unreachable: n itself is a factor, and the others are 1")
}

// tooSmall reports whether d to the power of k is less than n: then d is not the
// largest of k factors.
func tooSmall(d, k, n int) bool {
	for ; k > 0; k-- {
		n = (n + d - 1) / d
	}
	return n > 1
}
