package udpio

import (
	"sync"
	"testing"
)

// Datagrams that IP may fragment arrive whole, on IPv6 too, and batches that are
// sent meanwhile neither get lost nor lose their offload.
func TestFragmentsBesideBatches(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, b := listen(t, addr, Options{}), listen(t, addr, Options{})
		gso := a.Info().GSO
		var wg sync.WaitGroup
		const n = 20
		wg.Go(func() {
			for range n {
				if err := a.Write(pattern(3000), &Meta{Remote: b.LocalAddr(), Fragment: true}); err != nil {
					t.Error("fragments:", err)
				}
			}
		})
		wg.Go(func() {
			for range n {
				if err := a.Write(pattern(14000), &Meta{Remote: b.LocalAddr(), SegSize: 1400}); err != nil {
					t.Error("batch:", err)
				}
			}
		})
		wg.Wait()
		got, _ := b.datagrams(11 * n)
		large := 0
		for _, d := range got {
			if len(d) == 3000 {
				large++
			}
		}
		if large != n {
			t.Errorf("%s: %d datagrams of 3000 bytes arrived, want %d", addr, large, n)
		}
		if a.Info().GSO != gso {
			t.Errorf("%s: the socket has lost its offload", addr)
		}
	}
}
