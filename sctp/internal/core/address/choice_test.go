package address

import (
	"net/netip"
	"testing"
)

func TestCommonPrefix(t *testing.T) {
	for _, tc := range []struct {
		x, y string
		want int
	}{
		{"10.0.0.1", "10.0.0.1", 128}, {"10.0.0.1", "10.0.0.0", 127}, {"10.0.0.1", "138.0.0.1", 96},
		{"fd00::1", "7d00::1", 0},
	} {
		if n := commonPrefix(netip.MustParseAddr(tc.x), netip.MustParseAddr(tc.y)); n != tc.want {
			t.Errorf("%s and %s have %d bits in common, want %d", tc.x, tc.y, n, tc.want)
		}
	}
}

// Without an address of the family of remote, only a dual-stack socket reaches it.
func TestReaches(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("fd00::9")
	for _, tc := range []struct {
		local  string
		v4, v6 bool
	}{
		{"10.0.0.1:9899", true, false}, {"[fd00::1]:9899", false, true}, {"[::]:9899", true, true},
		{"[::]:0", false, true},
	} {
		l := NewLocal([]netip.AddrPort{netip.MustParseAddrPort(tc.local)})
		if l.Reaches(v4) != tc.v4 || l.Reaches(v6) != tc.v6 {
			t.Errorf("%s reaches IPv4 %v, IPv6 %v", tc.local, l.Reaches(v4), l.Reaches(v6))
		}
		home := l.InUse[0]
		if got := l.Other(home, v4, 1); got != home {
			t.Errorf("another address than the only one: %v", got)
		}
	}
	if l := NewLocal(nil); !l.Reaches(v4) {
		t.Error("without addresses there is no saying what is reached")
	}
}
