package core

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/wire"
)

// authAll wants every chunk type authenticated that can be.
func authAll() *auth.Config {
	c := &auth.Config{}
	for t := range 256 {
		c.Chunks = append(c.Chunks, wire.ChunkType(t))
	}
	return c
}

func authConfig(chunks ...wire.ChunkType) *Config { return &Config{Auth: &auth.Config{Chunks: chunks}} }

// wantAuthenticated fails the test when a chunk of one of the types leaves
// without an AUTH chunk before it.
func (p *pair) wantAuthenticated(types ...wire.ChunkType) {
	p.net.mangle = func(from *host, pkt []byte) []byte {
		authed := false
		for _, c := range chunkTypes(pkt) {
			if c == wire.ChunkAuth {
				if authed {
					p.t.Errorf("%s sent two AUTH chunks: %s", from.name, wire.Describe(pkt))
				}
				authed = true
			} else if !authed && slices.Contains(types, c) {
				p.t.Errorf("%s sent %s", from.name, wire.Describe(pkt))
			}
		}
		return pkt
	}
}

// RFC 4895, Section 6.2: "Endpoints MUST send all requested chunks that have been
// authenticated where this has been requested by the peer."
func TestAuthenticatedTransfers(t *testing.T) {
	for i, types := range [][]wire.ChunkType{
		{wire.ChunkData, wire.ChunkIData}, {wire.ChunkSack}, {wire.ChunkCookieEcho, wire.ChunkCookieAck},
		{wire.ChunkHeartbeat, wire.ChunkShutdown, wire.ChunkReConfig}, authAll().Chunks,
	} {
		for _, mtu := range []int{pmtu.MinMTU, 1452} {
			t.Run(fmt.Sprintf("%d/%d", i, mtu), func(t *testing.T) {
				cfg := authConfig(types...)
				cfg.MTU, cfg.RTOMin, cfg.HBInterval = mtu, 100*time.Millisecond, time.Second
				cfg.Discover = true
				p := newPair(t, uint64(400+i), cfg)
				p.wantAuthenticated(cfg.withDefaults().Auth.Chunks...)
				p.a.listen()
				p.connect()
				if !p.a.assoc.Authenticated() || !p.z.assoc.Authenticated() {
					t.Fatal("not authenticated")
				}
				p.net.loss = 50
				for n := range 40 {
					p.a.send(uint16(n%3), 1+n*97)
					p.z.send(uint16(n%3), 1+n*197)
				}
				// Sizes around what a packet holds.
				for n := mtu - 120; n <= mtu; n++ {
					p.a.send(0, n)
				}
				p.a.must(p.a.assoc.ResetStreams(p.now, nil))
				p.drive()
				p.advance(3 * time.Second)
				p.wantDelivered()
				p.net.loss = 0
				p.a.assoc.Shutdown(p.now)
				p.advance(10 * time.Second)
				p.a.wantState(Closed)
				p.z.wantState(Closed)
				if p.a.assoc.Err() != nil || p.z.assoc.Err() != nil {
					t.Errorf("A: %v, Z: %v", p.a.assoc.Err(), p.z.assoc.Err())
				}
			})
		}
	}
}

func TestMaxPayloadLeavesRoomForAuth(t *testing.T) {
	p := connected(t, 410, authConfig(wire.ChunkData, wire.ChunkIData))
	n := p.a.assoc.MaxPayload()
	sent := len(p.a.sent)
	p.a.send(0, n)
	p.drive()
	data := 0
	for _, s := range p.a.sent[sent:] {
		if bytes.Contains([]byte(s), []byte("DATA")) {
			data++
		}
	}
	if data != 1 {
		t.Errorf("the largest payload went in %d packets", data)
	}
}

// A chunk that has become too long for the path goes out all the same, behind an
// AUTH chunk (RFC 9260, Section 6.9).
func TestAuthenticatedOversizeChunk(t *testing.T) {
	p := connected(t, 409, authConfig(wire.ChunkData, wire.ChunkIData))
	lost := false
	p.net.drop = func(from *host, pkt []byte) bool {
		drop := !lost && from == p.a && len(pkt) > 1200
		lost = lost || drop
		return drop
	}
	p.a.send(0, 1300)
	p.a.flush()
	if err := p.a.assoc.SetPathMTU(p.z.local[0], 600); err != nil || !lost {
		t.Fatal(err, lost)
	}
	p.drive()
	p.wantDelivered()
}

// An answer that leaves no room for the AUTH chunk it needs is dropped. It does not stay due for
// ever, ahead of what is due after it.
func TestAuthenticatedAnswerTooLong(t *testing.T) {
	p := connected(t, 412, authConfig(wire.ChunkHeartbeatAck, wire.ChunkSack))
	p.drive()
	mtu := p.z.assoc.paths[0].mtu
	for n := mtu - wire.HeaderLen - 2*p.z.assoc.auth.ChunkLen(); n <= mtu-wire.HeaderLen; n += 4 {
		info := make([]byte, n-wire.ChunkHeaderLen)
		p.z.deliver(p.z.packet(p.z.assoc.Tag(), wire.AppendChunk(nil, wire.ChunkHeartbeat, 0, info)))
		p.a.send(0, 10)
		p.a.flush()
		p.drive()
		p.wantDelivered()
		if due, ok := p.z.assoc.ctl.path(); ok {
			t.Fatalf("an answer of %d bytes is due on path %d for ever", n, due)
		}
	}
}

// A packet for one path does not drop an answer that is due on another, where packets are longer.
func TestAnswerOnLongerPath(t *testing.T) {
	var q controlQueue
	q.begin(4000)
	q.reply(1, wire.ChunkHeartbeatAck, 0, make([]byte, 1200))
	if b := q.appendTo(nil, 0, 500, 500, true); len(b) != 0 || q.n != 1 {
		t.Fatalf("%d bytes on path 0, %d answers left, want none and 1", len(b), q.n)
	}
	if b := q.appendTo(nil, 1, 1400, 1400, true); len(b) != 1204 || q.n != 0 {
		t.Fatalf("%d bytes on path 1, %d answers left, want 1204 and none", len(b), q.n)
	}
}

// An end that does not know AUTH, or was not asked for it, is talked to without.
func TestAuthNotNegotiated(t *testing.T) {
	for _, cfg := range [][]*Config{{authConfig(wire.ChunkData), {}}, {{}, authConfig(wire.ChunkData)}} {
		p := newPair(t, 411, cfg...)
		p.connect()
		p.a.send(0, 1000)
		p.z.send(0, 1000)
		p.drive()
		p.wantDelivered()
		for _, h := range []*host{p.a, p.z} {
			if h.assoc.Authenticated() {
				t.Errorf("%s authenticates", h.name)
			}
		}
		// An AUTH chunk is unknown then: it stops the packet.
		m := auth.State{On: true, HMAC: wire.HMACSHA1}
		m.Set(0, nil)
		p.z.outbox()
		p.z.deliver(p.z.packet(p.z.assoc.Tag(), m.Begin(nil), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("1234")})))
		if out := p.z.outbox(); len(out) != 0 {
			t.Errorf("answered with %s", wire.Describe(out[0]))
		}
	}
}

// authed makes chunks that h's peer authenticates with the state m.
func authed(m *auth.State, chunks ...[]byte) []byte {
	b := m.Begin(nil)
	for _, c := range chunks {
		b = append(b, c...)
	}
	m.Finish(b)
	return b
}

// RFC 4895, Section 6.3: "It MUST silently discard these chunks if they are not
// placed after an AUTH chunk in the packet", and all that follows a wrong one.
func TestUnauthenticatedChunksAreDiscarded(t *testing.T) {
	p := connected(t, 412, authConfig(wire.ChunkHeartbeat, wire.ChunkAbort))
	z, peer := p.z.assoc, &p.a.assoc.auth
	beat := func(s string) []byte { return wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte(s)}) }
	answers := func(chunks ...[]byte) (n int) {
		p.z.outbox()
		p.z.deliver(p.z.packet(z.Tag(), chunks...))
		for _, out := range p.z.outbox() {
			for _, c := range chunkTypes(out) {
				if c == wire.ChunkHeartbeatAck {
					n++
				}
			}
		}
		return n
	}
	good := func() []byte { return authed(peer, beat("good")) }
	if n := answers(good()); n != 1 {
		t.Fatalf("an authenticated HEARTBEAT is answered %d times", n)
	}
	bit := good()
	bit[len(bit)-1] ^= 1
	mac := good()
	mac[wire.AuthHeaderLen] ^= 0x80
	other := *peer
	other.Set(3, []byte("unknown"))
	other.Use(3)
	cut := good()
	binary.BigEndian.PutUint16(cut[2:], wire.AuthHeaderLen+28)
	long := wire.AppendAuth(nil, wire.Auth{HMACID: wire.HMACSHA1, HMAC: make([]byte, 200)})
	for name, b := range map[string][]byte{"plain": beat("bad"), "changed": bit, "HMAC": mac, "key": authed(&other, beat("bad")),
		"long": append(long, beat("bad")...),
		"cut":  cut[:wire.AuthHeaderLen+28]} {
		if n := answers(b); n != 0 {
			t.Errorf("%s: answered", name)
		}
	}
	// Before the AUTH chunk nothing is authenticated, behind it everything; a
	// second one ends the packet.
	if n := answers(beat("bad"), good()); n != 1 {
		t.Errorf("one before, one behind: %d answers", n)
	}
	if n := answers(authed(peer, beat("good"), wire.AppendPad(nil, 8), beat("good"), good())); n != 2 {
		t.Errorf("AUTH in the authenticated part: %d answers, want 2", n)
	}
	// Other chunks pass without.
	p.z.deliver(p.z.packet(z.Tag(), wire.AppendOpError(nil, wire.OpError{Causes: wire.AppendInvalidStream(nil, 1)})))
	p.z.wantEvent(EventPeerError)
	// An ABORT needs it; with the T bit, too.
	p.z.deliver(p.z.packet(z.Tag(), wire.AppendAbort(nil, wire.Abort{})))
	p.z.deliver(p.z.packet(z.PeerTag(), wire.AppendAbort(nil, wire.Abort{Reflected: true})))
	p.z.deliver(p.z.packet(z.Tag(), wire.AppendPad(nil, 8), wire.AppendAbort(nil, wire.Abort{})))
	p.z.wantState(Established)
	if p.z.dropped[DropAuth] == 0 {
		t.Error("nothing was counted")
	}
	p.a.assoc.Abort(p.now, nil)
	p.advance(time.Second)
	p.z.wantState(Closed)
}

// RFC 4895, Section 6.3: if the algorithm "was not specified by the receiver …
// the AUTH chunk and all the chunks after it MUST be discarded and an ERROR
// chunk SHOULD be sent".
func TestUnsupportedHMAC(t *testing.T) {
	p := connected(t, 413, &Config{Auth: &auth.Config{Chunks: []wire.ChunkType{wire.ChunkHeartbeat}, HMACs: []uint16{wire.HMACSHA1}}})
	m := p.a.assoc.auth
	m.HMAC = wire.HMACSHA256
	p.z.outbox()
	p.z.deliver(p.z.packet(p.z.assoc.Tag(), authed(&m, wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("1234")}))))
	out := only(t, p.z.outbox())
	it := wire.NewChunks(out[wire.HeaderLen:])
	for it.Next() {
		if x, err := wire.ParseOpError(it.Chunk()); err == nil {
			cs := wire.NewCauses(x.Causes)
			cs.Next()
			if id, err := wire.ParseUnsupportedHMAC(cs.Cause()); err != nil || id != wire.HMACSHA256 {
				t.Errorf("cause %v: %d, %v", cs.Cause().Code, id, err)
			}
			return
		}
	}
	t.Errorf("answered with %s", wire.Describe(out))
}

// RFC 4895, Section 6.3: with COOKIE ECHO in the list "only associations from
// clients with a correct endpoint pair shared key are accepted", and nobody else
// can restart one.
func TestAuthenticatedCookieEcho(t *testing.T) {
	with := func(secret string) *Config {
		c := authConfig(wire.ChunkCookieEcho)
		c.MaxInitRetrans, c.Auth.Active = 2, 5
		c.Auth.Keys = []auth.Key{{ID: 5, Secret: []byte(secret)}}
		return c
	}
	p := newPair(t, 414, with("right"))
	p.a.send0(t, p, with("wrong"))
	if p.z.assoc != nil {
		t.Fatal("a client with the wrong key was let in")
	}
	p.a.send0(t, p, authConfig())
	if p.z.assoc != nil {
		t.Fatal("a client without a key was let in")
	}
	p.a.cfg = with("right")
	p.connect()
	p.a.send(0, 100)
	p.drive()
	// A restart fails, because the new key is not that of the association.
	was := p.z.assoc.PeerTag()
	p.a.assoc = nil
	p.a.dial(p.z)
	p.advance(30 * time.Second)
	if p.z.assoc.PeerTag() != was {
		t.Error("the association was restarted")
	}
}

// send0 tries to connect h to the listener with a configuration.
func (h *host) send0(t *testing.T, p *pair, cfg *Config) {
	t.Helper()
	h.cfg, h.assoc, h.old = cfg, nil, nil
	p.z.listen()
	h.dial(p.z)
	p.advance(time.Minute)
	if h.assoc.State() == Established {
		t.Error("the client believes to be connected")
	}
	h.assoc, h.events = nil, nil
}

// Restarts and collisions without COOKIE ECHO in the list agree on new keys: RFC
// 4895, Section 6.1, RANDOM follows "the same pattern as those for the
// Verification Tag".
func TestAuthAfterRestartAndCollision(t *testing.T) {
	cfg := authConfig(wire.ChunkData, wire.ChunkIData, wire.ChunkSack)
	p := connected(t, 415, cfg)
	p.z.send(0, 100)
	p.drive()
	random := p.z.assoc.auth.Random
	p.a.assoc = nil
	p.a.in = map[uint16]*ledger{}
	p.z.out, p.z.in, p.z.released = map[uint16]*ledger{}, map[uint16]*ledger{}, map[*body]error{}
	p.a.dial(p.z)
	if !p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Established }) {
		t.Fatal("no restart")
	}
	p.z.wantEvent(EventRestart)
	if p.z.assoc.auth.Random == random {
		t.Error("the restarted association has the same RANDOM")
	}
	p.a.send(0, 5000)
	p.z.send(1, 5000)
	p.drive()
	p.wantDelivered()

	for seed := range 40 {
		p := newPair(t, uint64(seed), cfg)
		p.net.jitter, p.net.loss = 20*time.Millisecond, seed%4*80
		p.a.dial(p.z)
		p.z.dial(p.a)
		if !p.driveUntil(5*time.Minute, func() bool {
			return p.a.assoc.State() == Established && p.z.assoc.State() == Established
		}) {
			t.Fatalf("seed %d: not established", seed)
		}
		p.a.send(0, 5000)
		p.z.send(1, 5000)
		p.drive()
		p.wantDelivered()
	}
}

// RFC 4895, Section 6.1: "If the Random Number is not 32 bytes, the association
// MUST be aborted." Parameters occur once, and their length is bounded.
func TestAuthParametersRefused(t *testing.T) {
	random := wire.AppendRandom(nil, make([]byte, 32))
	algo := wire.AppendHMACAlgo(nil, wire.HMACSHA1)
	for name, params := range map[string][]byte{
		"short":       slices.Concat(wire.AppendRandom(nil, make([]byte, 31)), algo),
		"long":        slices.Concat(wire.AppendRandom(nil, make([]byte, 36)), algo),
		"twice":       slices.Concat(random, random, algo),
		"many hmacs":  slices.Concat(random, wire.AppendHMACAlgo(nil, make([]uint16, 17)...)),
		"odd hmacs":   slices.Concat(random, wire.AppendParam(nil, wire.ParamHMACAlgo, []byte{0, 1, 2})),
		"many chunks": slices.Concat(random, algo, wire.AppendParam(nil, wire.ParamChunkList, make([]byte, 257))),
	} {
		for _, cfg := range []*Config{authConfig(), {}} {
			p := newPair(t, 419, cfg)
			p.z.listen()
			pkt := p.z.packet(0, wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 5000, OutStreams: 1, InStreams: 1, Params: params}))
			r := p.z.listener.HandlePacket(p.now, pkt, nil)
			if got := hasChunk(r.Reply, wire.ChunkAbort); got != (cfg.Auth != nil) {
				t.Errorf("%s: aborted %v with %+v", name, got, cfg.Auth)
			}
		}
	}
	// What we do not know is as if it was not there.
	p := newPair(t, 420, authConfig(wire.ChunkData))
	p.z.listen()
	params := slices.Concat(random, wire.AppendHMACAlgo(nil, 9, 2, 4))
	pkt := p.z.packet(0, wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 5000, OutStreams: 1, InStreams: 1, Params: params}))
	r := p.z.listener.HandlePacket(p.now, pkt, nil)
	if !hasChunk(r.Reply, wire.ChunkInitAck) || bytes.Contains(r.Reply, []byte{0x80, 2, 0, 36}) {
		t.Errorf("unknown algorithms: %s", wire.Describe(r.Reply))
	}
}

// Packets that begin with AUTH and belong to nobody (RFC 4895, Section 6.3: "The
// out of the blue handling MUST be based on the packet without taking the AUTH
// chunk into account").
func TestAuthOutOfTheBlue(t *testing.T) {
	p := newPair(t, 421, authConfig())
	p.z.listen()
	var m auth.State
	c := authConfig().withDefaults().Auth
	m.Init(c, [auth.RandomLen]byte{1})
	m.Learn(true, auth.NewVector([auth.RandomLen]byte{2}, c))
	for _, x := range []struct {
		chunk []byte
		want  string
	}{
		{wire.AppendShutdownAck(nil), "SHUTDOWN COMPLETE"},
		{wire.AppendCookieAck(nil), ""},
		{wire.AppendAbort(nil, wire.Abort{}), ""},
		{wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: make([]byte, 200)}), ""},
		{wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("1234")}), "ABORT"},
		{nil, "ABORT"},
	} {
		pkt := p.z.packet(77, authed(&m, x.chunk))
		for _, r := range []Answer{p.z.listener.HandlePacket(p.now, pkt, nil).Answer, HandleOOTB(nil, pkt, nil)} {
			got := ""
			if len(r.Reply) > 0 {
				got = wire.Describe(r.Reply)
			}
			if (x.want == "") != (got == "") || !bytes.Contains([]byte(got), []byte(x.want)) {
				t.Errorf("%x: reply %q, want %q", x.chunk, got, x.want)
			}
		}
	}
}
