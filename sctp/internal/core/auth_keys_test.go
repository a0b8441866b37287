package core

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

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
	if err := p.a.assoc.SetAuthKey(1, make([]byte, auth.MaxSecret+1)); err != requests.ErrTooMany {
		t.Errorf("too long a secret: %v", err)
	}
	for id := range uint16(auth.MaxKeys) {
		if err := p.a.assoc.SetAuthKey(id, make([]byte, auth.MaxSecret)); err != nil {
			t.Errorf("key %d: %v", id, err)
		}
	}
	if err := p.a.assoc.SetAuthKey(auth.MaxKeys, nil); err != requests.ErrTooMany {
		t.Errorf("too many keys: %v", err)
	}
	p = connected(t, 418)
	if err := p.a.assoc.SetAuthKey(1, nil); err != requests.ErrNotSupported {
		t.Errorf("without AuthConfig: %v", err)
	}
}

// RFC 4895, Section 6.3: "it is important that the cookie … MUST NOT contain any
// endpoint pair shared keys". An INIT ACK does not depend on them.
func TestCookieHoldsNoKeys(t *testing.T) {
	answer := func(secret string) []byte {
		cfg := authConfig(wire.ChunkData)
		cfg.Auth.Keys, cfg.Auth.Active = []auth.Key{{ID: 7, Secret: []byte(secret)}}, 7
		l := NewListener(cfg, ListenerParams{Port: 5001, Local: []netip.AddrPort{addrPort("10.0.0.1:9899")}, Seed: [32]byte{9}})
		x := wire.Init{Tag: 1, RWND: 65536, OutStreams: 1, InStreams: 1}
		x.Params = auth.NewVector([auth.RandomLen]byte{}, cfg.withDefaults().Auth).AppendParams(nil)
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

// The parameters of INIT and INIT ACK make the key vector of the peer.
func TestAuthParametersMakeTheVector(t *testing.T) {
	v := auth.NewVector([auth.RandomLen]byte{1, 2, 3}, authAll().WithDefaults())
	var in cookie.Init
	in.Parse(&wire.Init{Params: v.AppendParams(nil)}, false)
	if !bytes.Equal(in.Auth.Vector(), v) || !in.Features.Has(feature.Auth) {
		t.Errorf("parsed % x, want % x", in.Auth.Vector(), v)
	}
}
