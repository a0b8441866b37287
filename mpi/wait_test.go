package mpi

import (
	"testing"
)

// While the network has nothing it is looked at ever more rarely, but not too rarely;
// once it has, it is again.
func TestSharedLooksAtNetwork(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		s := sharing(t)
		s.crowded = crowded
		looks, found := 0, false
		poll := s.polling(func() bool { looks++; return found })
		polls := func(n int) int {
			looks = 0
			for range n {
				poll()
			}
			return looks
		}
		most := maxGap
		if crowded {
			most = crowdedGap
		}
		if polls(4 * maxGap); polls(4*maxGap) != 4*maxGap/most {
			t.Errorf("crowded %v: %d looks in %d", crowded, looks, 4*maxGap)
		}
		found = true
		if polls(maxGap); polls(4*minGap) != 4 {
			t.Errorf("crowded %v: %d looks in %d, with something each time", crowded, looks, 4*minGap)
		}
	}
}
