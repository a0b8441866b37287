package environment

import (
	"os"
	"runtime"
	"testing"
)

func TestProcessors(t *testing.T) {
	if n := runtime.GOMAXPROCS(0); n < minProcessors && os.Getenv("GOMAXPROCS") == "" {
		t.Errorf("GOMAXPROCS is %d after MPI_Init, want at least %d", n, minProcessors)
	}
}
