package core

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// What is left out of packets is what messages have there, as long as there is
// room for more holes, and the checksum covers it.
func TestIOVecsForLargeParts(t *testing.T) {
	p := newPair(t, 70, &Config{})
	p.connect()
	body := bytes.Repeat([]byte("weft"), 1000)
	if err := p.a.assoc.Send(p.now, &tx.Message{SID: 1, Header: []byte("header"), Body: body}); err != nil {
		t.Fatal(err)
	}
	holes := make([]slab.IOVec, 0, 2)
	out, tx, ok := p.a.assoc.PollTransmitGather(p.now, make([]byte, 0, MaxPacket), 20, &holes, 1000)
	if !ok || tx.Segs < 3 || len(holes) != 2 {
		t.Fatalf("%d packets with %d holes, %v", tx.Segs, len(holes), ok)
	}
	if &holes[0].B[0] != &body[0] {
		t.Error("the first hole is a copy")
	}
	if bytes.Contains(out[:tx.SegSize], []byte("weftweft")) {
		t.Error("the packet has the body, too")
	}
	slab.Fill(out, holes)
	if got := bytes.Count(out, []byte("weft")); got < 995 { // some are cut
		t.Errorf("%d of 1000 words are in the packets", got)
	}
	for i := range tx.Segs {
		pkt := out[i*tx.SegSize : min((i+1)*tx.SegSize, len(out))]
		if !wire.VerifyChecksum(pkt) {
			t.Errorf("packet %d has a wrong checksum", i)
		}
	}
}

// An AUTH chunk covers what follows it: nothing is left out then.
func TestNoIOVecsUnderAuth(t *testing.T) {
	p := newPair(t, 71, &Config{Auth: &auth.Config{Chunks: []wire.ChunkType{wire.ChunkData}}})
	p.connect()
	if err := p.a.assoc.Send(p.now, &tx.Message{Body: make([]byte, 5000)}); err != nil {
		t.Fatal(err)
	}
	holes := make([]slab.IOVec, 0, 9)
	if _, tx, ok := p.a.assoc.PollTransmitGather(p.now, make([]byte, 0, MaxPacket), 20, &holes, 1); !ok || tx.Segs == 0 || len(holes) > 0 {
		t.Errorf("%d packets with %d holes, %v", tx.Segs, len(holes), ok)
	}
}
