package core

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// discover is a configuration that finds packet sizes out, up to limit.
func discover(limit int) *Config {
	return &Config{Discover: true, MTU: pmtu.BaseMTU, MaxMTU: limit, RTOInitial: 200 * time.Millisecond, RTOMin: 100 * time.Millisecond}
}

// probes returns the sizes of the probes that h has sent, and forgets them.
func (p *pair) watchProbes(h *host) *[]int {
	sizes := new([]int)
	p.net.sniff = func(from *host, pkt []byte) {
		if from == h && hasChunk(pkt, wire.ChunkPad) {
			*sizes = append(*sizes, len(pkt))
		}
	}
	return sizes
}

// RFC 8899, Section 5.3: the search begins when the association does, and if the
// path takes what the interface takes it is over after one round trip.
func TestMTUIsFoundInOneRoundTrip(t *testing.T) {
	for _, tc := range []struct {
		name        string
		mtu, limit  int
		want, probe int
	}{
		{"ethernet", 1500, 1472, 1472, 1},
		{"jumbo", 9000, 8972, 8972, 1},
		{"loopback", 65535, MaxPacket, MaxPacket, 1},
		{"below base", 800, 772, 772, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := discover(tc.limit)
			if tc.limit < pmtu.BaseMTU {
				cfg.MTU = tc.limit
			}
			p := newPair(t, 600, cfg)
			p.net.mtu = tc.mtu
			sizes := p.watchProbes(p.a)
			p.connect()
			small := p.a.assoc.MaxPayload()
			p.advance(2*p.net.delay + time.Millisecond)
			if st := p.a.assoc.PathStats(0); st.MTU != tc.want || int(st.MTUProbes) != tc.probe {
				t.Errorf("MTU %d after %d probes %v, want %d after %d", st.MTU, st.MTUProbes, *sizes, tc.want, tc.probe)
			}
			if got := p.a.assoc.MaxPayload(); got != min(tc.want, 1<<16)-wire.HeaderLen-wire.IDataHeaderLen || tc.want > pmtu.BaseMTU && got <= small {
				t.Errorf("MaxPayload %d, was %d", got, small)
			}
			if tc.want > pmtu.BaseMTU {
				if e := p.a.wantEvent(EventPathMTU); e.Addr != p.z.local[0] {
					t.Errorf("MTU of %v", e.Addr)
				}
			}
			// Nothing more is probed: there is nothing to raise the size to.
			n := p.a.assoc.PathStats(0).MTUProbes
			p.advance(time.Hour)
			if got := p.a.assoc.PathStats(0).MTUProbes; got != n {
				t.Errorf("%d more probes within an hour", got-n)
			}
		})
	}
}

// RFC 8899, Section 5.3: where the path takes less than the interface, probes
// find out how much, to within pmtu.MinGain; their loss neither counts against the
// path nor changes the congestion window (Section 3, items 4 and 7), and data
// flows meanwhile.
func TestMTUSearch(t *testing.T) {
	for _, mtu := range []int{1280, 1300, 1420, 1492, 1500, 2000, 5000, 9000, 40000} {
		p := newPair(t, uint64(mtu), discover(MaxPacket))
		p.net.mtu = mtu
		p.connect()
		p.t = quiet{t}
		start := p.now
		for range 200 {
			p.a.send(0, 20_000)
			p.advance(time.Second)
		}
		st := p.a.assoc.PathStats(0)
		if st.MTU > mtu-28 || st.MTU <= mtu-28-pmtu.MinGain {
			t.Errorf("path of %d: MTU %d, want within %d below %d", mtu, st.MTU, pmtu.MinGain, mtu-28)
		}
		if st.Errors != 0 || st.Timeouts != 0 || st.BlackHoles != 0 || p.a.assoc.Stats().FastRetransmits != 0 {
			t.Errorf("path of %d: probes cost %+v, %+v", mtu, st, p.a.assoc.Stats())
		}
		if m := p.a.assoc.paths[0].plpmtu; m.State() != pmtu.SearchComplete {
			t.Errorf("path of %d: the search goes on after %v: %+v", mtu, time.Duration(p.now-start), m)
		}
		p.wantDelivered()
	}
}

// Section 5.1.2: "The default value of MAX_PROBES is 3", after which a size has
// failed; Section 5.1.1: the search is resumed after 600 seconds.
func TestProbeCountAndRaise(t *testing.T) {
	p := newPair(t, 601, discover(1472))
	p.net.mtu = 1400
	sizes := p.watchProbes(p.a)
	p.connect()
	p.advance(20 * time.Second)
	// The lost tries are not seen by the sniffer; count the sizes that arrived.
	if st := p.a.assoc.PathStats(0); st.MTU != 1372 || p.a.assoc.paths[0].plpmtu.State() != pmtu.SearchComplete {
		t.Fatalf("MTU %d, %+v; probes %v", st.MTU, p.a.assoc.paths[0].plpmtu, *sizes)
	}
	fails := map[int]int{}
	for _, n := range p.a.lostSizes {
		fails[n]++
	}
	for n, k := range fails {
		if n != 1472 && k != pmtu.MaxProbes {
			t.Errorf("%d probes of %d bytes, want MAX_PROBES", k, n)
		}
	}
	p.net.mtu = 1500
	p.advance(500 * time.Second)
	if got := p.a.assoc.PathStats(0).MTU; got != 1372 {
		t.Fatalf("MTU %d before PMTU_RAISE_TIMER", got)
	}
	p.advance(120 * time.Second)
	if got := p.a.assoc.PathStats(0).MTU; got != 1472 {
		t.Errorf("MTU %d after PMTU_RAISE_TIMER, want 1472", got)
	}
}

// Section 4.3: when large packets stop to arrive the size falls back to the base.
// What is outstanding cannot be cut again, so IP fragments it (RFC 9260, Section
// 6.9); the search then finds the new size.
func TestBlackHole(t *testing.T) {
	for _, noRACK := range []bool{false, true} {
		for _, small := range []bool{false, true} {
			cfg := discover(8972)
			cfg.NoRACK = noRACK
			p := newPair(t, 602, cfg)
			p.net.mtu = 9000
			p.connect()
			p.advance(time.Second)
			if got := p.a.assoc.PathStats(0).MTU; got != 8972 {
				t.Fatalf("MTU %d", got)
			}
			p.net.mtu = 1400
			start := p.now
			for range 40 {
				if small {
					for range 300 { // no chunk is large, packets are
						p.a.send(0, 100)
					}
				} else {
					p.a.send(0, 30_000)
				}
			}
			p.driveUntil(time.Minute, func() bool { return p.a.assoc.PathStats(0).BlackHoles > 0 })
			if d := time.Duration(p.now - start); d > 2*time.Second {
				t.Errorf("NoRACK=%v small=%v: noticed after %v", noRACK, small, d)
			}
			if got := p.a.assoc.PathStats(0).MTU; got != pmtu.BaseMTU {
				t.Errorf("MTU %d in the black hole, want the base", got)
			}
			p.drive()
			p.wantDelivered()
			if d := time.Duration(p.now - start); d > 10*time.Second {
				t.Errorf("NoRACK=%v small=%v: delivered after %v", noRACK, small, d)
			}
			p.advance(time.Minute)
			if st := p.a.assoc.PathStats(0); st.MTU != 1372 || st.BlackHoles != 1 {
				t.Errorf("MTU %d, %d black holes; want 1372, 1", st.MTU, st.BlackHoles)
			}
			p.a.wantState(Established)
		}
	}
}

// A steady flow of small packets does not hide that large ones are lost.
func TestBlackHoleBesideSmallPackets(t *testing.T) {
	p := newPair(t, 603, discover(1472))
	p.net.mtu = 1500
	p.connect()
	p.advance(time.Second)
	p.net.mtu = 1300
	p.a.sendMsg(&tx.Message{SID: 1}, 5000)
	start := p.now
	for i := 0; p.a.assoc.PathStats(0).BlackHoles == 0; i++ {
		p.a.send(0, 20)
		p.advance(5 * time.Millisecond)
		if i > 1000 {
			t.Fatal("not noticed in five seconds")
		}
	}
	t.Logf("noticed after %v", time.Duration(p.now-start))
	p.drive()
	p.wantDelivered()
}

// Loss at random is not taken for a black hole often, and costs little then.
func TestLossIsNoBlackHole(t *testing.T) {
	holes := uint64(0)
	for seed := range 20 {
		p := newPair(t, uint64(seed), discover(1472))
		p.t = quiet{t}
		p.net.loss = 50
		p.connect()
		for range 20 {
			p.a.send(0, 100_000)
			p.drive()
		}
		p.wantDelivered()
		holes += p.a.assoc.PathStats(0).BlackHoles
	}
	if holes > 2 {
		t.Errorf("%d black holes in 40 MB with 5 %% of loss", holes)
	}
}

// Section 5.2, ERROR: a path that does not even take the base size is used with
// MIN_PLPMTU, until it does.
func TestPathBelowBase(t *testing.T) {
	p := newPair(t, 604, discover(1472))
	p.net.mtu = 600
	p.connect()
	p.a.send(0, 5000)
	p.driveUntil(time.Minute, func() bool { return p.a.assoc.paths[0].plpmtu.State() == pmtu.Error })
	if st := p.a.assoc.PathStats(0); st.MTU != pmtu.MinMTU {
		t.Errorf("MTU %d, want %d; %+v", st.MTU, pmtu.MinMTU, p.a.assoc.paths[0].plpmtu)
	}
	p.drive()
	p.wantDelivered()
	p.a.send(0, 5000)
	p.drive()
	p.wantDelivered()
	p.net.mtu = 1500
	p.advance(20 * time.Second)
	if got := p.a.assoc.PathStats(0).MTU; got != 1472 {
		t.Errorf("MTU %d on a path that recovered, want 1472", got)
	}
}

// While nothing comes from a path its packet size is not to blame; the search
// stops when it is inactive, and goes on when it is back.
func TestDeadPathKeepsItsMTU(t *testing.T) {
	cfg := fastConfig()
	cfg.Discover, cfg.MTU, cfg.MaxMTU = true, pmtu.BaseMTU, 1472
	p := newMultihomed(t, 605, cfg)
	p.connect()
	p.net.cut[p.z.local[1]], p.net.cut[p.a.local[1]] = true, true
	p.advance(time.Minute)
	a := p.a.assoc
	if st := a.PathStats(1); st.MTUProbes != 0 || st.Confirmed {
		t.Errorf("an unconfirmed path was probed: %+v", st)
	}
	clear(p.net.cut)
	p.advance(3 * time.Minute)
	if got := a.PathStats(1).MTU; got != 1472 {
		t.Fatalf("MTU %d of path 1", got)
	}
	p.net.cut[p.z.local[1]] = true
	p.advance(10 * time.Minute)
	n := a.PathStats(1).MTUProbes
	p.advance(time.Hour)
	if got := a.PathStats(1); got.MTUProbes > n || got.MTU != 1472 || got.Active {
		t.Errorf("a dead path was probed %d times; %+v", got.MTUProbes-n, got)
	}
}

// A path that is not in use yet does not make the chunks on the other one small,
// but once it is measured no chunk is larger than either path takes: RFC 9260,
// Section 7.3, 2.
func TestChunksFitEveryPath(t *testing.T) {
	cfg := fastConfig()
	cfg.Discover, cfg.MTU, cfg.MaxMTU = true, pmtu.BaseMTU, 8972
	p := newMultihomed(t, 606, cfg)
	p.net.deaf = func(pkt *Packet) bool { return pkt.Local.Addr().As4()[1] == 1 && len(pkt.Data)+28 > 1400 }
	p.connect()
	p.advance(12 * time.Millisecond)
	a := p.a.assoc
	if got, want := a.MaxPayload(), 8972-wire.HeaderLen-wire.IDataHeaderLen; got != want {
		t.Errorf("MaxPayload %d while the other path is not measured, want %d", got, want)
	}
	p.confirmAll()
	p.advance(time.Minute)
	if got, want := a.MaxPayload(), 1372-wire.HeaderLen-wire.IDataHeaderLen; a.PathStats(1).MTU != 1372 || got != want {
		t.Fatalf("MaxPayload %d, want %d; path 1 takes %d", got, want, a.PathStats(1).MTU)
	}
	largest, packet := 0, 0
	p.net.sniff = func(from *host, pkt []byte) {
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		for it.Next() {
			if c := it.Chunk(); c.Type == wire.ChunkIData {
				largest, packet = max(largest, len(c.Raw)), max(packet, len(pkt))
			}
		}
	}
	p.a.send(0, 100_000)
	p.drive()
	if largest > 1372-wire.HeaderLen || packet < 8000 {
		t.Errorf("chunks up to %d in packets up to %d; want at most %d in packets of about 8972", largest, packet, 1372-wire.HeaderLen)
	}
	// So nothing has to be fragmented when the data moves to the other path.
	p.a.send(0, 100_000)
	p.advance(8 * time.Millisecond)
	p.net.cut[p.z.local[0]] = true
	p.net.sniff = nil
	fragmented := 0
	p.net.onFragment = func() { fragmented++ }
	p.drive()
	p.wantDelivered()
	if fragmented > 0 {
		t.Errorf("%d packets had to be fragmented", fragmented)
	}
}

// Without discovery, or with a fixed size, nothing is probed.
func TestFixedMTU(t *testing.T) {
	p := newPair(t, 607, &Config{MTU: 1000})
	p.connect()
	p.advance(time.Hour)
	if st := p.a.assoc.PathStats(0); st.MTU != 1000 || st.MTUProbes != 0 {
		t.Errorf("%+v", st)
	}
	p = newPair(t, 608, discover(1472))
	p.connect()
	if err := p.a.assoc.SetPathParams(p.now, p.z.local[0], PathParams{MTU: 900}); err != nil {
		t.Fatal(err)
	}
	p.advance(time.Hour)
	if st := p.a.assoc.PathStats(0); st.MTU != 900 || st.MTUProbes > 1 {
		t.Errorf("%+v", st)
	}
	if err := p.a.assoc.SetPathParams(p.now, p.z.local[0], PathParams{Discover: true}); err != nil {
		t.Fatal(err)
	}
	p.advance(time.Second)
	if par, _ := p.a.assoc.PathParams(p.z.local[0]); par.MTU != 1472 || !par.Discover {
		t.Errorf("%+v after discovery was turned on", par)
	}
	// The limit of the interface is raised, as of a loopback address.
	if err := p.a.assoc.SetPathLimit(p.now, p.z.local[0], MaxPacket); err != nil {
		t.Fatal(err)
	}
	p.advance(time.Second)
	if got := p.a.assoc.PathStats(0).MTU; got != MaxPacket {
		t.Errorf("MTU %d after the limit was raised", got)
	}
	for _, err := range []error{p.a.assoc.SetPathLimit(p.now, addrPort("1.2.3.4:5"), 99), p.a.assoc.SetPathMTU(addrPort("1.2.3.4:5"), 99)} {
		if err != ErrPath {
			t.Errorf("a stranger's MTU: %v", err)
		}
	}
}

// The initial window is that of the size found (RFC 9260, Section 7.2.1), if
// nothing was sent before.
func TestInitialWindowFollowsMTU(t *testing.T) {
	p := newPair(t, 609, discover(8972))
	p.connect()
	p.advance(50 * time.Millisecond)
	if got, want := p.a.assoc.PathStats(0).CWND, 2*(8972-wire.HeaderLen); got != want {
		t.Errorf("cwnd %d, want %d", got, want)
	}
}

// RFC 9260, Section 10, and RFC 8899, Section 4.6: ICMP messages with the right
// tag and a believable size are used, others are not.
func TestPacketTooBig(t *testing.T) {
	const was = 8972
	for _, tc := range []struct {
		name       string
		size       int
		wrong      uint32 // added to the tag
		addr       string
		used       bool
		soon, then int // MTU at once, and when the search is over
	}{
		{name: "smaller", size: 4000, used: true, soon: pmtu.BaseMTU, then: 4000},
		{name: "below base", size: 1000, used: true, soon: pmtu.MinMTU, then: pmtu.MinMTU},
		{name: "wrong tag", size: 4000, wrong: 1, soon: was, then: was},
		{name: "too small", size: 68, soon: was, then: was},
		{name: "not smaller", size: was, soon: was, then: was},
		{name: "elsewhere", size: 4000, addr: "10.9.9.9:9899", soon: was, then: was},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPair(t, 610, discover(was))
			p.net.mtu = was + 28
			p.connect()
			p.advance(time.Second)
			a := p.a.assoc
			if got := a.PathStats(0).MTU; got != was {
				t.Fatalf("MTU %d", got)
			}
			p.a.send(0, 100_000)
			p.net.mtu = tc.then + 28
			addr := p.z.local[0]
			if tc.addr != "" {
				addr = netip.MustParseAddrPort(tc.addr)
			}
			if used := a.PacketTooBig(p.now, addr, a.peer.tag+tc.wrong, tc.size); used != tc.used {
				t.Errorf("used: %v, want %v", used, tc.used)
			}
			if got := a.PathStats(0).MTU; got != tc.soon {
				t.Errorf("MTU %d, want %d", got, tc.soon)
			}
			p.advance(4 * time.Second)
			if got := a.PathStats(0).MTU; got > tc.then || got < tc.then-pmtu.MinGain {
				t.Errorf("MTU %d after the search, want %d", got, tc.then)
			}
			p.wantDelivered()
		})
	}
}

// A message about a probe saves the wait for its answer.
func TestProbeTooBig(t *testing.T) {
	p := newPair(t, 611, discover(8972))
	p.net.mtu = 1500
	p.connect()
	p.advance(time.Millisecond)
	a := p.a.assoc
	if m := &a.paths[0].plpmtu; m.Outstanding() != 8972 {
		t.Fatalf("no probe of the limit is out: %+v", m)
	}
	if !a.PacketTooBig(p.now, p.z.local[0], a.peer.tag, 1472) {
		t.Error("the message was not used")
	}
	p.advance(500 * time.Millisecond) // less than PROBE_TIMER
	if got := a.PathStats(0).MTU; got != 1472 {
		t.Errorf("MTU %d, want 1472", got)
	}
}
