package tcp

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A batch is written in order, wherever system calls end, and its memory holds nothing when it is emptied.
func TestBatch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var b batch
	for range 500 {
		var want []byte
		fresh := func(n int) []byte {
			p := make([]byte, n)
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
			want = append(want, p...)
			return p
		}
		for range 1 + rnd.IntN(6) {
			b.copy(fresh(rnd.IntN(40)))
			switch rnd.IntN(3) {
			case 0:
				b.reference(part{buf: fresh(1 + rnd.IntN(1000))})
			case 1:
				runs := make([][]byte, 1+rnd.IntN(20))
				for i := range runs {
					runs[i] = fresh(1 + rnd.IntN(30))
				}
				b.reference(part{runs: runs})
			}
		}
		var got []byte
		to := make([][]byte, 1+rnd.IntN(10))
		for {
			k := b.next(to)
			if b.empty() != (k == 0) {
				t.Fatalf("empty() = %v before %d runs", b.empty(), k)
			}
			if k == 0 {
				break
			}
			all := bytes.Join(to[:k], nil)
			n := rnd.IntN(len(all) + 1)
			got = append(got, all[:n]...)
			b.written(n)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("wrote %d bytes, want %d, or others", len(got), len(want))
		}
		b = b.emptied()
		for i, p := range b.parts[:cap(b.parts)] {
			if p.buf != nil || p.runs != nil {
				t.Fatalf("part %d is still referenced", i)
			}
		}
	}
}
