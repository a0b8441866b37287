package tx

import "testing"

// RFC 7829, Section 3.2, rule 9: "Acknowledgments for chunks that have been
// transmitted to multiple destinations […] SHOULD NOT clear the error count";
// rule 10: those for chunks sent to one destination only MUST.
func TestAcksOfTwoPathsClearNoErrors(t *testing.T) {
	h := newTxTest(t, withPaths(2))
	h.sendOn(0, 2)
	h.advance(second)
	h.sb.OnTimeout(h.now, 0)
	h.wantRtx(1, 100)
	res := h.sack(100)
	if p := res.Paths[1]; p.Acked == 0 || p.Alive {
		t.Errorf("path 1 after the ack of a chunk sent on both: acked %d, alive %v", p.Acked, p.Alive)
	}
	h.sendOn(1, 1)
	if res = h.sack(100, 102, 102); !res.Paths[1].Alive || res.Paths[0].Alive {
		t.Errorf("path 1 alive %v, path 0 %v; want true, false", res.Paths[1].Alive, res.Paths[0].Alive)
	}
}
