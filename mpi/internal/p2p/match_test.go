package p2p

import (
	"math/rand/v2"
	"testing"
)

func TestArrivedBitmap(t *testing.T) {
	x := NewContext(4)
	rng := rand.New(rand.NewPCG(5, 6))
	// Blocks of messages in random order; sequence numbers wrap around.
	x.source(0).next = ^uint32(5000)
	base := x.source(0).next
	for range 20 {
		n := 1 + rng.IntN(2000)
		for _, i := range rng.Perm(n) {
			early, ok := x.arrive(0, base+uint32(i))
			if !ok {
				t.Fatalf("message %d of %d refused", i, n)
			}
			if early != (base+uint32(i) != x.source(0).next-1) {
				t.Fatalf("message %d of %d early %v", i, n, early)
			}
			if early {
				if _, ok := x.arrive(0, base+uint32(i)); ok {
					t.Fatalf("message %d of %d taken twice", i, n)
				}
			} else {
				x.advance(0)
			}
		}
		base += uint32(n)
		if s := x.source(0); s.next != base || s.ahead != 0 {
			t.Fatalf("next %d, %d ahead, want %d and none", s.next, s.ahead, base)
		}
	}
}
