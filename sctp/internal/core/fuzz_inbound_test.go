package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

// FuzzInbound feeds whole packets, with the checksum and tag put right, to an
// association in any state and to a listener: nothing may panic, and no packet
// may make them send more than a bounded reply.
func FuzzInbound(f *testing.F) {
	p := newPair(f, 1)
	p.net.drop = func(_ *host, pkt []byte) bool { f.Add(byte(3), pkt[wire.HeaderLen:]); return false }
	p.connect()
	p.a.send(0, 5000)
	p.z.send(0, 100)
	p.drive()
	p.a.assoc.Shutdown(p.now)
	p.advance(time.Minute)
	for _, c := range [][]byte{wire.AppendForwardTSN(nil, 5, []wire.Skip{{SID: 1, SSN: 2}}),
		wire.AppendIForwardTSN(nil, 5, []wire.ISkip{{SID: 1, MID: 2}}), wire.AppendECNE(nil, wire.ECNE{TSN: 1}),
		wire.AppendOpError(nil, wire.OpError{Causes: wire.AppendInvalidStream(nil, 3)}), wire.AppendAbort(nil, wire.Abort{}),
		wire.AppendSack(nil, 3, 4, []wire.GapBlock{{Start: 2, End: 3}}, []uint32{9})} {
		f.Add(byte(3), c)
		f.Add(byte(16+3), c)
	}
	f.Fuzz(func(t *testing.T, state byte, chunks []byte) {
		if len(chunks) > 4000 {
			return
		}
		p := newPair(quiet{t}, 1, &Config{NoInterleaving: state&8 != 0})
		switch state % 8 {
		case 0:
			p.a.dial(p.z)
		case 1:
			p.z.listen()
			p.a.dial(p.z)
			p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == CookieEchoed })
		case 2, 3:
			p.connect()
			p.a.send(0, 3000)
			p.a.flush()
		case 4:
			p.inState(ShutdownPending)
		case 5:
			p.inState(ShutdownSent)
		case 6:
			p.inState(ShutdownReceived)
		case 7:
			p.inState(ShutdownAckSent)
		}
		p.a.outbox()
		tag := p.a.assoc.Tag()
		if len(chunks) > 0 && wire.ChunkType(chunks[0]) == wire.ChunkInit {
			tag = 0
		}
		pkt := p.a.packet(tag, chunks)
		local, post := pkt.Local.Addr(), &PostedBuffer{Stream: AnyStream, Dst: make([]byte, 100)}
		if state&16 == 0 || !p.a.assoc.HandleSmall(p.now, &SmallPacket{Data: pkt.Data, Local: &local, Remote: &pkt.Remote}, post) {
			p.a.assoc.HandlePacket(p.now, pkt)
			p.a.assoc.EndBatch(p.now)
		}
		p.a.read()
		n := 0
		for _, b := range p.a.outbox() {
			n += len(b)
		}
		if n > 40_000 {
			t.Errorf("%d bytes sent in reply to %d", n, len(pkt.Data))
		}
		p.wire = nil
		p.advance(time.Minute)

		p.z.listen()
		if r := p.z.listener.HandlePacket(p.now, p.z.packet(tag, chunks), nil); len(r.Reply) > 5000 {
			t.Errorf("the listener replied with %d bytes", len(r.Reply))
		}
	})
}
