package relay_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// loopback makes two sites with a gateway and a process each on loopback sockets.
func loopback(t testing.TB, set func(*relay.NodeConfig)) (a, b *relay.Node) {
	t.Helper()
	transport := func() *sctp.Transport {
		tr, err := sctp.NewTransport(sctp.TransportConfig{
			LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")},
		})
		wantNil(t, err)
		t.Cleanup(func() { _ = tr.Close() })
		return tr
	}
	at := func(tr *sctp.Transport, port uint16) sctp.Addr { return sctp.Addr{Addrs: tr.LocalAddrs(), Port: port} }
	tr := [2]*sctp.Transport{transport(), transport()}
	var nodes [2]*relay.Node
	for i := range uint16(2) {
		other := 1 - i
		g, err := relay.NewGateway(relay.GatewayConfig{
			Site: i + 1, Number: 1, LAN: tr[i], WAN: tr[i], Jobs: map[uint32][]byte{testJob: jobKey},
			Peers: []relay.Peer{{Site: other + 1, Gateway: 1, Addr: at(tr[other], relay.DefaultGatewayWAN), Key: siteKey(1, 2)}},
		})
		wantNil(t, err)
		t.Cleanup(func() { _ = g.Close() })
		cfg := relay.NodeConfig{
			Address: address(i+1, 1), Job: testJob, Key: jobKey, Transport: transport(),
			Gateways: []sctp.Addr{at(tr[i], relay.DefaultGatewayLAN)},
		}
		set(&cfg)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		nodes[i], err = relay.NewNode(ctx, cfg)
		cancel()
		wantNil(t, err)
		t.Cleanup(func() { _ = nodes[i].Close() })
	}
	return nodes[0], nodes[1]
}

// In steady state neither nodes nor gateways allocate, whatever the length of messages.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, upcall := range []bool{true, false} {
		a, b := loopback(t, func(c *relay.NodeConfig) {
			c.Mode = relay.Chained
			if upcall {
				c.OnFragment = func(*relay.Receiver, *relay.Fragment) {}
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		s, err := a.Sender(b.Address(), 0)
		wantNil(t, err)
		buf := make([]byte, 100_000)
		for _, size := range []int{8, 1000, 100_000} {
			msg := make([]byte, size)
			round := func() {
				if err := s.Send(ctx, msg, relay.SendOptions{}); err != nil {
					t.Fatal(err)
				}
				for got := 0; !upcall && got < size; {
					r, err := b.Next(ctx)
					if err != nil {
						t.Fatal(err)
					}
					for {
						n, _, err := r.TryRecv(buf)
						if err != nil {
							break
						}
						got += n
					}
				}
			}
			for range 200 {
				round()
			}
			if n := testing.AllocsPerRun(300, round); n >= 1 {
				t.Errorf("upcall %t, %d bytes: %v allocations for each message, want 0", upcall, size, n)
			}
		}
	}
}
