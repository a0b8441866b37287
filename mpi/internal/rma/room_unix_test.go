//go:build unix

package rma

import (
	"math"
	"testing"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A window for which there is no memory is refused before the Go runtime would end the process.
func TestRoom(t *testing.T) {
	for n, want := range map[int]bool{0: true, 1 << 20: true, 2 * leastTested: true, math.MaxInt - 1<<20: false} {
		if got := Room(n); got != want {
			t.Errorf("room for %d bytes: %v, want %v", n, got, want)
		}
	}
	if c := mpierr.ClassOf(NoMemory(1)); c != mpierr.ClassNoMem {
		t.Errorf("class %v, want %v", c, mpierr.ClassNoMem)
	}
}
