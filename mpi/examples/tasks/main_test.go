package main

import (
	"testing"

	"github.com/weftstack/weft/mpi/examples/internal/trial"
)

func TestRun(t *testing.T) {
	const want = "17984 primes below 200000\n"
	if got := trial.Same(t, run); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}
