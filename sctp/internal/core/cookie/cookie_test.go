package cookie

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

func testCookie() *State {
	s := &State{Created: clock.Time(time.Hour), Life: clock.Time(time.Minute), LocalPort: 1, PeerPort: 2, LocalTag: 3, PeerTag: 4,
		LocalTie: 5, PeerTie: 6, LocalTSN: 7, PeerTSN: 8, PeerRWND: 9, Out: 10, In: 11, Features: feature.PartialReliability, Adaptation: 12,
		HasAdaptation: true, Own: true, Remote: netip.MustParseAddrPort("[2001:db8::1]:14")}
	s.Addrs.Add(netip.MustParseAddr("10.0.0.9"))
	s.Addrs.Add(netip.MustParseAddr("2001:db8::9"))
	s.Primary = 2
	s.Random, s.Auth = [auth.RandomLen]byte{1, 2}, auth.NewVector([auth.RandomLen]byte{3}, (*auth.Config)(nil).WithDefaults(wire.ChunkData))
	return s
}

// testHeader is that of the packet with testCookie.
var testHeader = wire.Header{SrcPort: 2, DstPort: 1, VTag: 3}

func TestCookieRoundTrip(t *testing.T) {
	jar := NewJar([32]byte{1})
	for i := range 1 << 6 {
		want := testCookie()
		if i&1 != 0 {
			want.LocalTie, want.PeerTie = 0, 0
		}
		if i&2 != 0 {
			want.Auth, want.Random = nil, [auth.RandomLen]byte{}
		}
		if i&4 != 0 {
			want.HasAdaptation, want.Adaptation = false, 0
		}
		if i&8 != 0 {
			want.Addrs, want.Primary = address.List{}, 0
		}
		if i&16 != 0 {
			want.Remote = netip.MustParseAddrPort("10.0.0.8:14")
		}
		if i&32 != 0 {
			jar.Derive(want)
		}
		c := jar.Seal(nil, want)
		var got State
		if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.Created+want.Life); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, *want) {
			t.Errorf("got %+v\nwant %+v", got, *want)
		}
		if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.Created+want.Life+1); err != ErrStale {
			t.Errorf("after its life: %v", err)
		}
		if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.Created-tick); err != ErrForged {
			t.Errorf("before it was made: %v", err)
		}
		// The time in the cookie is the same again after 2^32 ms.
		if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, want.Created+tick<<32); err != ErrForged {
			t.Errorf("seven weeks later: %v", err)
		}
		if len(c) > MaxLen || len(c) < minLen+macLen {
			t.Errorf("cookie of %d bytes, maxCookie is %d", len(c), MaxLen)
		}
	}
}

// Of the common header the cookie holds nothing, but the MAC covers it.
func TestCookieIsBoundToPortsAndTag(t *testing.T) {
	jar := NewJar([32]byte{1})
	s := testCookie()
	c := jar.Seal(nil, s)
	var got State
	for _, h := range []wire.Header{{SrcPort: 1, DstPort: 2, VTag: 3}, {SrcPort: 2, DstPort: 2, VTag: 3}, {SrcPort: 2, DstPort: 1, VTag: 4}} {
		if err := jar.Open(&got, h, netip.AddrPort{}, netip.AddrPort{}, c, s.Created); err != ErrForged {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// What derives from a cookie is different for every handshake.
func TestDerivedTSNsDiffer(t *testing.T) {
	jar := NewJar([32]byte{1})
	tsns, randoms := map[seq.TSN]bool{}, map[[auth.RandomLen]byte]bool{}
	n := 0
	for _, f := range []func(*State){func(*State) {}, func(s *State) { s.LocalTag++ }, func(s *State) { s.PeerTag++ },
		func(s *State) { s.Created += tick }, func(s *State) { s.PeerPort++ },
		func(s *State) { s.Remote = netip.MustParseAddrPort("10.0.0.1:1") }} {
		s := testCookie()
		f(s)
		jar.Derive(s)
		tsns[s.LocalTSN], randoms[s.Random] = true, true
		n++
	}
	if len(tsns) != n || len(randoms) != n {
		t.Errorf("%d TSNs and %d RANDOMs for %d handshakes", len(tsns), len(randoms), n)
	}
}

func TestLargestCookieFits(t *testing.T) {
	s := testCookie()
	s.Addrs, s.Auth, s.Life = address.List{}, make(auth.Vector, auth.MaxVector), 1<<63-1
	for i := range 2 * address.MaxPeer {
		s.Addrs.Add(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)}))
	}
	if len(s.Addrs.All()) != address.MaxPeer {
		t.Errorf("%d addresses taken, want %d", len(s.Addrs.All()), address.MaxPeer)
	}
	jar := NewJar([32]byte{1})
	c := jar.Seal(nil, s)
	var got State
	if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, s.Created); err != nil || len(c) > MaxLen {
		t.Errorf("%d bytes, maxCookie %d, error %v", len(c), MaxLen, err)
	}
}

// No bit of a cookie can be changed, and no other jar opens it.
func TestCookieForgery(t *testing.T) {
	jar := NewJar([32]byte{1})
	s := testCookie()
	c := jar.Seal(nil, s)
	var got State
	for i := range 8 * len(c) {
		f := bytes.Clone(c)
		f[i/8] ^= 1 << (i % 8)
		if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, f, s.Created); err != ErrForged {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
	}
	for n := range c {
		if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c[:n], s.Created); err != ErrForged {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if err := NewJar([32]byte{2}).Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, c, s.Created); err != ErrForged {
		t.Errorf("another jar: %v", err)
	}
	if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, make([]byte, 4000), s.Created); err != ErrForged {
		t.Errorf("4000 zeros: %v", err)
	}
}

// RFC 9260, Section 5.1.3: "The secret key SHOULD be changed reasonably
// frequently (e.g., hourly)". A cookie made before the change is still good.
func TestCookieKeyRotation(t *testing.T) {
	jar := NewJar([32]byte{1})
	s := testCookie()
	s.Created = keyLife - tick
	before := jar.mac(s, macCookie, []byte("the same"))
	s.Created = keyLife
	if jar.mac(s, macCookie, []byte("the same")) == before {
		t.Error("the key is the same an hour later")
	}
	s.Created = keyLife - tick
	var got State
	if err := jar.Open(&got, testHeader, netip.AddrPort{}, netip.AddrPort{}, jar.Seal(nil, s), keyLife+1); err != nil {
		t.Errorf("a cookie from before the change: %v", err)
	}
}
