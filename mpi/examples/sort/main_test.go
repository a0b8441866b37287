package main

import (
	"testing"

	"github.com/weftstack/weft/mpi/examples/internal/trial"
)

func TestRun(t *testing.T) {
	const want = "100000 numbers from 309535358294400 on, checksum 5ca63f8a1098962e\n"
	if got := trial.Same(t, run); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}
