package tx

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// The numbers of retransmission copies wrap around.
func TestRtxCopyNumbersWrap(t *testing.T) {
	var q Queue
	q.Init(1<<20, 1, SchedFCFS)
	var s Scoreboard
	s.Init(&q, ScoreboardConfig{TSN: 100, RWND: 1 << 20, Paths: 1, RACK: true})
	x := &s.rtxCopies
	type held struct {
		ref uint32
		b   byte
	}
	var refs []held
	for i := range 200_000 {
		mem := []byte{0, byte(i)}
		x.begin(mem, nil)
		refs = append(refs, held{x.ref(1), byte(i)})
		x.open = false
		x.last().hi = seq.TSN(100 + i + 1)
		if i%7 == 0 {
			x.begin(mem, nil)
			s.DropRetained()
		}
		if n := i % 300; n == 299 { // all but the last few
			s.base = seq.TSN(100 + i - 3)
			s.releaseRtxCopies(false)
			refs = refs[len(refs)-4:]
			if len(x.list)-x.head != 4 {
				t.Fatalf("%d retransmission copies are left, want 4", len(x.list)-x.head)
			}
		}
		for _, h := range refs[max(len(refs)-5, 0):] {
			if b := x.bytes(h.ref, 1); b[0] != h.b {
				t.Fatalf("copy %d: byte %d, want %d", i, b[0], h.b)
			}
		}
	}
	if cap(x.list) > 1000 {
		t.Errorf("the list has grown to %d", cap(x.list))
	}
}
