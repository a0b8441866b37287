package main

import (
	"testing"

	"github.com/weftstack/weft/mpi/examples/internal/trial"
)

func TestRun(t *testing.T) {
	const want = "centre at (0.00, 0.00)\ncentre at (1.00, 0.00)\ncentre at (0.00, 1.00)\ncentre at (1.00, 1.00)\n"
	if got := trial.Same(t, run); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}
