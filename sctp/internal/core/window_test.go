package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 9260, Section 6.1, A: a receiver that keeps its window closed for long is
// probed, ever more slowly, and the association lives; when it reads at last,
// everything arrives.
func TestZeroWindow(t *testing.T) {
	for _, noRACK := range []bool{false, true} {
		p := newPair(t, 50, &Config{RecvBuffer: 20_000, NoRACK: noRACK, HBInterval: -1})
		p.connect()
		p.z.reading = false
		for range 100 {
			p.a.send(0, 1000)
		}
		p.advance(10 * time.Second)
		if w := p.a.assoc.tx.sb.PeerWindow(); w != 0 {
			t.Fatalf("the window is %d, not closed", w)
		}
		before := p.a.assoc.Stats()
		p.advance(2 * time.Hour)
		p.a.wantState(Established)
		st := p.a.assoc.Stats()
		sent := int(st.PacketsSent - before.PacketsSent)
		if sent < 20 || sent > 400 { // once a minute at the end
			t.Errorf("NoRACK=%v: %d packets within 2 hours of zero window", noRACK, sent)
		}
		if n := p.a.assoc.errors; n > 1 {
			t.Errorf("%d errors counted while the peer answers", n)
		}
		p.z.reading = true
		p.z.read()
		start := p.now
		p.drive()
		p.wantDelivered()
		// The window update comes at once, so nothing waits for a probe.
		if d := time.Duration(p.now - start); d > 5*time.Second {
			t.Errorf("NoRACK=%v: %v to deliver once the window opened", noRACK, d)
		}
	}
}

// RFC 9260, Section 6.1, A: the first probe comes 1 RTO after the window was
// found closed and everything acknowledged, the next ones after twice as long
// each.
func TestWindowProbeInterval(t *testing.T) {
	p := newPair(t, 61, &Config{NoInterleaving: true, HBInterval: -1})
	p.connect()
	p.a.send(0, 1000)
	p.drive()
	sack := func() {
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendSack(nil, uint32(p.a.assoc.tx.sb.NextTSN()-1), 0, nil, nil)))
	}
	sack()
	for range 10 {
		p.a.send(0, 1000)
	}
	rto := p.a.assoc.paths[0].rto.Value()
	for i := range 4 {
		if got := p.a.outbox(); len(got) > 0 {
			t.Fatalf("probe %d: sent %s at once", i, wire.Describe(got[0]))
		}
		start := p.now
		at := p.a.assoc.NextTimeout()
		if want := rto << i; at-start != want {
			t.Errorf("probe %d after %v, want %v", i, time.Duration(at-start), time.Duration(want))
		}
		p.now = at
		p.a.assoc.HandleTimeout(p.now)
		wantChunks(t, only(t, p.a.outbox()), wire.ChunkData)
		sack() // it was taken, and the window is closed still
	}
	if n := p.a.assoc.Stats().WindowProbes; n != 4 {
		t.Errorf("%d probes counted, want 4", n)
	}
}

// The window update is lost, and the probe finds out.
func TestLostWindowUpdate(t *testing.T) {
	p := newPair(t, 51, &Config{RecvBuffer: 20_000, HBInterval: -1})
	p.connect()
	p.z.reading = false
	for range 100 {
		p.a.send(0, 1000)
	}
	p.advance(10 * time.Second)
	p.z.read()
	p.net.drop = func(from *host, _ []byte) bool { return from == p.z }
	p.advance(100 * time.Millisecond)
	p.net.drop = nil
	p.z.reading = true
	p.drive()
	p.wantDelivered()
	if p.a.assoc.Stats().WindowProbes == 0 {
		t.Error("no window probe was sent")
	}
}

// If the peer stops answering probes the association does end.
func TestZeroWindowOfDeadPeer(t *testing.T) {
	p := newPair(t, 52, &Config{RecvBuffer: 20_000, HBInterval: -1})
	p.connect()
	p.z.reading = false
	for range 100 {
		p.a.send(0, 1000)
	}
	p.advance(10 * time.Second)
	p.net.drop = func(*host, []byte) bool { return true }
	p.advance(12 * time.Hour)
	p.a.wantState(Closed)
	if err := p.a.assoc.Err(); err != ErrUnreachable {
		t.Errorf("ended with %v", err)
	}
}

// TSNs, SSNs and the rest wrap around in the middle of a transfer.
func TestTSNWrapsAround(t *testing.T) {
	for _, noIData := range []bool{false, true} {
		p := newPair(t, 53, &Config{NoInterleaving: noIData})
		p.z.listen()
		p.a.dial(p.z)
		a := p.a.assoc
		a.tsn = 0xffffffff - 20
		a.openSender()
		p.connectNow()
		p.net.loss, p.net.reorder = 50, 100
		for i := range 200 {
			p.a.sendMsg(&tx.Message{SID: uint16(i % 3), Unordered: i%5 == 0}, 1+i*37)
		}
		p.drive()
		p.wantDelivered()
		if n := a.tx.sb.NextTSN(); n > 1000 {
			t.Errorf("TSN %d: it did not wrap around", n)
		}
	}
}

func TestSSNWrapsAround(t *testing.T) {
	p := newPair(t, 54, &Config{NoInterleaving: true})
	p.connect()
	p.net.loss = 5
	for i := range 70_000 {
		p.a.send(0, 1+i%3)
	}
	p.drive()
	p.wantDelivered()
}

// RFC 9260, Section 6.1: a SACK is bundled with data that leaves anyway.
func TestSackIsBundledWithData(t *testing.T) {
	p := newPair(t, 55, &Config{SackDelay: 200 * time.Millisecond})
	p.connect()
	p.a.send(0, 10)
	p.drive() // the first DATA is acknowledged at once
	p.a.send(0, 10)
	p.z.assoc.HandlePacket(p.now, p.z.to(only(t, p.a.outbox())))
	p.a.send(0, 10)
	p.z.send(0, 10)
	wantChunks(t, only(t, p.z.outbox()), wire.ChunkSack, wire.ChunkIData)
}

// Small messages share packets, and packets are full.
func TestBundling(t *testing.T) {
	p := newPair(t, 56, &Config{MTU: 1452, NoPacing: true})
	p.connect()
	for range 1000 {
		p.a.send(0, 100)
	}
	n := 0
	p.net.drop = func(from *host, pkt []byte) bool {
		if from == p.a && hasChunk(pkt, wire.ChunkIData) {
			n++
		}
		return false
	}
	p.drive()
	p.wantDelivered()
	if want := 1000/((1452-12)/120) + 5; n > want { // 20 + 100 bytes per chunk
		t.Errorf("%d packets for 1000 messages of 100 bytes, want at most %d", n, want)
	}
}

// One PollTransmit gives many full packets of one size, for one system call.
func TestPollTransmitBatches(t *testing.T) {
	a := newPair(t, 58, &Config{MTU: 1452, NoPacing: true})
	a.connect()
	a.a.assoc.paths[0].cc = hugeWindow{a.a.assoc.paths[0].cc}
	for _, size := range []int{10 << 20, 1 << 20, 1000, 300} { // large ones, and many small ones of a size
		if size < 10_000 {
			for range 500 {
				a.a.send(0, size)
			}
		} else {
			a.a.send(0, size)
		}
		buf := make([]byte, 0, 65507)
		out, tx, ok := a.a.assoc.PollTransmit(a.now, buf, 44)
		if !ok || tx.Segs != 44 || len(out) > cap(buf) {
			t.Errorf("messages of %d: %d segments of %d", size, tx.Segs, tx.SegSize)
		}
	}
	// A small buffer bounds the batch.
	if out, tx, _ := a.a.assoc.PollTransmit(a.now, make([]byte, 0, 5000), 44); tx.Segs != 3 || len(out) > 5000 {
		t.Errorf("%d segments, %d bytes for a buffer of 5000", tx.Segs, len(out))
	}
}

// hugeWindow takes the congestion window out of the way.
type hugeWindow struct{ cc.Control }

func (hugeWindow) Cwnd() int { return 1 << 30 }

// The packet size is what SetPathMTU says, up to the largest datagram.
func TestPathMTU(t *testing.T) {
	for _, mtu := range []int{pmtu.MinMTU, 1280, 1452, 9000, MaxPacket} {
		p := newPair(t, 58, &Config{MTU: mtu})
		p.connect()
		largest := 0
		p.net.drop = func(_ *host, pkt []byte) bool { largest = max(largest, len(pkt)); return false }
		p.a.send(0, 300_000)
		p.drive()
		p.wantDelivered()
		if largest != clampMTU(mtu) {
			t.Errorf("MTU %d: largest packet %d", mtu, largest)
		}
		// The largest message that goes in one chunk.
		n := p.a.assoc.MaxPayload()
		largest = 0
		p.a.send(0, n)
		pkt := only(t, p.a.outbox())
		wantChunks(t, pkt, wire.ChunkIData)
		if len(pkt) != clampMTU(mtu) {
			t.Errorf("MTU %d: MaxPayload %d makes a packet of %d", mtu, n, len(pkt))
		}
	}
}

// Chunks in flight when the path MTU shrinks are sent again as they are: they
// cannot be cut (RFC 9260, Section 6.9).
func TestPathMTUShrinks(t *testing.T) {
	p := newPair(t, 59, &Config{MTU: 9000})
	p.connect()
	p.a.send(0, 50_000)
	p.a.outbox() // all lost
	if err := p.a.assoc.SetPathMTU(p.z.local[0], 1280); err != nil {
		t.Fatal(err)
	}
	p.drive()
	p.wantDelivered()
}

// RFC 9260, Section 6.1, D, for those who want it.
func TestMaxBurst(t *testing.T) {
	p := newPair(t, 60, &Config{MaxBurst: 4, NoPacing: true})
	p.connect()
	p.a.send(0, 500_000)
	for range 20 {
		p.advance(5 * time.Millisecond)
		if n := len(p.a.outbox()); n > 4+1 {
			t.Fatalf("%d packets in a burst", n)
		}
	}
}
