package core

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

func testCookie() *cookieState {
	s := &cookieState{created: clock.Time(time.Hour), life: clock.Time(time.Minute), localPort: 1, peerPort: 2, localTag: 3, peerTag: 4,
		localTie: 5, peerTie: 6, localTSN: 7, peerTSN: 8, peerRWND: 9, out: 10, in: 11, features: feature.PartialReliability, adaptation: 12,
		hasAdaptation: true, own: true, remote: netip.MustParseAddrPort("[2001:db8::1]:14")}
	s.addrs.Add(netip.MustParseAddr("10.0.0.9"))
	s.addrs.Add(netip.MustParseAddr("2001:db8::9"))
	s.primary = 2
	s.random, s.auth = [auth.RandomLen]byte{1, 2}, auth.NewVector([auth.RandomLen]byte{3}, (*auth.Config)(nil).WithDefaults(wire.ChunkData))
	return s
}

// testHeader is that of the packet with testCookie.
var testHeader = wire.Header{SrcPort: 2, DstPort: 1, VTag: 3}

func TestCookieRoundTrip(t *testing.T) {
	jar := NewCookieJar([32]byte{1})
	for i := range 1 << 6 {
		want := testCookie()
		if i&1 != 0 {
			want.localTie, want.peerTie = 0, 0
		}
		if i&2 != 0 {
			want.auth, want.random = nil, [auth.RandomLen]byte{}
		}
		if i&4 != 0 {
			want.hasAdaptation, want.adaptation = false, 0
		}
		if i&8 != 0 {
			want.addrs, want.primary = address.List{}, 0
		}
		if i&16 != 0 {
			want.remote = netip.MustParseAddrPort("10.0.0.8:14")
		}
		if i&32 != 0 {
			jar.derive(want)
		}
		c := jar.seal(nil, want)
		var got cookieState
		if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.created+want.life); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, *want) {
			t.Errorf("got %+v\nwant %+v", got, *want)
		}
		if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.created+want.life+1); err != errCookieStale {
			t.Errorf("after its life: %v", err)
		}
		if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.created-cookieTick); err != errCookieForged {
			t.Errorf("before it was made: %v", err)
		}
		// The time in the cookie is the same again after 2^32 ms.
		if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.created+cookieTick<<32); err != errCookieForged {
			t.Errorf("seven weeks later: %v", err)
		}
		if len(c) > maxCookie || len(c) < cookieMin+cookieMAC {
			t.Errorf("cookie of %d bytes, maxCookie is %d", len(c), maxCookie)
		}
	}
}

// Of the common header the cookie holds nothing, but the MAC covers it.
func TestCookieIsBoundToPortsAndTag(t *testing.T) {
	jar := NewCookieJar([32]byte{1})
	s := testCookie()
	c := jar.seal(nil, s)
	var got cookieState
	for _, h := range []wire.Header{{SrcPort: 1, DstPort: 2, VTag: 3}, {SrcPort: 2, DstPort: 2, VTag: 3}, {SrcPort: 2, DstPort: 1, VTag: 4}} {
		if err := jar.open(&got, h, netip.AddrPort{}, netip.AddrPort{}, c, s.created); err != errCookieForged {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// What derives from a cookie is different for every handshake.
func TestDerivedTSNsDiffer(t *testing.T) {
	jar := NewCookieJar([32]byte{1})
	tsns, randoms := map[seq.TSN]bool{}, map[[auth.RandomLen]byte]bool{}
	n := 0
	for _, f := range []func(*cookieState){func(*cookieState) {}, func(s *cookieState) { s.localTag++ }, func(s *cookieState) { s.peerTag++ },
		func(s *cookieState) { s.created += cookieTick }, func(s *cookieState) { s.peerPort++ },
		func(s *cookieState) { s.remote = netip.MustParseAddrPort("10.0.0.1:1") }} {
		s := testCookie()
		f(s)
		jar.derive(s)
		tsns[s.localTSN], randoms[s.random] = true, true
		n++
	}
	if len(tsns) != n || len(randoms) != n {
		t.Errorf("%d TSNs and %d RANDOMs for %d handshakes", len(tsns), len(randoms), n)
	}
}

func TestLargestCookieFits(t *testing.T) {
	s := testCookie()
	s.addrs, s.auth, s.life = address.List{}, make(auth.Vector, auth.MaxVector), 1<<63-1
	for i := range 2 * address.MaxPeer {
		s.addrs.Add(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)}))
	}
	if len(s.addrs.All()) != address.MaxPeer {
		t.Errorf("%d addresses taken, want %d", len(s.addrs.All()), address.MaxPeer)
	}
	jar := NewCookieJar([32]byte{1})
	c := jar.seal(nil, s)
	var got cookieState
	if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, s.created); err != nil || len(c) > maxCookie {
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
		if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, f, s.created); err != errCookieForged {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
	}
	for n := range c {
		if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c[:n], s.created); err != errCookieForged {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if err := NewCookieJar([32]byte{2}).open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, s.created); err != errCookieForged {
		t.Errorf("another jar: %v", err)
	}
	if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, make([]byte, 4000), s.created); err != errCookieForged {
		t.Errorf("4000 zeros: %v", err)
	}
}

// RFC 9260, Section 5.1.3: "The secret key SHOULD be changed reasonably
// frequently (e.g., hourly)". A cookie made before the change is still good.
func TestCookieKeyRotation(t *testing.T) {
	jar := NewCookieJar([32]byte{1})
	s := testCookie()
	s.created = cookieKeyLife - cookieTick
	before := jar.mac(s, macCookie, []byte("the same"))
	s.created = cookieKeyLife
	if jar.mac(s, macCookie, []byte("the same")) == before {
		t.Error("the key is the same an hour later")
	}
	s.created = cookieKeyLife - cookieTick
	var got cookieState
	if err := jar.open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, jar.seal(nil, s), cookieKeyLife+1); err != nil {
		t.Errorf("a cookie from before the change: %v", err)
	}
}
