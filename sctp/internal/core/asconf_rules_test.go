package core

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 5061, Section 3: sequence numbers go on with 0 behind 2^32 - 1, at both
// ends.
func TestAsconfSequenceWraps(t *testing.T) {
	p := newMobile(t, 562)
	first := uint32(0xfffffffe)
	private(&p.a.assoc.asc, "nextSeq").SetUint(uint64(first))
	p.z.assoc.asconfIn.Open(first)
	seen := map[uint32]bool{}
	p.net.drop = func(from *host, pkt []byte) bool {
		for it := wire.NewChunks(pkt[wire.HeaderLen:]); it.Next(); {
			if x, err := wire.ParseAsconf(it.Chunk()); err == nil {
				seen[x.Seq] = true
			}
		}
		return false
	}
	for i := range extra {
		p.a.wantDone(p.a.must(p.a.assoc.AddLocalAddr(extra[i])), nil)
	}
	p.a.wantDone(p.a.must(p.a.assoc.RemoveLocalAddr(extra[0])), nil)
	for i := range uint32(4) {
		if !seen[first+i] {
			t.Errorf("no ASCONF %d among %v", first+i, seen)
		}
	}
	p.z.wantRemotes(append(slices.Clone(p.a.local), extra[1], extra[2])...)
}

// RFC 5061, Section 5.1.1, C4: an ASCONF that was not sent when the association
// came to SHUTDOWN-ACK-SENT is not sent any more, and neither is an ASCONF-ACK.
func TestNoAsconfBesideShutdownAck(t *testing.T) {
	p := newMobile(t, 563)
	a := p.a.assoc
	id := p.a.must(a.AddLocalAddr(extra[0]))
	seq := a.asconfIn.Seq() + 1
	chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: seq, Addr: p.z.local[0].Addr(), Params: request(addIP, 1, "10.9.0.1")})
	p.a.deliver(p.a.packet(a.Tag(), authed(&p.z.assoc.auth, chunk)))
	p.a.deliver(p.a.packet(a.Tag(), wire.AppendShutdown(nil, wire.Shutdown{CumTSN: uint32(a.tx.sb.CumTSN())})))
	p.a.wantState(ShutdownAckSent)
	for _, pkt := range p.a.outbox() {
		if hasChunk(pkt, wire.ChunkAsconf) || hasChunk(pkt, wire.ChunkAsconfAck) {
			t.Errorf("sent %s", wire.Describe(pkt))
		}
	}
	p.a.deliver(p.a.packet(a.Tag(), wire.AppendShutdownComplete(nil, wire.ShutdownComplete{})))
	p.a.wantDone(id, ErrClosed)
}

// A request is not carried out if there is no room to tell that it succeeded,
// behind one that failed: the peer would take it for failed (RFC 5061, Section
// 5.1, A7).
func TestAsconfAnswerIsFull(t *testing.T) {
	cfg := mobileConfig()
	cfg.MTU = pmtu.MinMTU
	told, quiet := 0, 0
	for size := 100; size < 140; size += 4 {
		p := newMobile(t, 564, cfg)
		unknown := wire.AppendParam(nil, 0xc0ff, bytes.Repeat([]byte{0, 0, 0, 9}, size/4))
		ask := [][]byte{unknown, unknown, unknown, request(addIP, 7, "10.9.0.1")}
		seq := p.z.assoc.asconfIn.Seq() + 1
		got := responses(t, seq, p.z.askAsconf(seq, p.a.local[0], p.a.local[0].Addr(), ask...))
		success := slices.Contains(got, [2]uint32{7, 0})
		if n := p.z.assoc.NumPaths(); success != (n == 2) {
			t.Errorf("size %d: %d paths, responses %v", size, n, got)
		}
		if len(got) == 0 || got[0] != [2]uint32{9, codeUnknown} {
			t.Errorf("size %d: responses %v", size, got)
		}
		if success {
			told++
		} else {
			quiet++
		}
	}
	if told == 0 || quiet == 0 {
		t.Errorf("the answer was never full, or always: %d and %d", quiet, told)
	}
}

// RFC 5061, Section 5.3, F14, for a user: what is on its way to a removed address
// still arrives, for a while.
func TestRemovedAddressTakesLatePackets(t *testing.T) {
	p := newMultihomed(t, 565, mobileConfig())
	p.connect()
	p.advance(3 * time.Second)
	a, gone := p.a.assoc, p.a.local[1]
	p.a.wantDone(p.a.must(a.RemoveLocalAddr(gone)), nil)
	arrives := func() DropReason {
		pkt := p.a.packet(a.Tag(), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("1234")}))
		pkt.Local = gone
		return a.HandlePacket(p.now, pkt)
	}
	if d := arrives(); d != DropNone {
		t.Errorf("dropped at once: %v", d)
	}
	p.advance(2*time.Duration(a.paths[0].rto.Value()) + time.Second)
	if d := arrives(); d != DropAddr {
		t.Errorf("two RTOs later: %v, want %v", d, DropAddr)
	}
	// However many are removed, few are remembered.
	for i := range 3 * address.MaxLate {
		addr := extra[i%len(extra)]
		p.a.wantDone(p.a.must(a.AddLocalAddr(addr)), nil)
		p.a.wantDone(p.a.must(a.RemoveLocalAddr(addr)), nil)
	}
	if n := private(&a.local, "late").Len(); n != address.MaxLate {
		t.Errorf("%d late addresses, want %d", n, address.MaxLate)
	}
	p.a.send(0, 20_000)
	p.z.send(0, 20_000)
	p.drive()
	p.wantDelivered()
}
