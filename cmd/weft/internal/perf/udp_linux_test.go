package perf

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// Round trips of raw datagrams are what others are compared with: they allocate
// nothing, polling or not.
func TestUDPTripsDoNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	for _, poll := range []time.Duration{0, time.Second} {
		s := &spec{Latency: true, Size: 64, BusyPoll: poll}
		target, err := newUDPEnd(s, netip.MustParseAddrPort("127.0.0.1:0"), netip.AddrPort{})
		if err != nil {
			t.Fatal(err)
		}
		defer target.close()
		go target.echo()
		source, err := newUDPEnd(s, netip.AddrPort{}, netip.MustParseAddrPort(target.addr()))
		if err != nil {
			t.Fatal(err)
		}
		defer source.close()
		trip := func() {
			if err := source.trip(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			trip()
		}
		if n := testing.AllocsPerRun(1000, trip); n != 0 {
			t.Errorf("busy-poll %v: %v allocations per round trip", poll, n)
		}
	}
}
