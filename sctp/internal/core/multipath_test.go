package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/sackgen"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

func multipathConfig() *Config {
	c := fastConfig()
	c.Multipath = true
	return c
}

// New data takes the path with the shortest round trip that has room, then the
// next, all at once.
func TestDataSpreadsOverPaths(t *testing.T) {
	p := newMultihomed(t, 700, multipathConfig())
	p.connect()
	p.confirmAll()
	a := p.a.assoc
	a.paths[0].rto.Sample(clock.Time(30 * time.Millisecond))
	if !a.tx.spread() || a.tx.newPath(p.now, 0) != 1 {
		t.Fatalf("new data takes path %d, want the one with the shorter round trip", a.tx.newPath(p.now, 0))
	}
	p.a.send(0, 100_000)
	p.a.flush()
	for i := range a.paths {
		if f := a.tx.sb.Flight(i); f < a.paths[i].cc.Cwnd() {
			t.Errorf("path %d has %d bytes in flight and a window of %d", i, f, a.paths[i].cc.Cwnd())
		}
	}
	p.drive()
	p.wantDelivered()
	for i := range a.paths {
		if st := a.PathStats(i); st.BytesSent < 20_000 {
			t.Errorf("path %d carried %d bytes", i, st.BytesSent)
		}
	}
}

// Paths that are potentially failed carry nothing while others are active, and
// one of them does if none is.
func TestSpreadAvoidsFailedPaths(t *testing.T) {
	p := newMultihomed(t, 701, multipathConfig())
	p.connect()
	p.confirmAll()
	a := p.a.assoc
	p.net.cut[p.z.local[0]] = true
	p.a.send(0, 200_000)
	p.driveUntil(time.Minute, func() bool { return a.paths[0].pf })
	n := a.PathStats(0).BytesSent
	p.drive()
	p.wantDelivered()
	if got := a.PathStats(0).BytesSent; got != n {
		t.Errorf("a potentially failed path carried %d bytes", got-n)
	}
	p.net.cut[p.z.local[1]] = true
	p.a.send(0, 5000)
	p.advance(3 * time.Second)
	clear(p.net.cut)
	p.drive()
	p.wantDelivered()
}

// Retransmissions take the path with the largest slow start threshold
// (RTX-SSTHRESH), of those with room.
func TestRepairsTakeTheBestPath(t *testing.T) {
	p := newMultihomed(t, 702, multipathConfig())
	p.connect()
	p.confirmAll()
	a := p.a.assoc
	a.paths[1].cc.OnTimeout(p.now)
	if got := a.tx.repairPath(p.now, 1); got != 0 {
		t.Errorf("repairs take path %d, want 0: its ssthresh is larger", got)
	}
	a.paths[0].cc.OnTimeout(p.now)
	a.paths[0].cc.OnTimeout(p.now)
	a.paths[1].cc.Reset()
	if got := a.tx.repairPath(p.now, 0); got != 1 {
		t.Errorf("repairs take path %d, want 1", got)
	}
	a.paths[1].pf = true
	if got := a.tx.repairPath(p.now, 0); got != 0 {
		t.Errorf("repairs take path %d, want the one that is active", got)
	}
}

// A slow path gets no data that could keep the peer's buffer full; if it has
// happened, the chunk that everything waits for goes by the fast path, too.
func TestSlowPathIsKeptFromBlocking(t *testing.T) {
	cfg := multipathConfig()
	cfg.RecvBuffer = 15_000
	p := newMultihomed(t, 703, cfg)
	p.net.slow = map[int]time.Duration{1: 500 * time.Millisecond}
	p.connect()
	p.confirmAll()
	a := p.a.assoc
	a.tx.sb.SetPeerWindow(4 << 20)
	if a.tx.wouldBlock(1) || a.tx.wouldBlock(0) {
		t.Error("with an empty buffer of 4 MB a path is held back")
	}
	a.tx.sb.SetPeerWindow(50_000)
	if !a.tx.wouldBlock(1) || a.tx.wouldBlock(0) {
		t.Errorf("with a window of 50 kB: slow path held back %v, fast one %v; want true, false", a.tx.wouldBlock(1), a.tx.wouldBlock(0))
	}
	// While the fast path is away the slow one gets data.
	a.tx.sb.SetPeerWindow(15_000)
	a.paths[0].pf = true
	p.a.send(0, 100_000)
	p.a.flush()
	if a.tx.sb.Flight(1) == 0 {
		t.Fatal("nothing in flight on the slow path")
	}
	a.paths[0].pf = false
	start := p.now
	if !p.driveUntil(time.Second, func() bool { return a.tx.sb.Stats().Retransmits > 0 }) {
		t.Fatal("the chunk that blocks was not sent again")
	}
	if d := time.Duration(p.now - start); d > 300*time.Millisecond {
		t.Errorf("sent again after %v", d)
	}
	if a.PathStats(1).Errors != 0 || a.tx.sb.Stats().FastRetransmits != 0 {
		t.Errorf("that counted as a loss")
	}
	p.drive()
	p.wantDelivered()
}

// The receiver delays SACKs although paths mix up the order of TSNs, and tells
// for how many packets each is (DAC); only a gap on one path has an immediate SACK.
func TestMixedPathsDelaySacks(t *testing.T) {
	var s sackgen.Generator
	s.Init(0, 0)
	s.SetMultipath(true)
	packet := func(at clock.Time, path int, gaps bool) {
		s.Data(seq.New, false)
		s.EndPacket(at, path, gaps)
	}
	packet(sec, 0, false)
	s.Sent()
	packet(sec+msec, 1, true)
	if s.Due(sec + msec) {
		t.Error("a gap between two paths has an immediate SACK")
	}
	packet(sec+2*msec, 0, true)
	if !s.Due(sec+2*msec) || s.DataPackets() != 2 {
		t.Errorf("SACK due %v after %d packets, want after the second", s.Due(sec+2*msec), s.DataPackets())
	}
	b := wire.AppendSack(nil, 1, 1, nil, nil)
	setSackPackets(b, s.DataPackets())
	for _, tc := range [][2]int{{2, 2}, {100, 3}} {
		setSackPackets(b, tc[0])
		it := wire.NewChunks(b)
		it.Next()
		if n := sackPackets(it.Chunk()); int(n) != tc[1] {
			t.Errorf("the SACK for %d packets tells %d, want %d", tc[0], n, tc[1])
		}
	}
	s.Sent()
	packet(3*sec, 0, true) // the other path is silent by now
	if !s.Due(3 * sec) {
		t.Error("a gap on one path alone is not urgent")
	}
}

// Whatever the network does to both paths, nothing is lost, repeated or
// reordered within a stream.
func TestMultipathLossy(t *testing.T) {
	for seed := range 60 {
		cfg := lossyConfig(seed)
		cfg.Multipath = true
		cfg.Discover = seed%4 == 0
		p := newMultihomed(t, uint64(seed), cfg)
		p.net.loss, p.net.reorder, p.net.dup = 80, 100, 50
		p.net.slow = map[int]time.Duration{1: time.Duration(seed%5) * 20 * time.Millisecond}
		p.t = quiet{t}
		p.sendWhilePathsDie(func(h *host) {
			h.sendMsg(&tx.Message{SID: uint16(p.rng.IntN(4)), Unordered: p.rng.IntN(4) == 0}, 1+p.rng.IntN(20000))
		})
	}
}

// A congestion mark cuts the window of the path that carried the chunk.
func TestCongestionMarkIsForItsPath(t *testing.T) {
	p := newMultihomed(t, 704, multipathConfig())
	p.connect()
	p.confirmAll()
	a := p.a.assoc
	p.a.send(0, 200_000)
	p.a.flush()
	tsn, ok := a.tx.sb.Earliest(1)
	if !ok {
		t.Fatal("nothing on path 1")
	}
	a.HandlePacket(p.now, p.a.packet(a.Tag(), wire.AppendECNE(nil, wire.ECNE{TSN: uint32(tsn)})))
	if x, y := a.PathStats(0), a.PathStats(1); x.CongestionMarks != 0 || y.CongestionMarks != 1 || y.SSThresh >= x.SSThresh {
		t.Errorf("marks on paths 0 and 1: %d, %d; ssthresh %d, %d", x.CongestionMarks, y.CongestionMarks, x.SSThresh, y.SSThresh)
	}
}
