package interop

import (
	"testing"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// rowPieces sends a message in pieces, with other messages between them on other
// streams: with interleaving they arrive first, else after it.
func rowPieces(interleaving bool) func(*testing.T, setup) {
	return func(t *testing.T, o setup) {
		o.opts = append(o.opts, "idata 1")
		o.cfg.NoInterleaving, o.cfg.OutStreams = !interleaving, 300
		s := o.open(t)
		msg := make([]byte, 150_000)
		fillMessage(msg, 0)
		w, err := s.a.OpenMessage(s.ctx, sctp.SendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		others := 0
		for n := 1; len(msg) > 0; n = n*3/2 + 1 {
			n = min(n, len(msg))
			if _, err := w.Write(msg[:n]); err != nil {
				t.Fatal(err)
			}
			msg = msg[n:]
			s.send(traffic{count: 1, size: 1000, opts: sctp.SendOptions{Stream: uint16(1 + others)}})
			others++
			if interleaving {
				s.peer.await(patience, others)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := s.peer.await(patience, others+1); got.msgs != int64(others+1) || got.bad != 0 || got.gaps != 0 {
			t.Errorf("peer got %+v, want %d messages", got, others+1)
		}
		kind, not := wire.ChunkIData, wire.ChunkData
		if !interleaving {
			kind, not = not, kind
		}
		s.shutdown()
		// Each Write but the first, which gave a byte, and Close, and each other message.
		if sent, _ := s.chunks(kind); sent < 2*others {
			t.Errorf("%d chunks of type %v sent, want %d or more", sent, kind, 2*others)
		}
		s.wantChunks(not, false)
	}
}
