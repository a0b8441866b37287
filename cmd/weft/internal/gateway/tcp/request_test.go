package tcp

import (
	"bytes"
	"net/netip"
	"testing"
)

func TestRequest(t *testing.T) {
	for _, r := range []request{
		{netip.MustParseAddrPort("10.2.0.1:80"), netip.MustParseAddrPort("10.1.0.1:40000")},
		{netip.MustParseAddrPort("[fd02::1]:65535"), netip.MustParseAddrPort("[fd01::1]:1")},
	} {
		b := r.append(nil)
		if got, err := parseRequest(b); err != nil || got != r {
			t.Errorf("%v: got %v, %v", r, got, err)
		}
		for n := range len(b) {
			if _, err := parseRequest(b[:n]); err == nil {
				t.Errorf("%v: accepted after %d of %d bytes", r, n, len(b))
			}
		}
	}
	mixed := request{netip.MustParseAddrPort("[fd02::1]:80"), netip.MustParseAddrPort("127.0.0.1:40000")}
	if got, err := parseRequest(mixed.append(nil)); err != nil || got.dst != mixed.dst || got.src.Port() != 0 {
		t.Errorf("a client of another family: %v, %v", got, err)
	}
	hidden := request{netip.MustParseAddrPort("[::ffff:127.0.0.1]:80"), netip.MustParseAddrPort("[fd01::1]:1")}
	if _, err := parseRequest(hidden.append(nil)); err == nil {
		t.Error("an IPv4 address in IPv6 was accepted")
	}
}

// FuzzRequest: what is accepted is what was written.
func FuzzRequest(f *testing.F) {
	f.Add(request{netip.MustParseAddrPort("10.2.0.1:80"), netip.MustParseAddrPort("10.1.0.1:40000")}.append(nil))
	f.Add(request{netip.MustParseAddrPort("[fd02::1]:80"), netip.MustParseAddrPort("[fd01::1]:1")}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseRequest(b); err == nil && !bytes.Equal(r.append(nil), b) {
			t.Errorf("%x became %v, which is %x", b, r, r.append(nil))
		}
	})
}
