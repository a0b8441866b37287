package sctp_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestKeepReceived: what the user of upcalls says that it keeps closes the window of
// the peer, and opens it when it is given back. What fills a gap is taken meanwhile.
func TestKeepReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const buffer = 64 << 10
		var got, kept atomic.Int64
		var b atomic.Pointer[sctp.Association]
		up := &sctp.Config{RecvBuffer: buffer, OnPiece: func(a *sctp.Association, p *sctp.Piece) {
			b.Store(a)
			got.Add(1)
			kept.Add(1000)
			a.KeepReceived(1000)
		}}
		link := sctptest.Link{Delay: time.Millisecond}
		p := newPair(t, 1, link, nil, up)
		lossy := link
		lost := 0
		lossy.Filter = func(b []byte) bool {
			if len(b) > 900 {
				lost++
			}
			return lost != 1 || len(b) <= 900
		}
		p.net.SetLink("10.0.0.1", "10.0.0.2", lossy) // the first message comes later
		send := func() (n int64) {
			for p.a.TrySend(pattern(1000), sctp.SendOptions{Unordered: true}) == nil && n < 1000 {
				n++
			}
			time.Sleep(time.Minute)
			return n
		}
		sent := send()
		if n := got.Load(); n < buffer/1000 || n > buffer/1000+20 || sent <= n {
			t.Fatalf("%d of %d messages came, want %d to %d", n, sent, buffer/1000, buffer/1000+20)
		}
		if p.net.Total().Filtered != 1 {
			t.Error("nothing was lost")
		}
		for got.Load() < sent {
			before := got.Load()
			b.Load().KeepReceived(int(-kept.Swap(0)))
			time.Sleep(time.Minute)
			if got.Load() == before {
				t.Fatalf("the window stays closed after %d of %d messages", before, sent)
			}
		}
	})
}
