package main

import (
	"testing"

	"github.com/weftstack/weft/mpi/examples/internal/trial"
)

func TestRun(t *testing.T) {
	const want = "pi is about 3.1415926536, off by less than 1e-10: true\n"
	if got := trial.Same(t, run); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}
