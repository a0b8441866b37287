package job

import (
	"net/netip"
	"testing"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp"
)

// heldLink returns a link in the middle of a message of 100 bytes on stream 1, the last
// piece of which was one with More, and the receive that it goes to.
func heldLink(t *testing.T) (*sctpLink, *p2p.Request) {
	t.Helper()
	j, c := newTestJob(t, 2)
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{Loopback}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	e, err := tr.Listen(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Connect(t.Context(), e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	r := p2p.GetRequest(j.Engine)
	c.StartRecv(r, p2p.SlotUser, make([]byte, 100), 1, 5)
	l := &sctpLink{t: &sctpTransport{job: j}, a: a, peer: j.Engine.Peers[1]}
	l.onFragment(&sctp.Piece{Stream: 1, Begin: true, Data: eagerHeader(5, 100), More: true})
	l.onFragment(&sctp.Piece{Stream: 1, Data: make([]byte, 30), More: true})
	if !locked(r) || l.broken {
		t.Fatalf("the buffer is locked: %v, the link broken: %v", locked(r), l.broken)
	}
	return l, r
}

func eagerHeader(tag int32, n uint64) []byte {
	var hdr [envelope.MaxLen]byte
	v := envelope.Header{Kind: envelope.Eager, Source: 1, Context: testCommID, Tag: tag, Length: n}
	return append([]byte{}, v.Encode(&hdr)...)
}

// locked reports whether somebody who wants the buffer of r would have to wait.
func locked(r *p2p.Request) bool {
	if r.Place.TryLock() {
		r.Place.Unlock()
		return false
	}
	return true
}

// The buffer of a receive stays locked from piece to piece, as long as the next one
// comes at once, is of the same message, and makes sense.
func TestBufferIsLockedFromPieceToPiece(t *testing.T) {
	for _, tt := range []struct {
		name         string
		next         sctp.Piece
		held, broken bool
	}{
		{"the next part", sctp.Piece{Stream: 1, Data: make([]byte, 30), More: true}, true, false},
		{"the last for now", sctp.Piece{Stream: 1, Data: make([]byte, 30)}, false, false},
		{"the end", sctp.Piece{Stream: 1, Data: make([]byte, 70), End: true, More: true}, false, false},
		{"another stream", sctp.Piece{Stream: 2, Begin: true, Data: eagerHeader(6, 10), More: true}, false, false},
		{"stream 0", sctp.Piece{Stream: 0, Begin: true, Data: eagerHeader(6, 10), More: true}, false, false},
		{"another message", sctp.Piece{Stream: 1, Begin: true, Data: eagerHeader(6, 10), More: true}, false, true},
		{"the end too early", sctp.Piece{Stream: 1, Data: make([]byte, 30), End: true, More: true}, false, true},
		{"too much", sctp.Piece{Stream: 1, Data: make([]byte, 71), More: true}, false, true},
		{"a stream that is not there", sctp.Piece{Stream: 60000, Data: make([]byte, 1), More: true}, false, true},
		{"unordered", sctp.Piece{Stream: 1, Unordered: true, Data: make([]byte, 1), More: true}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, r := heldLink(t)
			l.onFragment(&tt.next)
			if locked(r) != tt.held || l.broken != tt.broken {
				t.Errorf("locked %v, want %v; broken %v, want %v", locked(r), tt.held, l.broken, tt.broken)
			}
			l.switchTo(nil)
			if locked(r) {
				t.Error("still locked")
			}
		})
	}
}
