package dynamic

import (
	"errors"
	"fmt"
	"testing"
)

// TestDeathsAreBounded reports more failures in other jobs than are remembered.
func TestDeathsAreBounded(t *testing.T) {
	var s Spawned
	for i := range maxDeaths + 10 {
		s.Died(fmt.Sprint("job ", i), errors.New("killed"))
	}
	if len(s.deaths) != maxDeaths || s.deaths[fmt.Sprint("job ", maxDeaths-1)] == nil || s.deaths[fmt.Sprint("job ", maxDeaths)] != nil {
		t.Errorf("%d deaths are remembered, want the first %d", len(s.deaths), maxDeaths)
	}
}
