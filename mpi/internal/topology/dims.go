package topology

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// maxDims bounds what Dims divides: handles of ranks have 31 bits. It also
// bounds the work: trial division needs at most 46,341 steps, and a number has at most
// 1,536 divisors.
const maxDims = math.MaxInt32

// Dims divides n ranks over the dimensions that are 0 in dims, as evenly as possible and the larger
// first; others are kept. Of the ways to divide it takes one whose largest and smallest
// new dimension differ least (see factors). It returns ErrTopology if n is no multiple of those kept, or too large.
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

// factors splits n into k factors, the largest first, as balanced as possible: the
// difference between the largest and the smallest is the least there is; of several such
// splits it takes the one with the largest smallest factor, then with the largest
// second smallest one, and so on.
func factors(n, k int) []int {
	if k == 1 {
		return []int{n}
	}
	primes := primeFactors(n)
	if k >= len(primes) {
		// Every factor is a prime or 1: merging two primes makes the largest larger.
		return descending(append(slices.Repeat([]int{1}, k-len(primes)), primes...))
	}
	s := splitter{divisors: divisors(primes), failed: make(map[splitKey]bool)}
	// No split has a largest factor below the largest prime and the k-th root of n.
	first := 0
	for d := s.divisors[first]; d < primes[len(primes)-1] || powerLess(d, k, n); d = s.divisors[first] {
		first++
	}
	best, spread := []int(nil), math.MaxInt
	for i, low := range slices.Backward(s.divisors) {
		if powerMore(low, k, n) {
			continue // every split has a smaller factor
		}
		if s.divisors[first]-low >= spread {
			break // smaller ones are farther from the largest factor
		}
		for _, high := range s.divisors[max(first, i):] {
			if high-low >= spread {
				break
			}
			if rest := s.split(n/low, k-1, low, high); rest != nil {
				best, spread = append(rest, low), high-low
				break
			}
		}
	}
	return best
}

// descending sorts s, the largest first, and returns it.
func descending(s []int) []int {
	slices.Sort(s)
	slices.Reverse(s)
	return s
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

// splitter finds factors within bounds, of a number and of its divisors.
type splitter struct {
	divisors []int // ascending
	failed   map[splitKey]bool
}

// splitKey is a split that was tried: of n into k factors between low and high.
type splitKey struct{ n, k, low, high int }

// split returns k factors of n between low and high, the largest first, or nil if there
// are none; of several splits the one with the largest smallest factor, and so on.
func (s *splitter) split(n, k, low, high int) []int {
	if powerMore(low, k, n) || powerLess(high, k, n) {
		return nil
	}
	if k == 1 {
		return []int{n}
	}
	key := splitKey{n, k, low, high}
	if s.failed[key] {
		return nil
	}
	from, _ := slices.BinarySearch(s.divisors, low)
	to := from + sort.Search(len(s.divisors)-from, func(i int) bool { return powerMore(s.divisors[from+i], k, n) })
	for _, d := range slices.Backward(s.divisors[from:to]) {
		if n%d != 0 {
			continue
		}
		if rest := s.split(n/d, k-1, d, high); rest != nil {
			return append(rest, d)
		}
	}
	s.failed[key] = true
	return nil
}

// powerLess reports whether d to the power of k is less than n.
func powerLess(d, k, n int) bool {
	for ; k > 0; k-- {
		n = (n + d - 1) / d
	}
	return n > 1
}

// powerMore reports whether d to the power of k is more than n.
func powerMore(d, k, n int) bool {
	for ; k > 0; k-- {
		n /= d
	}
	return n == 0
}
