package core

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

func testCookie() *cookieState {
	s := &cookieState{created: Time(time.Hour), life: Time(time.Minute), localPort: 1, peerPort: 2, localTag: 3, peerTag: 4,
		localTie: 5, peerTie: 6, localTSN: 7, peerTSN: 8, peerRWND: 9, out: 10, in: 11, features: featPR, adaptation: 12,
		hasAdaptation: true, local: netip.MustParseAddrPort("10.0.0.1:13"), remote: netip.MustParseAddrPort("[2001:db8::1]:14")}
	s.addrs.add(netip.MustParseAddr("10.0.0.9"))
	s.addrs.add(netip.MustParseAddr("2001:db8::9"))
	s.random, s.auth = [authRandomLen]byte{1, 2}, newAuthVector([authRandomLen]byte{3}, (*AuthConfig)(nil).withDefaults(wire.ChunkData))
	return s
}

func TestCookieRoundTrip(t *testing.T) {
	jar := NewCookieJar([32]byte{1})
	want := testCookie()
	c := jar.seal(nil, want)
	var got cookieState
	if err := jar.open(&got, c, want.created+want.life); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, *want) {
		t.Errorf("got %+v\nwant %+v", got, *want)
	}
	if err := jar.open(&got, c, want.created+want.life+1); err != errCookieStale {
		t.Errorf("after its life: %v", err)
	}
	if err := jar.open(&got, c, want.created-1); err != errCookieForged {
		t.Errorf("before it was made: %v", err)
	}
	if len(c) > maxCookie {
		t.Errorf("cookie of %d bytes, maxCookie is %d", len(c), maxCookie)
	}
}

func TestLargestCookieFits(t *testing.T) {
	s := testCookie()
	s.local, s.addrs, s.auth = s.remote, addrList{}, make(authVector, maxAuthVector)
	for i := range 2 * MaxPeerAddrs {
		s.addrs.add(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)}))
	}
	if s.addrs.n != MaxPeerAddrs {
		t.Errorf("%d addresses taken, want %d", s.addrs.n, MaxPeerAddrs)
	}
	jar := NewCookieJar([32]byte{1})
	c := jar.seal(nil, s)
	var got cookieState
	if err := jar.open(&got, c, s.created); err != nil || len(c) != maxCookie {
		t.Errorf("%d bytes, maxCookie %d, error %v", len(c), maxCookie, err)
	}
}

// No bit of a cookie can be changed, and no other jar opens it.
func TestCookieForgery(t *testing.T) {
	jar := NewCookieJar([32]byte{1})
	s := testCookie()
	c := jar.seal(nil, s)
	var got cookieState
	for i := range 8 * len(c) {
		f := bytes.Clone(c)
		f[i/8] ^= 1 << (i % 8)
		if err := jar.open(&got, f, s.created); err != errCookieForged {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
	}
	for n := range c {
		if err := jar.open(&got, c[:n], s.created); err != errCookieForged {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if err := NewCookieJar([32]byte{2}).open(&got, c, s.created); err != errCookieForged {
		t.Errorf("another jar: %v", err)
	}
	if err := jar.open(&got, make([]byte, 4000), s.created); err != errCookieForged {
		t.Errorf("4000 zeros: %v", err)
	}
}

// RFC 9260, Section 5.1.3: "The secret key SHOULD be changed reasonably
// frequently (e.g., hourly)". A cookie made before the change is still good.
func TestCookieKeyRotation(t *testing.T) {
	jar := NewCookieJar([32]byte{1})
	msg := []byte("the same")
	a, b := jar.mac(nil, msg, cookieKeyLife-1), jar.mac(nil, msg, cookieKeyLife)
	if bytes.Equal(a, b) {
		t.Error("the key is the same an hour later")
	}
	s := testCookie()
	s.created = cookieKeyLife - 1
	var got cookieState
	if err := jar.open(&got, jar.seal(nil, s), cookieKeyLife+1); err != nil {
		t.Errorf("a cookie from before the change: %v", err)
	}
}

// RFC 9260, Section 5.1.5, steps 1 to 4, at the listener.
func TestListenerChecksCookie(t *testing.T) {
	p := newPair(t, 20)
	p.z.listen()
	p.a.dial(p.z)
	r := p.z.listener.HandlePacket(p.now, p.z.to(only(t, p.a.outbox())), nil)
	p.a.deliver(p.a.to(r.Reply))
	echo := only(t, p.a.outbox())
	h, _ := wire.ParseHeader(echo)
	try := func(name string, pkt *Packet, l *Listener, now Time) Result {
		t.Helper()
		r := l.HandlePacket(now, pkt, nil)
		if r.New != nil {
			t.Errorf("%s: an association was made", name)
		}
		return r
	}
	edit := func(f func(b []byte)) *Packet {
		b := bytes.Clone(echo)
		f(b)
		wire.SetChecksum(b)
		return p.z.to(b)
	}
	for _, x := range []struct {
		name string
		pkt  *Packet
	}{
		{"forged cookie", edit(func(b []byte) { b[40] ^= 1 })},
		{"wrong tag", edit(func(b []byte) { b[7] ^= 1 })},
		{"wrong source port", edit(func(b []byte) { b[1] ^= 1 })},
	} {
		if r := try(x.name, x.pkt, p.z.listener, p.now); len(r.Reply) > 0 || r.Drop != DropCookie {
			t.Errorf("%s: %v, reply %x", x.name, r.Drop, r.Reply)
		}
	}
	late := p.now + Time(DefaultCookieLife) + Time(3*time.Millisecond)
	rs := try("expired cookie", p.z.to(echo), p.z.listener, late)
	wantChunks(t, rs.Reply, wire.ChunkError)
	hs, _ := wire.ParseHeader(rs.Reply)
	if hs.VTag != p.a.assoc.Tag() || hs.SrcPort != h.DstPort {
		t.Errorf("stale cookie answered with %s", wire.Describe(rs.Reply))
	}
	it := wire.NewChunks(rs.Reply[wire.HeaderLen:])
	it.Next()
	e, _ := wire.ParseOpError(it.Chunk())
	cs := wire.NewCauses(e.Causes)
	cs.Next()
	if usec, err := wire.ParseStaleCookie(cs.Cause()); err != nil || usec != 3000 {
		t.Errorf("staleness %d, %v, want 3000 µs", usec, err)
	}
	if r := p.z.listener.HandlePacket(p.now, p.z.to(echo), nil); r.New == nil {
		t.Errorf("the genuine cookie: %v", r.Drop)
	}
}
