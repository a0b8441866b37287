package main

import (
	"testing"

	"github.com/weftstack/weft/mpi/examples/internal/trial"
)

func TestRun(t *testing.T) {
	const want = "after 200 steps the mean temperature is 13.178147\n"
	if got := trial.Same(t, run); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}
