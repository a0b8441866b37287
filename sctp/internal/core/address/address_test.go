package address

import (
	"net/netip"
	"slices"
	"testing"
)

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestUsableAddresses(t *testing.T) {
	for s, want := range map[string]bool{"10.0.0.1": true, "2001:db8::1": true, "0.0.0.0": false, "::": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false} {
		if got := Usable(netip.MustParseAddr(s)); got != want {
			t.Errorf("Usable(%s) = %v, want %v", s, got, want)
		}
	}
	if got := Unmap(ap("[::ffff:10.0.0.1]:7")); got != ap("10.0.0.1:7") {
		t.Errorf("unmapped: %v", got)
	}
}

func TestListIsBoundedAndDistinct(t *testing.T) {
	var l List
	for i := range 2 * MaxPeer {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		l.Add(a)
		l.Add(netip.AddrFrom16(a.As16())) // the same, mapped
	}
	l.Add(netip.IPv4Unspecified())
	if n := len(l.All()); n != MaxPeer || !l.Contains(netip.MustParseAddr("10.0.0.3")) || l.Contains(netip.IPv4Unspecified()) {
		t.Errorf("%d addresses: %v", n, l.All())
	}
}

func TestListableUnlessAnyMayBeUsed(t *testing.T) {
	if got := Listable([]netip.AddrPort{ap("10.0.0.1:1"), ap("0.0.0.0:1")}); got != nil {
		t.Errorf("with a wildcard %v", got)
	}
	if got := Listable(make([]netip.AddrPort, 0)); len(got) != 0 {
		t.Errorf("of none %v", got)
	}
	many := slices.Repeat([]netip.AddrPort{ap("10.0.0.1:1")}, 2*MaxLocal)
	if got := Listable(many); len(got) != MaxLocal {
		t.Errorf("%d of many", len(got))
	}
}

// RFC 5061, Section 5.3, F4 and F14: an address on its way out is no source, and takes packets; one
// that was removed takes them for a while.
func TestLocalAddressComesAndGoes(t *testing.T) {
	a, b := ap("10.0.0.1:1"), ap("[::ffff:10.0.0.2]:1")
	l := NewLocal([]netip.AddrPort{a, b})
	b = Unmap(b)
	want := func(what string, sends, takes, leaving, removed bool) {
		t.Helper()
		if l.SendsFrom(b) != sends || l.Takes(5, b.Addr()) != takes || l.Leaving(b.Addr()) != leaving || l.Removed() != removed || !l.Has(a.Addr()) {
			t.Errorf("%s: %+v", what, l)
		}
	}
	want("in use", true, true, false, false)
	l.Leave(b)
	want("leaving", false, true, true, false)
	if got := l.ForRestart(a); !slices.Equal(got, []netip.AddrPort{a, b}) {
		t.Errorf("for a restart %v", got)
	}
	l.Stay(b)
	want("staying", true, true, false, false)
	l.Leave(b)
	l.Remove(b, 10)
	want("removed", false, true, false, true)
	if l.Takes(10, b.Addr()) {
		t.Error("it takes packets for too long")
	}
	if got := l.ForRestart(b); !slices.Equal(got, []netip.AddrPort{b, a}) {
		t.Errorf("a restart by the address that was removed: %v", got)
	}
	l.Restarted(l.ForRestart(b))
	want("restarted", true, true, false, false)
}

func TestWildcardIsAnyAddress(t *testing.T) {
	l := NewLocal([]netip.AddrPort{ap("0.0.0.0:1")})
	if !l.Any() || !l.SendsFrom(ap("10.0.0.9:1")) || !l.Takes(0, netip.MustParseAddr("10.0.0.9")) || l.Known().IsValid() {
		t.Errorf("%+v", l)
	}
	l.Add(ap("10.0.0.1:1"))
	if l.Known() != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("known: %v", l.Known())
	}
}
