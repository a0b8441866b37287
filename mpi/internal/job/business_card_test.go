package job

import (
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/cpuset"
)

// TestBusinessCardTellsProcessors encodes where this process may run.
func TestBusinessCardTellsProcessors(t *testing.T) {
	s := cpuset.Allowed()
	c, err := parseBusinessCard(businessCard{CPUs: s}.String())
	if err != nil || !slices.Equal(c.CPUs, s) {
		t.Errorf("%x is told as %x: %v", s, c.CPUs, err)
	}
}
