package testenv

import (
	"os"
	"testing"
	"time"
)

// Soak returns how long a test that repeats random rounds goes on: short, unless
// WEFT_SOAK names another duration, such as 1m or 1h. The test compares it with the
// clock on the wall, outside of any bubble of virtual time, and runs one round at
// least.
func Soak(t testing.TB, short time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv("WEFT_SOAK")
	if s == "" {
		return short
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		t.Fatalf("WEFT_SOAK=%q: want a positive duration such as 1m", s)
	}
	return d
}
