package dynamic

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// TestWaitingConnectionsAreBounded lets more connections wait at a port than it keeps.
func TestWaitingConnectionsAreBounded(t *testing.T) {
	p := &port{waiting: make(chan net.Conn, MaxWaiting), closed: make(chan struct{})}
	a, _ := net.Pipe()
	for i := range MaxWaiting {
		if !p.queue(a) {
			t.Errorf("connection %d is refused", i)
		}
	}
	if p.queue(a) {
		t.Error("more than MaxWaiting connections wait")
	}
}

func FuzzParsePort(f *testing.F) {
	key := strings.Repeat("0f", portKeyLen)
	for _, s := range []string{"", portScheme + "127.0.0.1:1/" + key, portScheme + "[::1]:1/" + key, portScheme + "/" + key, portScheme} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		addr, key, err := parsePort(name)
		if err != nil {
			if !errors.Is(err, mpierr.ErrPort) {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		if len(key) != portKeyLen || len(name) > MaxPortName {
			t.Errorf("%q: key of %d bytes", name, len(key))
		}
		if _, err := netip.ParseAddrPort(addr); err != nil { // is for who dials to refuse
			if _, err := DialTCP(t.Context(), addr); !errors.Is(err, mpierr.ErrPort) {
				t.Errorf("%q: address %q: %v", name, addr, err)
			}
		}
	})
}
