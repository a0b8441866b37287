package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

// A congestion mark is echoed until a CWR comes, and cuts the window once (RFC
// 4960, Appendix A).
func TestECN(t *testing.T) {
	p := newPair(t, 92)
	p.connect()
	p.a.send(0, 300_000)
	p.advance(40 * time.Millisecond)
	p.wire = nil // what was on the way is replaced by one marked packet
	p.a.flush()
	before := p.a.assoc.paths[0].cc.Cwnd()
	var pkt *Packet
	p.driveUntil(time.Minute, func() bool {
		for i := range p.wire {
			if p.wire[i].to == p.z && p.wire[i].p.ECN == ECNECT0 {
				pkt = &p.wire[i].p
				return true
			}
		}
		return false
	})
	if pkt == nil {
		t.Fatal("no packet is capable of carrying a mark")
	}
	pkt.ECN = ECNCE
	var ecne, cwr int
	p.net.drop = func(from *host, b []byte) bool {
		if hasChunk(b, wire.ChunkECNE) && from == p.z {
			ecne++
		}
		if hasChunk(b, wire.ChunkCWR) && from == p.a {
			cwr++
		}
		return false
	}
	p.advance(30 * time.Millisecond)
	if ecne == 0 || cwr == 0 {
		t.Fatalf("%d ECNE, %d CWR", ecne, cwr)
	}
	if now := p.a.assoc.paths[0].cc.Ssthresh(); now > before {
		t.Errorf("ssthresh %d after the mark, cwnd was %d", now, before)
	}
	p.drive()
	p.wantDelivered()
	if p.z.assoc.ecn.echo {
		t.Error("the echo goes on after the CWR")
	}
	n := ecne
	p.a.send(0, 10_000)
	p.drive()
	if ecne != n {
		t.Errorf("%d more ECNE", ecne-n)
	}
}

// Without ECN at one end no packet is marked as capable, and marks are ignored.
func TestECNNotNegotiated(t *testing.T) {
	p := newPair(t, 93, &Config{}, &Config{NoECN: true})
	p.connect()
	p.a.send(0, 10_000)
	p.a.flush()
	for i := range p.wire {
		if p.wire[i].p.ECN != ECNNotECT {
			t.Fatal("a packet is marked as capable")
		}
		p.wire[i].p.ECN = ECNCE
	}
	p.drive()
	p.wantDelivered()
	if p.z.assoc.ecn.echo {
		t.Error("a mark is echoed")
	}
}
