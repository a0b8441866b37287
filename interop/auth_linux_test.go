package interop

import (
	"testing"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// authenticate has both ends authenticate user data (RFC 4895). The secret of
// key 1 is "secret" at our end; both have the same key 2.
func authenticate(o setup, theirSecret string) setup {
	o.opts = append(o.opts, "auth 1", "authchunk 0", "authchunk 64", "key 2 another", "key 1 "+theirSecret)
	o.cfg.Auth = &sctp.AuthConfig{Chunks: []wire.ChunkType{wire.ChunkData, wire.ChunkIData},
		Keys: []sctp.AuthKey{{ID: 1, Secret: []byte("secret")}, {ID: 2, Secret: []byte("another")}}, Active: 1}
	return o
}

// rowAuth sends both ways, before and after each end takes another key.
func rowAuth(t *testing.T, o setup) {
	s := authenticate(o, "secret").open(t)
	if !s.a.Authenticated() {
		t.Fatal("authentication is not in use")
	}
	tr := traffic{count: 100, size: 3000, streams: 3}
	s.send(tr)
	s.peer.await(patience, tr.count)
	s.peerSends(tr)
	s.receive(tr.count)
	if err := s.a.UseAuthKey(2); err != nil {
		t.Fatal(err)
	}
	tr.opts.Stream, tr.peerOpts = 3, "first=3"
	s.send(tr)
	s.peer.await(patience, 2*tr.count)
	s.peer.ok("usekey 2")
	s.peerSends(tr)
	s.receive(tr.count)
	if n := s.wantNote(sctp.NotifyAuthKey); n.Key != 2 {
		t.Errorf("the peer authenticates with key %d, want 2", n.Key)
	}
	s.mu.Lock()
	bare := s.bare
	s.mu.Unlock()
	if bare != [2]int{} {
		t.Errorf("%d chunks of data sent and %d received without authentication", bare[0], bare[1])
	}
	s.wantChunks(wire.ChunkAuth, true)
	s.shutdown()
}

// rowWrongKey has the ends disagree about the key: neither takes data.
func rowWrongKey(t *testing.T, o setup) {
	s := authenticate(o, "secrets").open(t)
	s.peerSends(traffic{count: 3, size: 500})
	s.send(traffic{count: 3, size: 500})
	s.until("the data is not repeated", func() bool {
		sent, got := s.chunks(wire.ChunkAuth)
		return sent > 3 && got > 3
	})
	if n, info, err := s.a.TryRecv(make([]byte, 1000)); err == nil {
		t.Errorf("%d bytes came without the key: %+v", n, info)
	}
	s.peer.do("stat")
	if got := s.peer.counts(s.peer.want("stat")); got.msgs != 0 {
		t.Errorf("the peer got %+v without the key", got)
	}
	s.a.Abort("no common key")
	s.peer.want("end")
}
