package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/wire"
)

// While the peer knows no address of ours, its heartbeats to the new one are
// answered at once, beside another copy of the ASCONF: with the next one that T4
// has sent they would always come too late, if its RTO is no longer than ours. Even
// a SHUTDOWN ACK has to wait for the new address to be confirmed.
func TestMutedAnswersHeartbeat(t *testing.T) {
	cfg := mobileConfig()
	cfg.RTOMin, cfg.RTOMax = 500*time.Millisecond, 500*time.Millisecond
	p := newMobile(t, 957, cfg)
	p.a.must(p.a.assoc.ReplaceLocalAddr(p.a.local[0], extra[0]))
	p.a.assoc.Shutdown(p.now)
	probed := clock.Time(0)
	p.net.drop = func(from *host, pkt []byte) bool {
		if hasChunk(pkt, wire.ChunkHeartbeat) && from == p.z {
			probed = p.now
		}
		if hasChunk(pkt, wire.ChunkHeartbeatAck) && p.now != probed+clock.Time(p.net.delay) {
			t.Errorf("answered after %v", time.Duration(p.now-probed))
		}
		return hasChunk(pkt, wire.ChunkAsconfAck)
	}
	p.a.wantState(ShutdownSent)
	ended := func() bool { return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed }
	if !p.driveUntil(3*time.Second, ended) || p.a.assoc.Err() != nil || p.z.assoc.Err() != nil {
		t.Errorf("A is %v: %v; Z is %v: %v", p.a.assoc.State(), p.a.assoc.Err(), p.z.assoc.State(), p.z.assoc.Err())
	}
}

// An answer that does not fit beside the ASCONF waits; it must not have the ASCONF
// sent without end. Nor do answers put off T4.
func TestMutedAnswersAreBounded(t *testing.T) {
	p := newMobile(t, 958)
	p.net.drop = func(*host, []byte) bool { return true }
	p.a.must(p.a.assoc.ReplaceLocalAddr(p.a.local[0], extra[0]))
	p.a.flush()
	a, sent := p.a.assoc, len(p.a.sent)
	t4 := a.timers.One[timer.T4]
	for _, kind := range []wire.ChunkType{wire.ChunkAsconfAck, wire.ChunkHeartbeatAck} {
		room := a.paths[0].mtu - wire.HeaderLen - a.auth.ChunkLen() - len(a.asc.Chunk()) - wire.ChunkHeaderLen
		for _, x := range []struct{ size, packets int }{{room &^ 3, 1}, {room&^3 + 4, 0}} {
			p.now += clock.Time(time.Millisecond)
			a.ctl.clear()
			a.ctl.begin(MaxPacket)
			a.ctl.reply(0, kind, 0, make([]byte, x.size))
			p.a.flush()
			if n := len(p.a.sent) - sent; n != x.packets {
				t.Fatalf("%v of %d bytes: %d packets, want %d", kind, x.size, n, x.packets)
			}
			if sent = len(p.a.sent); a.timers.One[timer.T4] != t4 {
				t.Errorf("%v put off T4", kind)
			}
		}
	}
}
