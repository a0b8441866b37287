package core

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// batches polls until nothing is left, and checks that nothing follows what Transmit.Last said
// to be the last batch. It returns the packets of each batch.
func batches(t *testing.T, u *pump) (sizes []int, sacks int) {
	t.Helper()
	last := false
	for {
		out, tx, ok := u.a.PollTransmit(u.now, u.buf[:0], 45)
		if !ok {
			return sizes, sacks
		}
		if last {
			t.Errorf("batch %d, of %d packets, follows the last", len(sizes), tx.Segs)
		}
		last = tx.Last
		sizes = append(sizes, tx.Segs)
		for ; len(out) > 0; out = out[min(tx.SegSize, len(out)):] {
			if hasChunk(out[:min(tx.SegSize, len(out))], wire.ChunkSack) {
				sacks++
			}
		}
	}
}

// A SACK waits for the end of a segmented send, which the peer's window does not let leave:
// the SACK goes alone, in another batch.
func TestLastBatchBeforeSackThatWaits(t *testing.T) {
	for _, slowPath := range []bool{false, true} {
		t.Run(fmt.Sprintf("slowPath=%v", slowPath), func(t *testing.T) {
			u := newAsked(t, slowPath)
			u.ask(false)
			u.answer(3, 0)
			if err := u.a.Send(u.now, &tx.Message{Body: make([]byte, 5000), Force: true}); err != nil {
				t.Fatal(err)
			}
			private(u.a.tx.sb, "rwnd").SetInt(int64(2*u.unit + 10)) // two segments fit
			if sizes, sacks := batches(t, u.pump); len(sizes) != 2 || sizes[0] != 2 || sacks != 1 {
				t.Errorf("batches of %v packets with %d SACKs, want 2 and 1 with one", sizes, sacks)
			}
		})
	}
}

// A deferred SACK is processed when nothing else can be sent, and opens the window for what
// waits.
func TestLastBatchBeforeDeferredSack(t *testing.T) {
	l := newDeferredHarness(t, nil)
	l.answer(nil)
	l.wantDeferred(true)
	l.a.paths[0].single = true // one packet in flight, until it is acknowledged
	l.send(l.a)
	l.a.rx.sack.Force() // leaves at once, and alone
	if sizes, sacks := batches(t, l.pump); len(sizes) != 2 || sacks != 1 {
		t.Errorf("batches of %v packets with %d SACKs, want two, and one SACK", sizes, sacks)
	}
}
