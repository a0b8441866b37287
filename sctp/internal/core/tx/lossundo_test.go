package tx

import "testing"

// Reports that cannot be about what was sent again count for nothing, nor do
// more reports than there were retransmissions.
func TestUndoNeedsAllDuplicates(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(6)
	u := &h.sb.paths[0].undo
	*u = lossUndo{active: true, mark: h.sb.NextTSN()}
	h.sb.OnTimeout(h.now, 0)
	h.wantRtx(0, 100)
	if u.again != 1 || u.dups != 0 {
		t.Fatalf("%d sent again, %d duplicates", u.again, u.dups)
	}
	h.sackDup(100, []uint32{500})
	if u.dups != 0 {
		t.Error("a duplicate from beyond counted")
	}
	h.wantRtx(0, 101)
	h.sackDup(101, []uint32{100, 100, 100, 101})
	if u.again != 2 || u.dups != 2 {
		t.Errorf("%d sent again, %d duplicates; want 2, 2", u.again, u.dups)
	}
}
