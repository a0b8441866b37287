package core

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 4895, Section 6.1, computed by hand: the key vectors are RANDOM, CHUNKS
// and HMAC-ALGO without padding, the smaller one goes first, behind the endpoint
// pair shared key.
func TestAssociationSharedKey(t *testing.T) {
	var ra, rz [32]byte
	for i := range ra {
		ra[i], rz[i] = byte(i), byte(0x20+i)
	}
	// A wants ASCONF, ASCONF-ACK and DATA, and prefers SHA-256; Z lists nothing
	// and knows SHA-1 only.
	va := slices.Concat([]byte{0x80, 2, 0, 36}, ra[:], []byte{0x80, 3, 0, 7, 0xC1, 0x80, 0}, []byte{0x80, 4, 0, 8, 0, 3, 0, 1})
	vz := slices.Concat([]byte{0x80, 2, 0, 36}, rz[:], []byte{0x80, 4, 0, 6, 0, 1})
	ca := (&AuthConfig{Chunks: []wire.ChunkType{wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkData}}).withDefaults()
	if got := newAuthVector(ra, ca); !bytes.Equal(got, va) {
		t.Fatalf("vector of A % x\nwant % x", got, va)
	}
	if got := newAuthVector(rz, &AuthConfig{HMACs: []uint16{1}}); !bytes.Equal(got, vz) {
		t.Fatalf("vector of Z % x\nwant % x", got, vz)
	}
	// vz is shorter, and so the smaller number.
	want := slices.Concat([]byte("secret"), vz, va)
	a, z := authState{mine: va, theirs: vz}, authState{mine: vz, theirs: va}
	if got := a.sharedKey([]byte("secret")); !bytes.Equal(got, want) {
		t.Errorf("key of A % x\nwant % x", got, want)
	}
	if got := z.sharedKey([]byte("secret")); !bytes.Equal(got, want) {
		t.Errorf("key of Z % x\nwant % x", got, want)
	}
	if got := z.sharedKey(nil); !bytes.Equal(got, want[6:]) {
		t.Errorf("key without a secret % x", got)
	}
	// A uses what Z lists first and the other way round.
	if a.theirs.hmac() != wire.HMACSHA1 || z.theirs.hmac() != wire.HMACSHA256 {
		t.Error("wrong choice of algorithms")
	}
	// Padded in an INIT they read the same.
	x := wire.Init{Params: authVector(va).appendParams(nil)}
	if len(x.Params) != len(va)+1 {
		t.Errorf("%d bytes of parameters for a vector of %d", len(x.Params), len(va))
	}
	var in initInfo
	in.parse(&x, false)
	if !bytes.Equal(in.auth.vector(), va) || !in.features.has(featAuth) {
		t.Errorf("parsed % x", in.auth.vector())
	}
}

func TestKeyVectorOrder(t *testing.T) {
	for _, x := range []struct {
		name string
		a, b authVector // a goes first
	}{
		{"smaller", authVector{1, 2, 3}, authVector{1, 2, 4}},
		{"shorter is smaller", authVector{9, 9}, authVector{1, 0, 0}},
		{"leading zeros", authVector{0, 0, 5}, authVector{7}},
		// "If the key vectors are equal as numbers but differ in length …
		// followed by the shorter key vector, followed by the longer".
		{"equal numbers", authVector{5}, authVector{0, 5}},
	} {
		if !x.a.less(x.b) || x.b.less(x.a) {
			t.Errorf("%s: % x is not before % x", x.name, x.a, x.b)
		}
	}
}

// A key is changed by adding it at both ends, using it, and deleting the old
// one.
func TestAuthKeyChange(t *testing.T) {
	p := connected(t, 416, authConfig(wire.ChunkData, wire.ChunkIData))
	exchange := func() {
		t.Helper()
		p.a.send(0, 3000)
		p.z.send(0, 3000)
		p.drive()
		p.wantDelivered()
	}
	exchange()
	for _, h := range []*host{p.a, p.z} {
		if err := h.assoc.SetAuthKey(9, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	exchange()
	if err := p.a.assoc.UseAuthKey(9); err != nil {
		t.Fatal(err)
	}
	exchange()
	if e := p.z.wantEvent(EventAuthKey); e.Key != 9 {
		t.Errorf("key %d, want 9", e.Key)
	}
	p.a.wantNoEvent(EventAuthKey)
	if err := p.a.assoc.DeleteAuthKey(9); err != ErrNoKey {
		t.Errorf("deleted the key in use: %v", err)
	}
	if err := p.a.assoc.UseAuthKey(8); err != ErrNoKey {
		t.Errorf("use of an unknown key: %v", err)
	}
	p.z.assoc.UseAuthKey(9)
	for _, h := range []*host{p.a, p.z} {
		if err := h.assoc.DeleteAuthKey(0); err != nil {
			t.Fatal(err)
		}
	}
	exchange()
	// Keys that differ: nothing gets through.
	p.a.assoc.SetAuthKey(9, []byte("other"))
	p.a.send(0, 100)
	p.advance(5 * time.Second)
	if p.idle() {
		t.Error("data under another key was acknowledged")
	}
	p.z.assoc.SetAuthKey(9, []byte("other"))
	p.drive()
	p.wantDelivered()
}

func TestAuthLimits(t *testing.T) {
	p := connected(t, 417, authConfig(wire.ChunkData))
	if err := p.a.assoc.SetAuthKey(1, make([]byte, MaxAuthSecret+1)); err != ErrTooMany {
		t.Errorf("too long a secret: %v", err)
	}
	for id := range uint16(MaxAuthKeys) {
		if err := p.a.assoc.SetAuthKey(id, make([]byte, MaxAuthSecret)); err != nil {
			t.Errorf("key %d: %v", id, err)
		}
	}
	if err := p.a.assoc.SetAuthKey(MaxAuthKeys, nil); err != ErrTooMany {
		t.Errorf("too many keys: %v", err)
	}
	p = connected(t, 418)
	if err := p.a.assoc.SetAuthKey(1, nil); err != ErrNotSupported {
		t.Errorf("without AuthConfig: %v", err)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	for _, id := range []uint16{wire.HMACSHA1, wire.HMACSHA256} {
		b.Run(fmt.Sprintf("hmac=%d", id), func(b *testing.B) {
			m := authState{on: true, mine: make(authVector, 50), theirs: make(authVector, 60), hmac: id}
			m.set(0, []byte("secret"))
			pkt := append(m.begin(nil), make([]byte, 1400)...)
			b.SetBytes(int64(len(pkt)))
			b.ReportAllocs()
			for b.Loop() {
				m.finish(pkt)
			}
		})
	}
}

// RFC 4895, Section 6.3: "it is important that the cookie … MUST NOT contain any
// endpoint pair shared keys". An INIT ACK does not depend on them.
func TestCookieHoldsNoKeys(t *testing.T) {
	answer := func(secret string) []byte {
		cfg := authConfig(wire.ChunkData)
		cfg.Auth.Keys, cfg.Auth.Active = []AuthKey{{ID: 7, Secret: []byte(secret)}}, 7
		l := NewListener(cfg, ListenerParams{Port: 5001, Local: []netip.AddrPort{addrPort("10.0.0.1:9899")}, Seed: [32]byte{9}})
		x := wire.Init{Tag: 1, RWND: 65536, OutStreams: 1, InStreams: 1}
		x.Params = newAuthVector([authRandomLen]byte{}, cfg.withDefaults().Auth).appendParams(nil)
		pkt := wire.AppendInit(wire.AppendHeader(nil, wire.Header{SrcPort: 5002, DstPort: 5001}), x)
		wire.SetChecksum(pkt)
		p := &Packet{Data: pkt}
		p.Local, p.Remote = addrPort("10.0.0.1:9899"), addrPort("10.0.0.2:9899")
		return l.HandlePacket(clock.Time(time.Hour), p, nil).Reply
	}
	one, other := answer("open sesame"), answer("another secret")
	if len(one) == 0 || !bytes.Equal(one, other) {
		t.Errorf("INIT ACKs depend on the keys:\n%x\n%x", one, other)
	}
	if bytes.Contains(one, []byte("sesame")) {
		t.Error("the secret is in the INIT ACK")
	}
}
