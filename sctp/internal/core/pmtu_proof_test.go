package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/wire"
)

// ignorePads loses packets with a PAD chunk, as a peer does that discards packets with
// chunks that it does not know, and heartbeats of more than longest bytes.
func (p *pair) ignorePads(longest int) {
	p.net.drop = func(_ *host, pkt []byte) bool {
		return hasChunk(pkt, wire.ChunkPad) || hasChunk(pkt, wire.ChunkHeartbeat) && len(pkt) > longest
	}
}

// A peer that ignores PAD chunks is no path that takes less than the base size: a long
// heartbeat proves that size, and, if the peer ignores that too, acknowledged data does.
func TestPeerThatIgnoresPadsKeepsTheSize(t *testing.T) {
	for _, tc := range []struct {
		name    string
		longest int
		data    bool
		least   int // MTU at any time
		then    int // MTU after a minute
	}{
		// The answer to a longer one than that does not fit the peer's own packets.
		{"long heartbeats, idle", 1 << 16, false, pmtu.BaseMTU, pmtu.BaseMTU},
		{"long heartbeats, data", 1 << 16, true, pmtu.BaseMTU, pmtu.BaseMTU},
		{"short heartbeats, data", 100, true, pmtu.BaseMTU, pmtu.BaseMTU},
		{"short heartbeats, idle", 100, false, pmtu.MinMTU, pmtu.MinMTU},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPair(t, 620, discover(1472))
			p.t = quiet{t}
			p.net.mtu = 1500
			p.ignorePads(tc.longest)
			p.connect()
			for i := range 600 {
				if tc.data {
					p.a.send(0, 10_000)
				}
				p.advance(100 * time.Millisecond)
				if got := p.a.assoc.PathStats(0).MTU; got < tc.least {
					t.Fatalf("MTU %d after %v", got, time.Duration(i)*100*time.Millisecond)
				}
			}
			st := p.a.assoc.PathStats(0)
			if st.MTU != tc.then || st.BlackHoles != 0 {
				t.Errorf("MTU %d after a minute, %d black holes; want %d, none", st.MTU, st.BlackHoles, tc.then)
			}
			p.drive()
			p.wantDelivered()
		})
	}
}

// What is proven can change: a path that takes less than before, even than the base size,
// is noticed by the loss of full packets, with a peer that ignores PAD chunks too.
func TestProvenSizeShrinks(t *testing.T) {
	for _, pads := range []bool{true, false} {
		for _, mtu := range []int{1300, 700} {
			for _, noRACK := range []bool{false, true} {
				t.Run(fmt.Sprintf("pads=%v/mtu=%d/NoRACK=%v", pads, mtu, noRACK), func(t *testing.T) {
					cfg := discover(1472)
					cfg.NoRACK = noRACK
					p := newPair(t, 621, cfg)
					p.t = quiet{t}
					p.net.mtu = 1500
					if !pads {
						p.ignorePads(1 << 16)
					}
					p.connect()
					for range 100 {
						p.a.send(0, 10_000)
						p.advance(100 * time.Millisecond)
					}
					was := p.a.assoc.PathStats(0).MTU
					if want := map[bool]int{true: 1472, false: pmtu.BaseMTU}[pads]; was != want {
						t.Fatalf("MTU %d, want %d", was, want)
					}
					p.net.mtu = mtu
					p.a.send(0, 200_000)
					if !p.driveUntil(time.Minute, p.idle) {
						t.Fatalf("200 kB not delivered in a minute: %+v", p.a.assoc.PathStats(0))
					}
					p.a.send(0, 200_000)
					start := p.now
					if !p.driveUntil(time.Minute, p.idle) {
						t.Fatalf("200 kB more not delivered in a minute: %+v", p.a.assoc.PathStats(0))
					}
					t.Logf("%v: %+v", time.Duration(p.now-start), p.a.assoc.PathStats(0))
					if st := p.a.assoc.PathStats(0); (was > mtu) != (st.BlackHoles > 0) || st.MTU > mtu-28 {
						t.Errorf("MTU %d, %d black holes", st.MTU, st.BlackHoles)
					}
					p.net.mtu = 1500
					p.advance(15 * time.Minute)
					if got := p.a.assoc.PathStats(0).MTU; got != was {
						t.Errorf("MTU %d when the path takes more again", got)
					}
					p.a.flush()
					p.z.read()
					p.wantDelivered()
				})
			}
		}
	}
}

// A path whose base size was never answered for by a probe, but by data, and then shrinks.
func TestBaseProvenByDataShrinks(t *testing.T) {
	p := newPair(t, 622, discover(1472))
	p.t = quiet{t}
	p.net.mtu = 1500
	p.ignorePads(100)
	p.connect()
	for range 100 {
		p.a.send(0, 10_000)
		p.advance(100 * time.Millisecond)
	}
	if m := p.a.assoc.paths[0].plpmtu; m.Proven() != pmtu.BaseMTU {
		t.Fatalf("data of %d bytes is no proof: %+v", pmtu.BaseMTU, m)
	}
	p.net.mtu = 700
	p.a.send(0, 200_000)
	if !p.driveUntil(time.Minute, p.idle) {
		t.Fatalf("200 kB not delivered in a minute: %+v", p.a.assoc.PathStats(0))
	}
	if st := p.a.assoc.PathStats(0); st.MTU != pmtu.MinMTU || st.BlackHoles != 1 {
		t.Errorf("MTU %d, %d black holes; want %d, 1", st.MTU, st.BlackHoles, pmtu.MinMTU)
	}
	p.a.flush()
	p.z.read()
	p.wantDelivered()
}

// A size that was assumed, not found, is given up as well, and looked for from then on.
func TestAssumedSizeIsGivenUp(t *testing.T) {
	for _, tc := range []struct{ assumed, mtu int }{{9000, 1400}, {1472, 1400}, {1472, 600}, {1000, 600}, {MaxPacket, 8192}} {
		for _, noRACK := range []bool{false, true} {
			p := newPair(t, 623, &Config{MTU: tc.assumed, NoRACK: noRACK, RTOInitial: 200 * time.Millisecond, RTOMin: 100 * time.Millisecond})
			p.t = quiet{t}
			p.connect()
			p.net.mtu = tc.mtu
			p.a.send(0, 300_000)
			if !p.driveUntil(time.Minute, p.idle) {
				t.Errorf("%d on a path of %d: not delivered in a minute: %+v", tc.assumed, tc.mtu, p.a.assoc.PathStats(0))
				continue
			}
			p.a.flush()
			p.z.read()
			p.wantDelivered()
			if st := p.a.assoc.PathStats(0); st.BlackHoles == 0 || st.MTU > tc.mtu-28 {
				t.Errorf("%d on a path of %d: MTU %d, %d black holes", tc.assumed, tc.mtu, st.MTU, st.BlackHoles)
			}
			p.net.mtu = 0
			p.advance(15 * time.Minute)
			if got := p.a.assoc.PathStats(0).MTU; got != tc.assumed {
				t.Errorf("%d on a path of %d: MTU %d when the path takes all", tc.assumed, tc.mtu, got)
			}
		}
	}
}

// A path that carries nothing for a while is no black hole for large packets: its size
// stays, whatever is under way meanwhile, and heartbeats about it count no error.
func TestOutageIsNoBlackHole(t *testing.T) {
	for _, found := range []bool{true, false} {
		cfg := discover(1472)
		if !found {
			cfg.Discover, cfg.MTU = false, 1472
		}
		p := newPair(t, 624, cfg)
		p.t = quiet{t}
		p.connect()
		p.advance(time.Second)
		for range 5 {
			p.a.send(0, 100_000)
			p.advance(7 * time.Millisecond)
			p.net.drop = func(*host, []byte) bool { return true }
			p.advance(10 * time.Second)
			st := p.a.assoc.PathStats(0)
			if uint64(p.a.assoc.errors) > st.Timeouts {
				t.Errorf("%d errors after %d timeouts", p.a.assoc.errors, st.Timeouts)
			}
			p.net.drop = nil
			p.drive()
		}
		p.wantDelivered()
		if st := p.a.assoc.PathStats(0); st.MTU != 1472 || st.BlackHoles != 0 {
			t.Errorf("found %v: MTU %d, %d black holes", found, st.MTU, st.BlackHoles)
		}
	}
}

// An ICMP message may say that a path takes less than the base size. It is asked again.
func TestPathTooBigForTheBaseForAWhile(t *testing.T) {
	p := newPair(t, 625, discover(8972))
	p.t = quiet{t}
	p.connect()
	p.advance(time.Second)
	a := p.a.assoc
	p.a.send(0, 100_000)
	p.net.mtu = 1000
	if !a.PacketTooBig(p.now, p.z.local[0], a.peer.tag, 972) || a.PathStats(0).MTU != pmtu.MinMTU {
		t.Fatalf("MTU %d after the message", a.PathStats(0).MTU)
	}
	p.advance(20 * time.Second)
	p.net.mtu = 0
	p.advance(20 * time.Second)
	if got := a.PathStats(0).MTU; got != 8972 {
		t.Errorf("MTU %d when the path takes more again", got)
	}
	p.a.flush()
	p.z.read()
	p.wantDelivered()
}
