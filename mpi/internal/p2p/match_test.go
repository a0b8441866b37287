package p2p

import (
	"math/rand/v2"
	"testing"
)

func TestArrivedBitmap(t *testing.T) {
	x := NewContext(4)
	rng := rand.New(rand.NewPCG(5, 6))
	// Blocks of messages in random order; sequence numbers wrap around.
	x.Source(0).Next = ^uint32(5000)
	base := x.Source(0).Next
	for range 20 {
		n := 1 + rng.IntN(2000)
		for _, i := range rng.Perm(n) {
			early, ok := x.Arrive(0, base+uint32(i))
			if !ok {
				t.Fatalf("message %d of %d refused", i, n)
			}
			if early != (base+uint32(i) != x.Source(0).Next-1) {
				t.Fatalf("message %d of %d early %v", i, n, early)
			}
			if early {
				if _, ok := x.Arrive(0, base+uint32(i)); ok {
					t.Fatalf("message %d of %d taken twice", i, n)
				}
			} else {
				x.Advance(0)
			}
		}
		base += uint32(n)
		if s := x.Source(0); s.Next != base || s.Ahead != 0 {
			t.Fatalf("next %d, %d ahead, want %d and none", s.Next, s.Ahead, base)
		}
	}
}
