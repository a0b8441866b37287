package sctp

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Waits poll for all their time or not at all, and most do as long as that ends
// one in three.
func TestSpinBudget(t *testing.T) {
	var s spinBudget
	s.init(50 * time.Microsecond)
	// waits makes n waits of which polling would end each in so many, and returns
	// how many polled.
	waits := func(n, each int) (polled int) {
		for i := range n {
			switch d := s.budget(); d {
			case 0:
			case 50_000:
				polled++
				s.adapt(each > 0 && i%each == 0)
			default:
				t.Fatalf("budget of %v", d)
			}
		}
		return polled
	}
	const n = 1600
	for _, tt := range []struct {
		name     string
		each     int
		min, max int
	}{
		{"always useful", 1, n, n},
		{"seldom in vain", 2, n, n},
		{"in vain", 0, 0, n / 10},
		{"in vain, still", 0, 1, n / 10},
		{"useful again", 1, n - spinExplore, n},
	} {
		if got := waits(n, tt.each); got < tt.min || got > tt.max {
			t.Errorf("%s: %d of %d waits poll, want %d to %d", tt.name, got, n, tt.min, tt.max)
		}
	}
}

// Datagrams that came while the readers slept are all read when they take over,
// without another one that wakes them.
func TestReadersReadAllThatCame(t *testing.T) {
	tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if !tr.sockets().canPoll {
		t.Skip("sockets cannot be polled here")
	}
	to := tr.sockets().list[0].conn.LocalAddr()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := uint64(0)
	send := func(n int) {
		for range n {
			if _, err := c.Write([]byte("no packet")); err != nil { // too short for one
				t.Fatal(err)
			}
			sent++
		}
	}
	await := func() {
		t.Helper()
		for i := 0; tr.count.datagramsIn.Load() < sent; i++ {
			if i > 10_000 {
				t.Fatalf("%d of %d datagrams were read", tr.count.datagramsIn.Load(), sent)
			}
			<-time.After(time.Millisecond)
		}
	}
	for range 20 {
		send(3)
		await()
		tr.polling.setQuiet(tr, true)
		tr.polling.mu.Lock()
		tr.polling.timer.Stop()
		tr.polling.mu.Unlock()
		send(5)
		tr.polling.setQuiet(tr, false)
		await()
	}
}
