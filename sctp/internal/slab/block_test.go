package slab

import "testing"

func TestBlocksAreLargeEnough(t *testing.T) {
	for n := range MaxBlock + 1 {
		b := GetBlock(n)
		if len(b.B) < n || n > 64 && len(b.B) >= 4*n {
			t.Fatalf("%d bytes for %d", len(b.B), n)
		}
		c := GetBlock(n)
		if b == c || &b.B[0] == &c.B[0] {
			t.Fatalf("a block of %d bytes was given out twice", n)
		}
		b.Free()
		c.Free()
	}
}
