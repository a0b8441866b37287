package sctp

import (
	"testing"
	"time"
)

// Waits poll for all their time or not at all, and most do as long as that ends
// one in three.
func TestSpinBudget(t *testing.T) {
	var s spinBudget
	s.init(50 * time.Microsecond)
	// waits makes n waits of which polling would end each in so many, and returns
	// how many polled.
	waits := func(n, each int) (polled int) {
		for i := range n {
			switch d := s.budget(); d {
			case 0:
			case 50_000:
				polled++
				s.adapt(each > 0 && i%each == 0)
			default:
				t.Fatalf("budget of %v", d)
			}
		}
		return polled
	}
	const n = 1600
	for _, tt := range []struct {
		name     string
		each     int
		min, max int
	}{
		{"always useful", 1, n, n},
		{"seldom in vain", 2, n, n},
		{"in vain", 0, 0, n / 10},
		{"in vain, still", 0, 1, n / 10},
		{"useful again", 1, n - spinExplore, n},
	} {
		if got := waits(n, tt.each); got < tt.min || got > tt.max {
			t.Errorf("%s: %d of %d waits poll, want %d to %d", tt.name, got, n, tt.min, tt.max)
		}
	}
}
