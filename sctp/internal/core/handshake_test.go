package core

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/wire"
)

// only returns the single packet of a list.
func only(t *testing.T, list [][]byte) []byte {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d packets, want 1", len(list))
	}
	return list[0]
}

func wantChunks(t *testing.T, pkt []byte, want ...wire.ChunkType) {
	t.Helper()
	got := chunkTypes(pkt)
	if len(got) != len(want) {
		t.Fatalf("packet %s, want chunks %v", wire.Describe(pkt), want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("packet %s, want chunks %v", wire.Describe(pkt), want)
		}
	}
}

// to makes a packet with the given bytes arrive at h.
func (h *host) to(data []byte) *Packet {
	from := h.p.a
	if h == from {
		from = h.p.z
	}
	return &Packet{Tuple: Tuple{Local: h.local[0], Remote: from.local[0]}, Data: data}
}

// RFC 9260, Section 5.1.6, Figure 4.
func TestHandshakeFigure4(t *testing.T) {
	code := uint32(0xC0FFEE)
	p := newPair(t, 3, &Config{OutStreams: 7, InStreams: 20, Adaptation: &code}, &Config{OutStreams: 30, InStreams: 5})
	p.z.listen()
	p.a.dial(p.z)
	p.a.wantState(CookieWait)
	p.a.send(0, 100)

	init := only(t, p.a.outbox())
	wantChunks(t, init, wire.ChunkInit)
	if h, _ := wire.ParseHeader(init); h.VTag != 0 {
		t.Errorf("INIT has tag %#x, want 0", h.VTag)
	}
	r := p.z.listener.HandlePacket(p.now, p.z.to(init), nil)
	if r.New != nil {
		t.Fatal("an INIT made an association") // Section 5.1, B
	}
	wantChunks(t, r.Reply, wire.ChunkInitAck)
	if h, _ := wire.ParseHeader(r.Reply); h.VTag != p.a.assoc.Tag() {
		t.Errorf("INIT ACK has tag %#x, want that of the INIT, %#x", h.VTag, p.a.assoc.Tag())
	}
	p.a.deliver(p.a.to(r.Reply))
	p.a.wantState(CookieEchoed)

	echo := only(t, p.a.outbox())
	wantChunks(t, echo, wire.ChunkCookieEcho, wire.ChunkIData) // "MAY be bundled with any pending outbound DATA chunks"
	p.a.send(0, 10)
	if got := p.a.outbox(); len(got) != 0 {
		t.Error("packets in COOKIE-ECHOED before the COOKIE ACK")
	}
	r = p.z.listener.HandlePacket(p.now, p.z.to(echo), nil)
	if r.New == nil {
		t.Fatalf("no association: %v", r.Drop)
	}
	p.z.setAssoc(r.New)
	p.z.wantState(Established)
	p.z.assoc.EndBatch(p.now)
	ack := only(t, p.z.outbox())
	wantChunks(t, ack, wire.ChunkCookieAck, wire.ChunkSack) // Section 5.1.5, step 7
	p.a.deliver(p.a.to(ack))
	p.a.wantState(Established)
	p.a.wantEvent(EventUp)
	p.z.wantEvent(EventUp)

	for _, x := range []struct {
		name            string
		a               *Assoc
		wantOut, wantIn int
	}{{"A", p.a.assoc, 5, 20}, {"Z", p.z.assoc, 20, 5}} {
		if out, in := x.a.Streams(); out != x.wantOut || in != x.wantIn {
			t.Errorf("%s has %d/%d streams, want %d/%d", x.name, out, in, x.wantOut, x.wantIn) // Section 5.1.1
		}
	}
	if c, ok := p.z.assoc.PeerAdaptation(); !ok || c != code {
		t.Errorf("adaptation at Z: %#x, %v", c, ok)
	}
	if _, ok := p.a.assoc.PeerAdaptation(); ok {
		t.Error("A sees an adaptation indication that Z did not send")
	}
	p.z.read()
	p.drive()
	p.wantDelivered()
	if got := p.a.assoc.PathStats(0).SRTT; got != 0 && got > 20*time.Millisecond {
		t.Errorf("SRTT %v", got)
	}
}

// Every subset of the first packets is lost, and the association comes up and
// carries data all the same.
func TestHandshakeLosesAnyPackets(t *testing.T) {
	const n = 9
	for mask := range 1 << n {
		p := newPair(t, uint64(mask), &Config{RTOInitial: 100 * time.Millisecond, RTOMin: 50 * time.Millisecond,
			MaxInitRetrans: 2 * n})
		i := 0
		p.net.drop = func(*host, []byte) bool {
			i++
			return i <= n && mask>>(i-1)&1 != 0
		}
		p.t = quiet{t}
		p.z.listen()
		p.a.dial(p.z)
		p.a.send(1, 3000)
		if !p.driveUntil(time.Minute, func() bool {
			return p.a.assoc.State() == Established && p.z.assoc != nil
		}) {
			t.Fatalf("mask %#x: A is %v", mask, p.a.assoc.State())
		}
		p.z.send(2, 3000)
		p.drive()
		p.wantDelivered()
	}
}

// quiet drops the log.
type quiet struct{ testing.TB }

func (quiet) Logf(string, ...any) {}

// RFC 9260, Section 4, note 2: "This MUST be repeated up to
// 'Max.Init.Retransmits' times."
func TestInitGivesUp(t *testing.T) {
	p := newPair(t, 5)
	p.a.dial(p.z)
	p.z.listener = nil
	inits := 0
	p.net.drop = func(_ *host, pkt []byte) bool {
		inits++
		wantChunks(t, pkt, wire.ChunkInit)
		return true
	}
	b := p.a.send(0, 1)
	p.advance(20 * time.Minute)
	p.a.wantState(Closed)
	if inits != 1+DefaultMaxInitRetrans {
		t.Errorf("%d INITs, want %d", inits, 1+DefaultMaxInitRetrans)
	}
	if e := p.a.wantEvent(EventDown); e.Err != ErrUnreachable {
		t.Errorf("EventDown: %v, want %v", e.Err, ErrUnreachable)
	}
	if b.n != 1 || b.err != ErrUnreachable {
		t.Errorf("queued message released %d times: %v", b.n, b.err)
	}
}

// The COOKIE ECHO goes again with the data that went with it.
func TestCookieEchoIsRepeatedWithData(t *testing.T) {
	p := newPair(t, 16)
	p.z.listen()
	p.a.dial(p.z)
	p.a.send(0, 500)
	r := p.z.listener.HandlePacket(p.now, p.z.to(only(t, p.a.outbox())), nil)
	p.a.deliver(p.a.to(r.Reply))
	for range 3 {
		wantChunks(t, only(t, p.a.outbox()), wire.ChunkCookieEcho, wire.ChunkIData)
		p.now = p.a.assoc.NextTimeout()
		p.a.assoc.HandleTimeout(p.now)
	}
}

func TestCookieEchoGivesUp(t *testing.T) {
	p := newPair(t, 6)
	p.z.listen()
	p.a.dial(p.z)
	n := 0
	p.net.drop = func(_ *host, pkt []byte) bool {
		if hasChunk(pkt, wire.ChunkCookieEcho) {
			n++
			return true
		}
		return false
	}
	p.advance(30 * time.Minute)
	p.a.wantState(Closed)
	if n != 1+DefaultMaxInitRetrans || p.z.assoc != nil {
		t.Errorf("%d COOKIE ECHOs, want %d", n, 1+DefaultMaxInitRetrans)
	}
}

func TestInitToNobodyIsRefused(t *testing.T) {
	p := newPair(t, 7)
	p.a.dial(p.z)
	p.advance(time.Second)
	p.a.wantState(Closed)
	var e *AbortError
	if err := p.a.assoc.Err(); !errors.As(err, &e) || !e.ByPeer {
		t.Errorf("error %v, want an abort by the peer", err)
	}
}

// A second COOKIE ECHO finds the association of the first (compare
// CVE-2013-2206).
func TestDuplicateCookieEcho(t *testing.T) {
	p := newPair(t, 8)
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
	first := p.z.assoc
	p.a.send(0, 5000)
	p.drive()
	for range 3 {
		if d := p.z.deliver(p.z.to(echo)); d != DropNone {
			t.Errorf("dropped: %v", d)
		}
		wantChunks(t, only(t, p.z.outbox()), wire.ChunkCookieAck)
	}
	if p.z.assoc != first {
		t.Error("another association was made")
	}
	p.a.send(0, 5000)
	p.drive()
	p.wantDelivered()
}

// connectNow lets the handshake that was begun finish.
func (p *pair) connectNow() {
	p.t.Helper()
	if !p.driveUntil(10*time.Minute, func() bool {
		return p.a.assoc.State() == Established && p.z.assoc != nil && p.z.assoc.State() == Established
	}) {
		p.t.Fatalf("not established: A is %v", p.a.assoc.State())
	}
}

// RFC 9260, Section 5.2.6: after a Stale Cookie error comes an INIT with a
// Cookie Preservative.
func TestStaleCookie(t *testing.T) {
	p := newPair(t, 9, &Config{}, &Config{CookieLife: 400 * time.Millisecond})
	p.net.delay = 450 * time.Millisecond // the cookie is 0.9 s old when it arrives
	p.z.listen()
	p.a.dial(p.z)
	preservative, errs := uint32(0), 0
	p.net.drop = func(from *host, pkt []byte) bool {
		if hasChunk(pkt, wire.ChunkError) {
			errs++
		}
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		if it.Next() && it.Chunk().Type == wire.ChunkInit {
			x, _ := wire.ParseInit(it.Chunk())
			if q, ok := wire.FindParam(x.Params, wire.ParamCookiePreservative); ok {
				preservative, _ = wire.ParseCookiePreservative(q)
			}
		}
		return false
	}
	p.a.send(0, 2000)
	p.connectNow()
	if errs == 0 || preservative == 0 {
		t.Errorf("%d Stale Cookie errors, preservative %d ms", errs, preservative)
	}
	if preservative > 1900 { // RTT 0.9 s and at most 1 s more
		t.Errorf("preservative %d ms", preservative)
	}
	p.drive()
	p.wantDelivered()
}

// RFC 4895, Section 6.2: the peer wants errors authenticated. It learns of its stale
// cookie all the same, from an end that keeps nothing about it.
func TestStaleCookieAuthenticated(t *testing.T) {
	for _, x := range []struct{ id, zID uint16 }{{0, 0}, {7, 7}, {7, 8}} {
		auth := func(active uint16) *auth.Config {
			return &auth.Config{Chunks: []wire.ChunkType{wire.ChunkError}, Active: active,
				Keys: []auth.Key{{ID: 7, Secret: []byte("seven")}, {ID: 8, Secret: []byte("eight")}, {ID: 0, Secret: []byte("zero")}}}
		}
		p := newPair(t, 11, &Config{Auth: auth(x.id), MaxInitRetrans: 3}, &Config{Auth: auth(x.zID), CookieLife: 400 * time.Millisecond})
		p.net.delay = 450 * time.Millisecond
		p.wantAuthenticated(wire.ChunkError)
		p.z.listen()
		p.a.dial(p.z)
		p.connectNow()
		if p.now > clock.Time(10*time.Second) {
			t.Errorf("keys %d, %d: up after %v", x.id, x.zID, time.Duration(p.now))
		}
	}
}

func TestStaleCookieGivesUp(t *testing.T) {
	p := newPair(t, 10, &Config{MaxInitRetrans: 100}, &Config{CookieLife: time.Millisecond})
	p.net.delay = 100 * time.Second // far longer than a life that may be asked for
	p.z.listen()
	p.a.dial(p.z)
	p.advance(time.Hour)
	p.a.wantState(Closed)
	if p.a.assoc.Err() != ErrStale {
		t.Errorf("error %v, want %v", p.a.assoc.Err(), ErrStale)
	}
}

// initTo builds a packet with an INIT for Z.
func (h *host) initPacket(x wire.Init) *Packet {
	return h.packet(0, wire.AppendInit(nil, x))
}

func TestListenerRefusesInit(t *testing.T) {
	good := wire.Init{Tag: 77, RWND: 1500, OutStreams: 1, InStreams: 1, TSN: 5}
	with := func(f func(*wire.Init)) wire.Init { x := good; f(&x); return x }
	for _, x := range []struct {
		name  string
		init  wire.Init
		cause wire.CauseCode // of the ABORT; 0: silence
	}{
		{"tag 0", with(func(x *wire.Init) { x.Tag = 0 }), 0},
		{"no outbound streams", with(func(x *wire.Init) { x.OutStreams = 0 }), wire.CauseInvalidParam},
		{"no inbound streams", with(func(x *wire.Init) { x.InStreams = 0 }), wire.CauseInvalidParam},
		{"small window", with(func(x *wire.Init) { x.RWND = 1499 }), wire.CauseInvalidParam},
		{"host name", with(func(x *wire.Init) { x.Params = wire.AppendHostName(nil, "z.example") }), wire.CauseUnresolvableAddress},
		{"truncated parameter", with(func(x *wire.Init) { x.Params = []byte{0, 5, 0, 8, 1, 2} }), wire.CauseProtocolViolation},
		{"parameter length 0", with(func(x *wire.Init) { x.Params = []byte{0, 5, 0, 0, 1, 2, 3, 4} }), wire.CauseProtocolViolation},
		{"IPv4 address of 5 bytes", with(func(x *wire.Init) { x.Params = wire.AppendParam(nil, wire.ParamIPv4, make([]byte, 5)) }), wire.CauseProtocolViolation},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 11)
			p.z.listen()
			r := p.z.listener.HandlePacket(p.now, p.z.initPacket(x.init), nil)
			if x.cause == 0 {
				if len(r.Reply) != 0 {
					t.Errorf("answered with %s", wire.Describe(r.Reply))
				}
				return
			}
			wantChunks(t, r.Reply, wire.ChunkAbort)
			h, _ := wire.ParseHeader(r.Reply)
			it := wire.NewChunks(r.Reply[wire.HeaderLen:])
			it.Next()
			a, _ := wire.ParseAbort(it.Chunk())
			if h.VTag != 77 || a.Reflected || !hasCause(a.Causes, x.cause) {
				t.Errorf("answered with %s", wire.Describe(r.Reply))
			}
		})
	}
}

// RFC 9260, Section 3.2.1, Table 3.
func TestUnknownParameters(t *testing.T) {
	after := wire.AppendForwardTSNSupported(nil)
	for _, x := range []struct {
		name            string
		typ             wire.ParamType
		stops, reported bool
	}{{"00", 0x3fff, true, false}, {"01", 0x7fff, true, true}, {"10", 0xbfff, false, false}, {"11", 0xfffe, false, true}} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 12)
			p.z.listen()
			unknown := wire.AppendParam(nil, x.typ, []byte("hello"))
			r := p.z.listener.HandlePacket(p.now, p.z.initPacket(wire.Init{Tag: 1, RWND: 9999, OutStreams: 1, InStreams: 1,
				Params: append(bytes.Clone(unknown), after...)}), nil)
			wantChunks(t, r.Reply, wire.ChunkInitAck)
			it := wire.NewChunks(r.Reply[wire.HeaderLen:])
			it.Next()
			ack, _ := wire.ParseInitAck(it.Chunk())
			q, reported := wire.FindParam(ack.Params, wire.ParamUnrecognized)
			if reported != x.reported || reported && !bytes.HasPrefix(unknown, q.Value) {
				t.Errorf("reported: %v, want %v", reported, x.reported)
			}
			c, _ := wire.FindParam(ack.Params, wire.ParamStateCookie)
			var s cookie.State
			if err := p.z.jar.Open(&s, wire.Header{SrcPort: portA, DstPort: portZ, VTag: ack.Tag}, netip.AddrPort{}, netip.AddrPort{}, c.Value, p.now); err != nil {
				t.Fatal(err)
			}
			if got := s.Features.Has(feature.PartialReliability); got == x.stops {
				t.Errorf("parameter behind it seen: %v, want %v", got, !x.stops)
			}
		})
	}
}

// Unknown parameters of an INIT ACK are reported in an ERROR bundled with the
// COOKIE ECHO (RFC 9260, Section 3.2.2).
func TestUnknownParameterOfInitAck(t *testing.T) {
	p := newPair(t, 13)
	p.a.dial(p.z)
	p.a.outbox()
	params := wire.AppendParam(wire.AppendStateCookie(nil, []byte("cookie")), 0xfffe, []byte("hello"))
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendInitAck(nil, wire.Init{Tag: 9, RWND: 5000, OutStreams: 1, InStreams: 1, Params: params})))
	p.a.wantState(CookieEchoed)
	wantChunks(t, only(t, p.a.outbox()), wire.ChunkCookieEcho, wire.ChunkError)
}

func TestBadInitAck(t *testing.T) {
	param := wire.AppendStateCookie(nil, []byte("cookie"))
	good := wire.Init{Tag: 77, RWND: 1500, OutStreams: 1, InStreams: 1, TSN: 5, Params: param}
	with := func(f func(*wire.Init)) wire.Init { x := good; f(&x); return x }
	for _, x := range []struct {
		name  string
		ack   wire.Init
		state State
		flags uint8
		cause wire.CauseCode
	}{
		{"tag 0", with(func(x *wire.Init) { x.Tag = 0 }), Closed, 1, wire.CauseInvalidParam},
		{"no outbound streams", with(func(x *wire.Init) { x.OutStreams = 0 }), Closed, 0, wire.CauseInvalidParam},
		{"no inbound streams", with(func(x *wire.Init) { x.InStreams = 0 }), Closed, 0, wire.CauseInvalidParam},
		{"small window", with(func(x *wire.Init) { x.RWND = 1499 }), CookieWait, 0, wire.CauseInvalidParam},
		{"no cookie", with(func(x *wire.Init) { x.Params = nil }), Closed, 0, wire.CauseMissingParam},
		{"empty cookie", with(func(x *wire.Init) { x.Params = wire.AppendStateCookie(nil, nil) }), Closed, 0, wire.CauseInvalidParam},
		{"host name", with(func(x *wire.Init) { x.Params = wire.AppendHostName(bytes.Clone(param), "z.example") }), Closed, 0, wire.CauseUnresolvableAddress},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 14)
			p.a.dial(p.z)
			p.a.outbox()
			p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendInitAck(nil, x.ack)))
			p.a.wantState(x.state)
			pkt := only(t, p.a.outbox())
			wantChunks(t, pkt, wire.ChunkAbort)
			it := wire.NewChunks(pkt[wire.HeaderLen:])
			it.Next()
			want := uint32(77)
			if x.ack.Tag == 0 {
				want = p.a.assoc.Tag()
			}
			if h, _ := wire.ParseHeader(pkt); it.Chunk().Flags != x.flags || h.VTag != want {
				t.Errorf("answered with %s", wire.Describe(pkt))
			}
			if a, err := wire.ParseAbort(it.Chunk()); err != nil || !hasCause(a.Causes, x.cause) {
				t.Errorf("answered with %s, want cause %d", wire.Describe(pkt), x.cause)
			}
		})
	}
}

// RFC 9260, Section 6.10: INIT and INIT ACK stand alone.
func TestBundledInitIsDropped(t *testing.T) {
	p := newPair(t, 15)
	p.z.listen()
	init := wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 9999, OutStreams: 1, InStreams: 1})
	r := p.z.listener.HandlePacket(p.now, p.z.packet(0, init, wire.AppendCookieAck(nil)), nil)
	if r.Drop == DropNone || len(r.Reply) > 0 {
		t.Errorf("bundled INIT: %v", r)
	}
	p.a.dial(p.z)
	ack := wire.AppendInitAck(nil, wire.Init{Tag: 1, RWND: 9999, OutStreams: 1, InStreams: 1, Params: wire.AppendStateCookie(nil, []byte("c"))})
	if d := p.a.deliver(p.a.packet(p.a.assoc.Tag(), ack, wire.AppendCookieAck(nil))); d != DropMalformed {
		t.Errorf("bundled INIT ACK: %v", d)
	}
	p.a.wantState(CookieWait)
}

func TestNewClientChecksParams(t *testing.T) {
	addr := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:9899")}
	good := ClientParams{LocalPort: 1, PeerPort: 2, Tag: 3, Peer: addr}
	for i, f := range []func(*ClientParams){
		func(p *ClientParams) { p.LocalPort = 0 },
		func(p *ClientParams) { p.PeerPort = 0 },
		func(p *ClientParams) { p.Tag = 0 },
		func(p *ClientParams) { p.Peer = nil },
		func(p *ClientParams) { p.Peer = []netip.AddrPort{netip.MustParseAddrPort("224.0.0.1:9899")} },
	} {
		p := good
		f(&p)
		if _, err := NewClient(nil, 1, p); err != ErrParams {
			t.Errorf("case %d: error %v, want %v", i, err, ErrParams)
		}
	}
}
