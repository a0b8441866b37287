package relay_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// BenchmarkEcho is the round trip of a message over loopback UDP: over a direct association, over a leg and a gateway each
// way, and over two gateways. The median is in the metrics: gateways add (two - direct) / 2 to the way of a message.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{8, 1000} {
		b.Run(fmt.Sprintf("size=%d/path=direct", size), func(b *testing.B) {
			x, y := loopbackPair(b)
			echo(b, size, func(msg []byte) error { return x.send(msg) }, x.got, func() { y.echo.Store(true) })
		})
		for _, gateways := range []int{1, 2} {
			b.Run(fmt.Sprintf("size=%d/path=gateways-%d", size, gateways), func(b *testing.B) {
				done := make(chan struct{}, 1)
				var back *relay.Sender
				var start atomic.Bool
				x, y := loopbackSites(b, gateways, func(c *relay.NodeConfig) {
					far := c.Address != address(1, 1)
					c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) {
						if far && start.Load() {
							if err := back.TrySend(f.Data, relay.SendOptions{}); err != nil {
								b.Error(err)
							}
						} else if !far {
							done <- struct{}{}
						}
					}
				})
				s, err := x.Sender(y.Address(), 0)
				wantNil(b, err)
				back, err = y.Sender(x.Address(), 0)
				wantNil(b, err)
				echo(b, size, func(msg []byte) error { return s.TrySend(msg, relay.SendOptions{}) }, done, func() { start.Store(true) })
			})
		}
	}
}

// echo measures round trips.
func echo(b *testing.B, size int, send func([]byte) error, done chan struct{}, start func()) {
	start()
	msg := make([]byte, size)
	round := func() {
		wantNil(b, send(msg))
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			b.Fatal("no echo")
		}
	}
	for range 500 {
		round()
	}
	times := make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		wantNil(b, send(msg))
		<-done
		if len(times) < cap(times) {
			times = append(times, time.Since(began))
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2])/1e3, "µs/median")
}

// end is an end of an association over loopback UDP.
type end struct {
	a    atomic.Pointer[sctp.Association]
	got  chan struct{}
	echo atomic.Bool
}

func (e *end) send(msg []byte) error { return e.a.Load().TrySend(msg, sctp.SendOptions{}) }

func loopbackPair(b *testing.B) (x, y *end) {
	b.Helper()
	ends := [2]*end{{got: make(chan struct{}, 1)}, {got: make(chan struct{}, 1)}}
	var eps [2]*sctp.Endpoint
	for i, e := range ends {
		var err error
		eps[i], err = loopbackTransport(b).Listen(1, &sctp.Config{OnPiece: func(a *sctp.Association, p *sctp.Piece) {
			if e.echo.Load() {
				if err := a.TrySend(p.Data, sctp.SendOptions{}); err != nil {
					b.Error(err)
				}
				return
			}
			e.got <- struct{}{}
		}})
		wantNil(b, err)
	}
	a, err := eps[0].Connect(b.Context(), eps[1].Addr())
	wantNil(b, err)
	ends[0].a.Store(a)
	return ends[0], ends[1]
}

func loopbackTransport(t testing.TB) *sctp.Transport {
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	wantNil(t, err)
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// loopbackSites makes a process in each of two sites with a gateway each, or two in one site, on loopback sockets.
func loopbackSites(t testing.TB, gateways int, set func(*relay.NodeConfig)) (a, b *relay.Node) {
	t.Helper()
	at := func(tr *sctp.Transport, port uint16) sctp.Addr { return sctp.Addr{Addrs: tr.LocalAddrs(), Port: port} }
	var gs []*relay.Gateway
	lans, wans := make([]*sctp.Transport, gateways), make([]*sctp.Transport, gateways)
	for i := range lans {
		lans[i], wans[i] = loopbackTransport(t), loopbackTransport(t)
	}
	for i := range lans {
		cfg := relay.GatewayConfig{Site: uint16(i + 1), Number: 1, LAN: lans[i], WAN: wans[i], Jobs: map[uint32][]byte{testJob: jobKey}}
		for k := range lans {
			if k != i {
				cfg.Peers = append(cfg.Peers, relay.Peer{
					Site: uint16(k + 1), Gateway: 1, Addr: at(wans[k], relay.DefaultGatewayWAN), Key: siteKey(1, 2),
				})
			}
		}
		g, err := relay.NewGateway(cfg)
		wantNil(t, err)
		t.Cleanup(func() { _ = g.Close() })
		gs = append(gs, g)
	}
	for _, g := range gs {
		for deadline := time.Now().Add(10 * time.Second); len(g.Stats().Legs) < gateways-1; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no leg between the gateways")
			}
		}
	}
	var nodes [2]*relay.Node
	for i := range uint16(2) {
		site := min(i, uint16(gateways-1))
		cfg := relay.NodeConfig{
			Address: address(site+1, i+1), Job: testJob, Key: jobKey, Transport: loopbackTransport(t),
			Gateways: []sctp.Addr{at(lans[site], relay.DefaultGatewayLAN)},
		}
		set(&cfg)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var err error
		nodes[i], err = relay.NewNode(ctx, cfg)
		cancel()
		wantNil(t, err)
		t.Cleanup(func() { _ = nodes[i].Close() })
	}
	return nodes[0], nodes[1]
}

// BenchmarkThroughput is bulk data over loopback UDP, in messages of 256 KiB.
func BenchmarkThroughput(b *testing.B) {
	const message = 256 << 10
	b.Run("path=direct", func(b *testing.B) {
		var got atomic.Int64
		listener := loopbackTransport(b)
		ep, err := listener.Listen(1, &sctp.Config{OnPiece: func(_ *sctp.Association, p *sctp.Piece) { got.Add(int64(len(p.Data))) }})
		wantNil(b, err)
		from, err := loopbackTransport(b).Listen(0, nil)
		wantNil(b, err)
		a, err := from.Connect(b.Context(), ep.Addr())
		wantNil(b, err)
		bulk(b, message, &got, func(msg []byte) error { return a.Send(b.Context(), msg, sctp.SendOptions{}) })
	})
	for _, gateways := range []int{1, 2} {
		b.Run(fmt.Sprintf("path=gateways-%d", gateways), func(b *testing.B) {
			var got atomic.Int64
			x, y := loopbackSites(b, gateways, func(c *relay.NodeConfig) {
				c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) { got.Add(int64(len(f.Data))) }
			})
			s, err := x.Sender(y.Address(), 0)
			wantNil(b, err)
			bulk(b, message, &got, func(msg []byte) error { return s.Send(b.Context(), msg, relay.SendOptions{}) })
		})
	}
}

func bulk(b *testing.B, message int, got *atomic.Int64, send func([]byte) error) {
	msg := make([]byte, message)
	total := int64(0)
	wait := func() {
		for deadline := time.Now().Add(time.Minute); got.Load() < total; time.Sleep(50 * time.Microsecond) {
			if time.Now().After(deadline) {
				b.Fatal("not all has arrived")
			}
		}
	}
	for range 20 {
		wantNil(b, send(msg))
		total += int64(message)
	}
	wait()
	b.SetBytes(int64(message))
	b.ReportAllocs()
	for b.Loop() {
		wantNil(b, send(msg))
		total += int64(message)
	}
	wait()
}
