package stream_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
	"github.com/weftstack/weft/sctp/sctptest"
)

const testJob = 7

var (
	jobKey  = []byte("the key of job 7, for tests only")
	siteKey = []byte("the key of sites 1 and 2, for tests")

	lan = sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
	wan = sctptest.Link{Delay: 9 * time.Millisecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
)

// world has two sites with gateways on a network in memory. Gateway g of site s has the address 10.s.255.g in its LAN
// and 192.0.s.g outside, process p 10.s.0.p.
type world struct {
	t        testing.TB
	net      *sctptest.Network
	hosts    map[string]*sctptest.Host
	gateways uint16
	up       map[[2]uint16]*gateway
}

type gateway struct {
	*relay.Gateway
	lan, wan *sctp.Transport
}

func lanAddr(site, gw uint16) string { return fmt.Sprintf("10.%d.255.%d", site, gw) }
func wanAddr(site, gw uint16) string { return fmt.Sprintf("192.0.%d.%d", site, gw) }

func newWorld(t testing.TB, seed uint64, gateways uint16, lan, wan sctptest.Link) *world {
	w := &world{
		t: t, net: sctptest.NewNetwork(seed), hosts: make(map[string]*sctptest.Host), gateways: gateways,
		up: make(map[[2]uint16]*gateway),
	}
	w.net.SetDefault(lan)
	for g := range gateways {
		for h := range gateways {
			w.host(lanAddr(1, g+1))
			w.host(lanAddr(2, g+1))
			w.host(wanAddr(1, g+1))
			w.host(wanAddr(2, h+1))
			w.net.SetLink(wanAddr(1, g+1), wanAddr(2, h+1), wan)
			w.net.SetLink(wanAddr(2, h+1), wanAddr(1, g+1), wan)
		}
	}
	for g := range gateways {
		w.start(1, g+1)
		w.start(2, g+1)
	}
	time.Sleep(time.Second)
	return w
}

func (w *world) host(ip string) *sctptest.Host {
	if w.hosts[ip] == nil {
		w.hosts[ip] = w.net.NewHost(ip)
	}
	return w.hosts[ip]
}

func (w *world) transport(ip string) *sctp.Transport {
	w.t.Helper()
	pc, err := w.host(ip).ListenPacket(ip + ":9899")
	wantNil(w.t, err)
	t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}, BusyPoll: -1})
	wantNil(w.t, err)
	return t
}

func (w *world) start(site, gw uint16) {
	w.t.Helper()
	g := &gateway{lan: w.transport(lanAddr(site, gw)), wan: w.transport(wanAddr(site, gw))}
	cfg := relay.GatewayConfig{
		Site: site, Number: gw, LAN: g.lan, WAN: g.wan, Jobs: map[uint32][]byte{testJob: jobKey}, Log: testLog(),
	}
	for s := uint16(1); s <= 2; s++ {
		for h := range w.gateways {
			if s != site || h+1 != gw {
				cfg.Peers = append(cfg.Peers, relay.Peer{
					Site: s, Gateway: h + 1, Addr: sctpAddr(wanAddr(s, h+1), relay.DefaultGatewayWAN), Key: siteKey,
				})
			}
		}
	}
	var err error
	g.Gateway, err = relay.NewGateway(cfg)
	wantNil(w.t, err)
	w.up[[2]uint16{site, gw}] = g
}

// kill ends a gateway without a word to its peers; revive starts it again.
func (w *world) kill(site, gw uint16) {
	g := w.up[[2]uint16{site, gw}]
	delete(w.up, [2]uint16{site, gw})
	w.cut(w.net.Cut, lanAddr(site, gw), wanAddr(site, gw))
	g.close()
}

func (w *world) revive(site, gw uint16) {
	w.cut(w.net.Restore, lanAddr(site, gw), wanAddr(site, gw))
	w.start(site, gw)
}

func (w *world) cut(f func(a, b string), own ...string) {
	for _, o := range own {
		for ip := range w.hosts {
			if ip != o {
				f(o, ip)
			}
		}
	}
}

func (g *gateway) close() {
	_ = g.Close()
	_ = g.lan.Close()
	_ = g.wan.Close()
}

// end is a process with its endpoint.
type end struct {
	*stream.Endpoint
	w         *world
	ip        string
	node      *relay.Node
	transport *sctp.Transport
}

func (w *world) end(site, p uint16, set func(*relay.NodeConfig, *stream.Config)) *end {
	w.t.Helper()
	x := &end{w: w, ip: fmt.Sprintf("10.%d.0.%d", site, p)}
	x.transport = w.transport(x.ip)
	nc := relay.NodeConfig{
		Address: address(site, p), Job: testJob, Key: jobKey, Transport: x.transport, PeerTimeout: 5 * time.Second, Log: testLog(),
	}
	for g := range w.gateways {
		nc.Gateways = append(nc.Gateways, sctpAddr(lanAddr(site, g+1), relay.DefaultGatewayLAN))
	}
	sc := stream.Config{Log: testLog()}
	if set != nil {
		set(&nc, &sc)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var err error
	x.node, err = relay.NewNode(ctx, nc)
	wantNil(w.t, err)
	sc.Node = x.node
	x.Endpoint, err = stream.New(sc)
	wantNil(w.t, err)
	return x
}

func address(site, p uint16) relay.Address { return relay.Address{Site: site, Node: 1, Process: p} }

func (x *end) close() {
	_ = x.Endpoint.Close()
	_ = x.node.Close()
	_ = x.transport.Close()
}

// kill ends the process without a word.
func (x *end) kill() {
	x.w.cut(x.w.net.Cut, x.ip)
	x.close()
	x.w.cut(x.w.net.Restore, x.ip)
}

func (w *world) close() {
	for _, g := range w.up {
		g.close()
	}
	w.net.Close()
}

func sctpAddr(ip string, port uint16) sctp.Addr {
	return sctp.Addr{Addrs: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(ip), sctp.DefaultUDPPort)}, Port: port}
}

func testLog() *slog.Logger {
	if os.Getenv("WEFT_RELAY_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

func wantNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair has two processes in two sites, and a connection between them.
type pair struct {
	*world
	a, b *end
	c, d *stream.Conn
}

func newPair(t *testing.T, set func(*relay.NodeConfig, *stream.Config)) *pair {
	t.Helper()
	p := &pair{world: newWorld(t, 1, 1, lan, wan)}
	p.a, p.b = p.end(1, 1, set), p.end(2, 1, set)
	p.c, p.d = p.connect(p.a, p.b)
	return p
}

// connect opens a connection from a to b.
func (w *world) connect(a, b *end) (c, d *stream.Conn) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		r, err := b.Accept(ctx)
		if err == nil {
			d, err = r.Accept(ctx)
		}
		done <- err
	}()
	c, err := a.Dial(ctx, b.Address(), []byte("request"))
	wantNil(w.t, err)
	wantNil(w.t, <-done)
	return c, d
}

func (p *pair) close() {
	p.a.close()
	p.b.close()
	p.world.close()
}
