package core

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// newMultihomed is a pair with two addresses at each end.
func newMultihomed(t testing.TB, seed uint64, cfg *Config) *pair {
	p := newPair(t, seed, cfg)
	p.a.local = []netip.AddrPort{addrPort("10.0.0.1:9899"), addrPort("10.1.0.1:9899")}
	p.z.local = []netip.AddrPort{addrPort("10.0.0.2:9899"), addrPort("10.1.0.2:9899")}
	p.net.cut = map[netip.AddrPort]bool{}
	return p
}

func fastConfig() *Config {
	return &Config{RTOInitial: 200 * time.Millisecond, RTOMin: 100 * time.Millisecond, HBInterval: time.Second}
}

// RFC 9260, Sections 5.1.2 and 5.4: the listed addresses become paths, are
// probed, and carry nothing but heartbeats until they answer.
func TestPathVerification(t *testing.T) {
	p := newMultihomed(t, 80, fastConfig())
	second := map[netip.AddrPort]bool{p.a.local[1]: true, p.z.local[1]: true}
	p.net.cut = second
	p.connect()
	for _, h := range []*host{p.a, p.z} {
		if n := h.assoc.NumPaths(); n != 2 {
			t.Fatalf("%s has %d paths, want 2", h.name, n)
		}
		if st := h.assoc.PathStats(0); !st.Confirmed || !st.Primary {
			t.Errorf("%s: first path %+v", h.name, st)
		}
		if st := h.assoc.PathStats(1); st.Confirmed {
			t.Errorf("%s: second path is confirmed", h.name)
		}
		if err := h.assoc.SetPrimary(h.assoc.PathStats(1).Remote); err != ErrPath {
			t.Errorf("%s: SetPrimary to an unconfirmed path: %v", h.name, err)
		}
	}
	// The first path dies: even so no data goes to the second.
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	p.a.dests = map[netip.AddrPort]int{}
	p.a.send(0, 20_000)
	for p.a.assoc.paths[0].active {
		p.advance(time.Second)
	}
	p.advance(5 * time.Second)
	if n := p.a.dests[p.z.local[1]]; n > 0 || p.a.dests[p.z.local[0]] < 5 {
		t.Errorf("packets with data per address: %v", p.a.dests)
	}
	p.net.drop, p.net.cut = nil, map[netip.AddrPort]bool{}
	p.drive()
	p.advance(30 * time.Second)
	for _, h := range []*host{p.a, p.z} {
		if st := h.assoc.PathStats(1); !st.Confirmed || st.SRTT == 0 {
			t.Errorf("%s: second path %+v", h.name, st)
		}
		h.wantEvent(EventPathConfirmed)
	}
	if err := p.a.assoc.SetPrimary(p.z.local[1]); err != nil {
		t.Error(err)
	}
	p.a.wantEvent(EventPrimary)
	p.a.send(0, 20_000)
	p.drive()
	p.wantDelivered()
	if p.a.assoc.PathStats(1).SRTT == 0 || !p.a.assoc.PathStats(1).Primary {
		t.Errorf("new primary path %+v", p.a.assoc.PathStats(1))
	}
}

// An inactive path that is confirmed is still better than an active one that is
// not.
func TestDataPathIsConfirmed(t *testing.T) {
	p := newMultihomed(t, 90, fastConfig())
	p.net.cut[p.z.local[1]] = true
	p.connect()
	a := p.a.assoc
	a.paths[0].active = false
	if !a.paths[1].active || a.paths[1].confirmed {
		t.Fatalf("second path %+v", a.PathStats(1))
	}
	if d, o := a.dataPath(), a.otherPath(0); d != 0 || o != 0 {
		t.Errorf("data goes to path %d, retransmissions to path %d", d, o)
	}
}

// Chunks other than HEARTBEAT and HEARTBEAT ACK never go to an unconfirmed
// address (RFC 9260, Section 5.4), so a peer cannot aim us at a third party.
func TestUnconfirmedPathCarriesOnlyHeartbeats(t *testing.T) {
	p := newMultihomed(t, 81, fastConfig())
	p.net.cut[p.z.local[1]] = true
	p.net.cut[p.a.local[1]] = true
	p.connect()
	p.net.loss = 300
	p.a.send(0, 50_000)
	p.z.send(0, 50_000)
	for range 20000 {
		for _, h := range []*host{p.a, p.z} {
			for {
				buf, tx, ok := h.assoc.PollTransmit(p.now, nil, 1)
				if !ok {
					break
				}
				if i := h.assoc.pathByAddr(tx.Remote); !h.assoc.paths[i].confirmed {
					for _, c := range chunkTypes(buf) {
						if c != wire.ChunkHeartbeat && c != wire.ChunkHeartbeatAck {
							t.Fatalf("%s sent %s to an unconfirmed address", h.name, wire.Describe(buf))
						}
					}
				}
				p.post(h, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, Data: buf})
			}
		}
		if p.idle() || !p.step(p.now+clock.Time(time.Second)) {
			break
		}
	}
	p.drive()
	p.wantDelivered()
}

// RFC 9260, Sections 6.3.3, 6.4.1 and 8.2: the primary path dies in the middle
// of a transfer, which goes on by the other one; later it comes back.
func TestFailover(t *testing.T) {
	for _, noRACK := range []bool{false, true} {
		cfg := fastConfig()
		cfg.NoRACK = noRACK
		p := newMultihomed(t, 82, cfg)
		p.connect()
		p.advance(3 * time.Second) // confirm
		p.a.send(0, 2_000_000)
		p.advance(50 * time.Millisecond)
		p.net.cut[p.z.local[0]] = true
		p.a.dests = map[netip.AddrPort]int{}
		for p.a.assoc.Stats().Timeouts == 0 {
			p.advance(time.Millisecond)
		}
		// Section 6.4: what timed out goes to another address at once, not only
		// when the first one is given up.
		p.advance(10 * time.Millisecond)
		if p.a.dests[p.z.local[1]] == 0 {
			t.Errorf("packets with data per address: %v", p.a.dests)
		}
		start := p.now
		p.drive()
		p.wantDelivered()
		t.Logf("NoRACK=%v: failed over within %v", noRACK, time.Duration(p.now-start))
		if st := p.a.assoc.PathStats(1); st.SRTT == 0 {
			t.Errorf("second path not used: %+v", st)
		}
		p.advance(2 * time.Minute)
		for _, h := range []*host{p.a, p.z} {
			h.wantState(Established)
		}
		if e := p.a.wantEvent(EventPathDown); e.Addr != p.z.local[0] {
			t.Errorf("path down: %v", e.Addr)
		}
		if p.a.assoc.PathStats(0).Active || p.a.assoc.dataPath() != 1 {
			t.Error("the dead path is still in use")
		}
		p.net.cut[p.z.local[0]] = false
		p.advance(3 * time.Minute)
		p.a.wantEvent(EventPathUp)
		if p.a.assoc.dataPath() != 0 {
			t.Error("the primary path is not used again")
		}
		p.a.send(0, 100_000)
		p.drive()
		p.wantDelivered()
	}
}

// A multihomed association survives packets lost on both paths at random.
func TestMultihomedLossy(t *testing.T) {
	for seed := range 60 {
		cfg := lossyConfig(seed)
		p := newMultihomed(t, uint64(seed), cfg)
		p.net.loss, p.net.reorder, p.net.dup = 100, 100, 50
		p.t = quiet{t}
		p.sendWhilePathsDie(func(h *host) { h.sendMsg(&tx.Message{SID: uint16(p.rng.IntN(4))}, 1+p.rng.IntN(8000)) })
	}
}

// sendWhilePathsDie connects and has both ends send; now and then one of two
// paths dies for a while. Everything arrives in the end.
func (p *pair) sendWhilePathsDie(send func(h *host)) {
	p.connect()
	for range 40 {
		send(p.a)
		send(p.z)
		p.advance(time.Duration(p.rng.IntN(200)) * time.Millisecond)
		p.net.cut[p.z.local[p.rng.IntN(2)]] = p.rng.IntN(6) == 0
		p.net.cut[p.a.local[p.rng.IntN(2)]] = p.rng.IntN(12) == 0
	}
	clear(p.net.cut)
	p.drive()
	p.wantDelivered()
}

// RFC 9260, Section 8.1: the association ends after Association.Max.Retrans
// unanswered timeouts, and heartbeats alone find out about a dead peer.
func TestPeerUnreachable(t *testing.T) {
	for _, name := range []string{"data", "idle"} {
		t.Run(name, func(t *testing.T) {
			cfg := fastConfig()
			cfg.AssocMaxRetrans, cfg.PathMaxRetrans = 6, 3
			p := newPair(t, 83, cfg)
			p.connect()
			p.z.listener = nil
			p.net.drop = func(*host, []byte) bool { return true }
			if name == "data" {
				p.a.send(0, 5000)
			}
			p.advance(30 * time.Minute)
			p.a.wantState(Closed)
			p.a.wantEvent(EventPathDown)
			if e := p.a.wantEvent(EventDown); e.Err != ErrUnreachable {
				t.Errorf("ended with %v", e.Err)
			}
		})
	}
}

// Heartbeats of a path that carries no data do not end the association (RFC
// 9260, Section 8.1).
func TestDeadIdlePathDoesNotEndAssociation(t *testing.T) {
	p := newMultihomed(t, 84, fastConfig())
	p.connect()
	p.advance(3 * time.Second)
	p.net.cut[p.z.local[1]] = true
	for range 36_000 {
		p.advance(100 * time.Millisecond)
		if e := p.a.assoc.errors; e != 0 {
			t.Fatalf("%d errors of the association", e)
		}
	}
	p.a.wantState(Established)
	p.a.wantEvent(EventPathDown)
}

// An idle path is probed once per HB.interval plus RTO (RFC 9260, Section 8.3).
func TestHeartbeatInterval(t *testing.T) {
	p := newPair(t, 85, &Config{RTOMin: time.Second})
	p.connect()
	n := 0
	p.net.drop = func(from *host, pkt []byte) bool {
		if from == p.a && hasChunk(pkt, wire.ChunkHeartbeat) {
			n++
		}
		return false
	}
	p.advance(310 * time.Second)
	if n != 10 {
		t.Errorf("%d heartbeats within 310 s, want one per 31 s", n)
	}
	if err := p.a.assoc.RequestHeartbeat(p.now, p.z.local[0]); err != nil {
		t.Error(err)
	}
	wantChunks(t, only(t, p.a.outbox()), wire.ChunkHeartbeat)
	if err := p.a.assoc.RequestHeartbeat(p.now, addrPort("10.9.9.9:1")); err != ErrPath {
		t.Errorf("heartbeat to a stranger: %v", err)
	}
	// None while data flows.
	n = 0
	for range 300 {
		p.a.send(0, 10)
		p.advance(time.Second)
	}
	if n > 0 {
		t.Errorf("%d heartbeats on a path in use", n)
	}
}

// TestHeartbeatRetry counts how long a silent peer lives. By RFC 9260, Section 8.3,
// each unanswered heartbeat costs HB.interval and twice the timeout; with HBRetry
// only the timeout, as data does, and not both.
func TestHeartbeatRetry(t *testing.T) {
	for _, tt := range []struct {
		retry, data bool
		least, most time.Duration
	}{
		// Timeouts of 1, 2, 2 and 2 s, after an idle period of 10.5 to 11.5 s.
		{true, false, 17500 * time.Millisecond, 18600 * time.Millisecond},
		{false, false, 50 * time.Second, 70 * time.Second},
		{true, true, 7 * time.Second, 8200 * time.Millisecond},
		{false, true, 5 * time.Second, 8200 * time.Millisecond},
	} {
		p := newPair(t, 87, &Config{RTOMin: time.Second, RTOMax: 2 * time.Second, HBInterval: 10 * time.Second,
			HBRetry: tt.retry, AssocMaxRetrans: 3})
		p.connect()
		p.advance(30 * time.Second)
		p.net.drop = func(*host, []byte) bool { return true }
		p.a.assoc.paths[0].hb = heartbeat{}
		p.a.assoc.armHeartbeat(p.now, 0)
		if tt.data {
			p.a.assoc.paths[0].hb.pending = true // in flight when data is sent
			p.advance(time.Millisecond)
			p.a.send(0, 10)
		}
		start := p.now
		for p.a.assoc.State() != Closed && p.now < start+clock.Time(2*time.Minute) {
			p.advance(100 * time.Millisecond)
		}
		if took := time.Duration(p.now - start); took < tt.least || took > tt.most {
			t.Errorf("retry %t, data %t: dead after %v, want %v to %v", tt.retry, tt.data, took, tt.least, tt.most)
		}
	}
}

func TestHeartbeatsOff(t *testing.T) {
	p := newPair(t, 86, &Config{HBInterval: -1})
	p.connect()
	before := len(p.a.sent) + len(p.z.sent)
	p.advance(24 * time.Hour)
	if n := len(p.a.sent) + len(p.z.sent) - before; n > 0 {
		t.Errorf("%d packets in an idle day", n)
	}
}

// RFC 6951, Section 5.4: the peer's UDP port follows the packets that have the
// right tag, and no others.
func TestUDPPortMoves(t *testing.T) {
	p := newPair(t, 87)
	p.connect()
	moved := addrPort("10.0.0.1:40000")
	beat := wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("x")})
	forged := p.z.packet(p.z.assoc.Tag()+1, beat)
	forged.Remote = moved
	p.z.assoc.HandlePacket(p.now, forged)
	init := p.z.initPacket(wire.Init{Tag: 5, RWND: 9999, OutStreams: 1, InStreams: 1})
	init.Remote = moved
	p.z.assoc.HandlePacket(p.now, init)
	p.z.wantNoEvent(EventPathMoved)
	if got := p.z.assoc.PathStats(0).Remote; got != p.a.local[0] {
		t.Fatalf("a packet without the tag moved the path to %v", got)
	}
	genuine := p.z.packet(p.z.assoc.Tag(), beat)
	genuine.Remote = moved
	p.z.assoc.HandlePacket(p.now, genuine)
	if e := p.z.wantEvent(EventPathMoved); e.Addr != moved {
		t.Errorf("moved to %v", e.Addr)
	}
	p.z.send(0, 10)
	_, tx, ok := p.z.assoc.PollTransmit(p.now, nil, 1)
	if !ok || tx.Remote != moved {
		t.Errorf("data goes to %v", tx.Remote)
	}
}

// A HEARTBEAT ACK confirms a path only with the nonce that was sent there (RFC
// 9260, Section 5.4), and once.
func TestHeartbeatNonce(t *testing.T) {
	p := newMultihomed(t, 88, fastConfig())
	p.net.cut[p.z.local[1]] = true
	p.connect()
	p.advance(50 * time.Millisecond)
	q := &p.a.assoc.paths[1]
	if q.hb.sentAt == 0 {
		t.Fatal("the path is not being probed")
	}
	ack := func(nonce uint64) []byte {
		info := binary.BigEndian.AppendUint64(nil, nonce)
		info = binary.BigEndian.AppendUint32(info, q.id)
		return wire.AppendHeartbeatAck(nil, wire.Heartbeat{Info: binary.BigEndian.AppendUint64(info, uint64(p.now))})
	}
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), ack(q.hb.nonce^1)))
	if q.confirmed {
		t.Fatal("confirmed by a wrong nonce")
	}
	good := ack(q.hb.nonce)
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), good))
	if !q.confirmed {
		t.Error("not confirmed by the right nonce")
	}
	srtt := q.rto.SRTT()
	p.now += clock.Time(time.Second)
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), good))
	if q.rto.SRTT() != srtt {
		t.Error("a repeated HEARTBEAT ACK was taken for another measurement")
	}
}

// An acknowledgement clears the errors of a path and makes it active again (RFC
// 9260, Section 8.2).
func TestAckRevivesPath(t *testing.T) {
	cfg := fastConfig()
	cfg.PathMaxRetrans, cfg.HBInterval = 2, -1
	p := newPair(t, 89, cfg)
	p.connect()
	p.net.drop = func(*host, []byte) bool { return true }
	p.a.send(0, 1000)
	p.driveUntil(time.Minute, func() bool { return !p.a.assoc.paths[0].active })
	p.a.wantEvent(EventPathDown)
	p.net.drop = nil
	p.drive()
	p.a.wantEvent(EventPathUp)
	if st := p.a.assoc.PathStats(0); st.Errors != 0 || !st.Active || p.a.assoc.errors != 0 {
		t.Errorf("after the acknowledgement: %+v, %d errors", st, p.a.assoc.errors)
	}
}

// Only address.MaxPeer addresses of an INIT are taken, no broadcast, multicast or
// unspecified ones, and IPv4-mapped ones count as IPv4.
func TestAddressListIsBounded(t *testing.T) {
	var params []byte
	for _, s := range []string{"0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1"} {
		a := netip.MustParseAddr(s)
		typ := wire.ParamIPv4
		if a.Is6() {
			typ = wire.ParamIPv6
		}
		params = wire.AppendParam(params, typ, a.AsSlice())
	}
	for i := range 200 {
		params = wire.AppendParam(params, wire.ParamIPv4, []byte{10, 5, 0, byte(i)})
	}
	var in cookie.Init
	in.Parse(&wire.Init{Params: params}, false)
	if len(in.Addrs.All()) != address.MaxPeer || in.Malformed {
		t.Errorf("%d addresses, malformed %v", len(in.Addrs.All()), in.Malformed)
	}
	for _, a := range in.Addrs.All() {
		if !address.Usable(a) {
			t.Errorf("took %v", a)
		}
	}
	var l address.List
	l.Add(netip.MustParseAddr("::ffff:10.0.0.1"))
	l.Add(netip.MustParseAddr("10.0.0.1"))
	if len(l.All()) != 1 {
		t.Errorf("a mapped address counts besides the IPv4 address")
	}
}
