package core

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// Both ends dial, apart by any time: one association comes of it, with the same
// tags on both sides (RFC 9260, Section 5.2.1 and Table 12, cases B, C and D).
func TestCollision(t *testing.T) {
	for seed := range 300 {
		p := newPair(t, uint64(seed), &Config{RTOInitial: 100 * time.Millisecond, RTOMin: 50 * time.Millisecond, MaxInitRetrans: 30})
		p.net.jitter = time.Duration(seed%10) * 2 * time.Millisecond
		p.net.loss, p.net.dup = seed%4*70, seed%3*100
		p.a.listen()
		p.z.listen()
		p.t = quiet{t}
		p.a.dial(p.z)
		p.a.send(0, 2000)
		p.advance(time.Duration(p.rng.IntN(40)) * time.Millisecond)
		if p.z.assoc == nil {
			p.z.dial(p.a)
		}
		p.z.send(1, 2000)
		if !p.driveUntil(time.Minute, func() bool {
			return p.a.assoc.State() == Established && p.z.assoc.State() == Established
		}) {
			t.Fatalf("seed %d: A %v, Z %v", seed, p.a.assoc.State(), p.z.assoc.State())
		}
		p.advance(5 * time.Second)
		if a, z := p.a.assoc, p.z.assoc; a.Tag() != z.PeerTag() || z.Tag() != a.PeerTag() {
			t.Fatalf("seed %d: tags of A %#x %#x, of Z %#x %#x", seed, a.Tag(), a.PeerTag(), z.Tag(), z.PeerTag())
		}
		p.a.send(2, 3000)
		p.z.send(2, 3000)
		p.drive()
		p.wantDelivered()
		if len(p.a.old)+len(p.z.old) > 0 {
			t.Fatalf("seed %d: more than one association at an end", seed)
		}
	}
}

// RFC 9260, Section 5.2.1: the INIT ACK has "the same parameters it sent in its
// original INIT chunk (including its Initiate Tag, unchanged)", and the state
// does not change.
func TestInitInCookieWaitKeepsTag(t *testing.T) {
	p := newPair(t, 30)
	p.a.dial(p.z)
	p.z.dial(p.a)
	initA, initZ := only(t, p.a.outbox()), only(t, p.z.outbox())
	p.a.deliver(p.a.to(initZ))
	p.a.wantState(CookieWait)
	ack := only(t, p.a.outbox())
	x := parsedInit(t, initA)
	y := parsedInit(t, ack)
	if x.Tag != y.Tag || x.TSN != y.TSN || x.InStreams != y.InStreams {
		t.Errorf("INIT %+v\nINIT ACK %+v", x, y)
	}
	// The INIT ACK makes Z echo the cookie: case B at A, which knows no tag yet.
	p.z.deliver(p.z.to(ack))
	p.z.wantState(CookieEchoed)
	p.a.deliver(p.a.to(only(t, p.z.outbox())))
	p.a.wantState(Established)
	p.z.deliver(p.z.to(only(t, p.a.outbox())))
	p.z.wantState(Established)
	if p.a.assoc.PeerTag() != p.z.assoc.Tag() || p.z.assoc.PeerTag() != p.a.assoc.Tag() {
		t.Error("the tags do not agree")
	}
}

// A collision (Table 12, case B) in which the peer's INIT lists an address that
// we did not dial.
func TestCollisionAddsPaths(t *testing.T) {
	p := newMultihomed(t, 35, fastConfig())
	p.a.dial(p.z)
	p.z.dial(p.a)
	p.a.outbox()
	p.a.deliver(p.a.to(only(t, p.z.outbox())))
	p.z.deliver(p.z.to(only(t, p.a.outbox())))
	p.a.deliver(p.a.to(only(t, p.z.outbox())))
	p.a.wantState(Established)
	if n := p.a.assoc.NumPaths(); n != 2 {
		t.Errorf("%d paths, want 2", n)
	}
	p.drive()
	p.a.send(0, 5000)
	p.z.send(0, 5000)
	p.drive()
	p.wantDelivered()
}

// RFC 9260, Section 5.2.1, rule 1: in COOKIE-WAIT an INIT ACK goes only to an
// address that the user gave.
func TestInitInCookieWaitFromElsewhere(t *testing.T) {
	p := newPair(t, 35)
	p.a.dial(p.z)
	p.a.outbox()
	init := p.a.initPacket(wire.Init{Tag: 9, RWND: 9999, OutStreams: 1, InStreams: 1})
	init.Remote = addrPort("10.66.0.1:9899")
	if d := p.a.assoc.HandlePacket(p.now, init); d != DropAddr {
		t.Errorf("dropped as %v", d)
	}
	if got := p.a.outbox(); len(got) > 0 {
		t.Errorf("answered with %s", wire.Describe(got[0]))
	}
}

func parsedInit(t *testing.T, pkt []byte) wire.Init {
	t.Helper()
	it := wire.NewChunks(pkt[wire.HeaderLen:])
	it.Next()
	x, err := wire.ParseInit(it.Chunk())
	if err != nil {
		x, err = wire.ParseInitAck(it.Chunk())
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// restarted replaces A by one that knows nothing of its past, and dials.
func (p *pair) restarted() {
	p.a.assoc.Release()
	p.a.assoc = nil
	p.wire = nil
	p.a.out, p.z.out = map[uint16]*ledger{}, map[uint16]*ledger{}
	p.a.in, p.z.in = map[uint16]*ledger{}, map[uint16]*ledger{}
	p.a.parts, p.z.parts = map[uint16][]byte{}, map[uint16][]byte{}
	p.a.released, p.z.released = map[*body]error{}, map[*body]error{}
	p.a.dial(p.z)
}

// RFC 9260, Section 5.2.4.1, Figure 5: Table 12, case A.
func TestRestart(t *testing.T) {
	for _, name := range []string{"idle", "data in flight", "lossy"} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, 31)
			p.connect()
			old := p.z.assoc.Tag()
			p.a.send(0, 3000)
			p.z.send(0, 3000)
			p.drive()
			var lost *body
			switch name {
			case "data in flight": // compare CVE-2021-30523
				lost = p.z.send(0, 100_000)
				p.a.send(0, 100_000)
				p.advance(12 * time.Millisecond)
			case "lossy":
				p.net.loss, p.net.dup, p.net.reorder = 200, 100, 100
			}
			p.restarted()
			if !p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Established }) {
				t.Fatalf("A is %v", p.a.assoc.State())
			}
			p.z.flush()
			e := p.z.wantEvent(EventRestart)
			p.z.wantNoEvent(EventDown)
			if e.Tag == old || e.Tag != p.z.assoc.Tag() || p.a.assoc.PeerTag() != e.Tag {
				t.Errorf("tags: event %#x, Z %#x before %#x, A knows %#x", e.Tag, p.z.assoc.Tag(), old, p.a.assoc.PeerTag())
			}
			if lost != nil && (lost.n != 1 || lost.err != tx.ErrRestart) {
				t.Errorf("message in flight released %d times: %v", lost.n, lost.err)
			}
			p.a.send(0, 5000)
			p.z.send(0, 5000)
			p.drive()
			p.wantDelivered()
		})
	}
}

// RFC 9260, Section 5.2.2: an INIT that adds addresses to the association is
// answered with an ABORT that lists them, and nothing changes (compare the
// address takeover of RFC 5062, Section 3).
func TestRestartWithNewAddress(t *testing.T) {
	p := newPair(t, 32)
	p.connect()
	params := wire.AppendParam(nil, wire.ParamIPv4, []byte{10, 0, 0, 1})
	params = append(params, wire.AppendParam(nil, wire.ParamIPv4, []byte{10, 9, 9, 9})...)
	before := p.z.assoc.Tag()
	p.z.deliver(p.z.initPacket(wire.Init{Tag: 99, RWND: 5000, OutStreams: 1, InStreams: 1, Params: params}))
	pkt := only(t, p.z.outbox())
	wantChunks(t, pkt, wire.ChunkAbort)
	h, _ := wire.ParseHeader(pkt)
	it := wire.NewChunks(pkt[wire.HeaderLen:])
	it.Next()
	x, _ := wire.ParseAbort(it.Chunk())
	cs := wire.NewCauses(x.Causes)
	if h.VTag != 99 || !cs.Next() || cs.Cause().Code != wire.CauseRestart || !bytes.Contains(cs.Cause().Value, []byte{10, 9, 9, 9}) ||
		bytes.Contains(cs.Cause().Value, []byte{10, 0, 0, 1}) {
		t.Errorf("answered with %s", wire.Describe(pkt))
	}
	p.z.wantState(Established)
	if p.z.assoc.Tag() != before || p.z.assoc.NumPaths() != 1 {
		t.Error("the association changed")
	}
}

// foreignCookie is what a cookie of none of the associations holds.
func foreignCookie() *cookie.State {
	s := &cookie.State{Created: clock.Time(time.Hour), Life: clock.Time(time.Minute), LocalPort: 1, PeerPort: 2,
		LocalTag: 3, PeerTag: 4, LocalTie: 5, PeerTie: 6, LocalTSN: 7, PeerTSN: 8, PeerRWND: 9, Out: 10, In: 11,
		Features: feature.PartialReliability, Adaptation: 12, HasAdaptation: true, Own: true, Primary: 2,
		Remote: netip.MustParseAddrPort("[2001:db8::1]:14"), Random: [auth.RandomLen]byte{1, 2},
		Auth: auth.NewVector([auth.RandomLen]byte{3}, (*auth.Config)(nil).WithDefaults(wire.ChunkData))}
	s.Addrs.Add(netip.MustParseAddr("10.0.0.9"))
	s.Addrs.Add(netip.MustParseAddr("2001:db8::9"))
	return s
}

// Table 12, for what none of the rows shows: a cookie of ours with tags that
// match nothing and no tie-tags is silently discarded.
func TestForeignCookieIsDiscarded(t *testing.T) {
	p := newPair(t, 33)
	p.connect()
	s := foreignCookie()
	s.Created, s.LocalPort, s.PeerPort, s.LocalTie, s.PeerTie = p.now, portZ, portA, 0, 0
	p.z.outbox()
	if d := p.z.deliver(p.z.packet(s.LocalTag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: p.z.jar.Seal(nil, s)}))); d != DropCookie {
		t.Errorf("dropped as %v", d)
	}
	// Case C: the peer's tag matches, ours does not, no tie-tags.
	s.PeerTag = p.a.assoc.Tag()
	if d := p.z.deliver(p.z.packet(s.LocalTag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: p.z.jar.Seal(nil, s)}))); d != DropCookie {
		t.Errorf("case C dropped as %v", d)
	}
	// Tie-tags of another incarnation.
	s.PeerTag, s.LocalTie, s.PeerTie = 1234, 5, 6
	if d := p.z.deliver(p.z.packet(s.LocalTag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: p.z.jar.Seal(nil, s)}))); d != DropCookie {
		t.Errorf("wrong tie-tags dropped as %v", d)
	}
	// The association's own cookie, behind another tag (Section 5.1.5, step 3).
	s.LocalTag, s.PeerTag = p.z.assoc.Tag(), p.a.assoc.Tag()
	own := wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: p.z.jar.Seal(nil, s)})
	if d := p.z.deliver(p.z.packet(s.LocalTag+1, own)); d != DropCookie {
		t.Errorf("wrong tag dropped as %v", d)
	}
	if got := p.z.outbox(); len(got) != 0 {
		t.Errorf("answered with %s", wire.Describe(got[0]))
	}
	p.z.wantState(Established)
}

// RFC 9260, Section 5.2.4, step 3: an expired cookie is good if it is that of the
// association (case D), and answered with a Stale Cookie error otherwise.
func TestExpiredCookieOfExistingAssociation(t *testing.T) {
	p := newPair(t, 34)
	p.z.listen()
	p.a.dial(p.z)
	var echo []byte
	p.net.drop = func(_ *host, pkt []byte) bool {
		if hasChunk(pkt, wire.ChunkCookieEcho) {
			echo = bytes.Clone(pkt)
		}
		return false
	}
	p.connectNow()
	p.advance(5 * time.Minute)
	p.z.outbox()
	p.z.deliver(p.z.to(echo))
	wantChunks(t, only(t, p.z.outbox()), wire.ChunkCookieAck)

	s := foreignCookie()
	s.Created, s.LocalPort, s.PeerPort = p.now-2*clock.Time(time.Minute), portZ, portA
	p.z.deliver(p.z.packet(s.LocalTag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: p.z.jar.Seal(nil, s)})))
	wantChunks(t, only(t, p.z.outbox()), wire.ChunkError)
	p.z.wantState(Established)
}

// RFC 9260, Sections 5.2.1 and 5.2.2: tie-tags are in the cookies of COOKIE-ECHOED
// and later states and in the TCB, and 0 in a cookie of no association. They are
// there in place of the tags of the association, which a cookie does not reveal
// (Section 5.1.3).
func TestTieTags(t *testing.T) {
	p := newPair(t, 36)
	p.z.listen()
	p.a.dial(p.z)
	init := only(t, p.a.outbox())
	cookieIn := func(h *host, pkt []byte) (s cookie.State, raw []byte) {
		t.Helper()
		x := parsedInit(t, pkt)
		it := wire.NewParams(x.Params)
		for it.Next() {
			if c := it.Param(); c.Type == wire.ParamStateCookie {
				sent, _ := wire.ParseHeader(pkt)
				back := wire.Header{SrcPort: sent.DstPort, DstPort: sent.SrcPort, VTag: x.Tag}
				if err := h.jar.Open(&s, back, netip.AddrPort{}, netip.AddrPort{}, c.Value, p.now); err != nil {
					t.Fatal(err)
				}
				return s, c.Value
			}
		}
		t.Fatal("no cookie")
		return
	}
	r := p.z.listener.HandlePacket(p.now, p.z.to(init), nil)
	if s, _ := cookieIn(p.z, r.Reply); s.LocalTie != 0 || s.PeerTie != 0 {
		t.Errorf("tie-tags %#x %#x without an association", s.LocalTie, s.PeerTie)
	}
	reply := bytes.Clone(r.Reply)
	ask := func(h *host) []byte {
		t.Helper()
		h.deliver(h.packet(0, wire.AppendInit(nil, wire.Init{Tag: 0x77777777, RWND: 65536, OutStreams: 5, InStreams: 5, TSN: 9})))
		return only(t, h.outbox())
	}
	p.a.wantState(CookieWait)
	if s, _ := cookieIn(p.a, ask(p.a)); s.LocalTie != 0 || s.PeerTie != 0 {
		t.Errorf("tie-tags %#x %#x in COOKIE-WAIT", s.LocalTie, s.PeerTie)
	}
	p.a.deliver(p.a.to(reply))
	echo := only(t, p.a.outbox())
	for _, h := range []*host{p.a, p.z} {
		if h == p.z {
			p.z.deliver(p.z.to(echo))
			p.z.wantState(Established)
			p.z.outbox()
		} else {
			p.a.wantState(CookieEchoed)
		}
		s, raw := cookieIn(h, ask(h))
		a := h.assoc
		if s.LocalTie == 0 || s.PeerTie == 0 || s.LocalTie != a.hs.localTie || s.PeerTie != a.hs.peerTie {
			t.Errorf("%v: tie-tags %#x %#x in the cookie, %#x %#x in the TCB", a.State(), s.LocalTie, s.PeerTie, a.hs.localTie, a.hs.peerTie)
		}
		secrets := []uint32{a.Tag(), a.PeerTag()}
		if a.State() == CookieEchoed {
			secrets = secrets[1:] // the INIT ACK has to have the tag of our INIT
		}
		for _, tag := range secrets {
			if bytes.Contains(raw, binary.BigEndian.AppendUint32(nil, tag)) {
				t.Errorf("%v: the cookie reveals tag %#x", a.State(), tag)
			}
		}
	}
}
