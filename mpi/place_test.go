package mpi

import (
	"errors"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/sites"
)

// A process that another launcher than weft run has spawned does not take a place that its parents do not know.
func TestSpawnedProcessHasNoPlaceByFile(t *testing.T) {
	t.Setenv(sites.EnvFile, "no-such-file")
	var o options
	if err := o.ReadPlace(0, "kvs_1", true); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "only weft run -sites spawns others") {
		t.Errorf("spawned: %v", err)
	}
	if err := o.ReadPlace(0, "kvs_1", false); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "no-such-file") {
		t.Errorf("of the first processes: %v", err)
	}
	if o.SpawnsNone == nil {
		t.Error("the first processes may spawn others")
	}
	o = options{}
	if err := o.ReadPlace(0, "", true); err != nil {
		t.Errorf("without a launcher: %v", err)
	}
	if o.SpawnsNone != nil {
		t.Errorf("without a launcher: %v", o.SpawnsNone)
	}
}
