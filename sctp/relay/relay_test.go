package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/sctptest"
)

const testJob = 7

var jobKey = []byte("the key of job 7, for tests only")

func siteKey(a, b uint16) []byte {
	return fmt.Appendf(nil, "the key of the sites %d and %d", min(a, b), max(a, b))
}

// lan and wan are the links of most tests: 1 Gb/s with 25 µs and 9 ms, and queues for all that a leg has under
// way, so that slow start does not overshoot.
var (
	lan = sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
	wan = sctptest.Link{Delay: 9 * time.Millisecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
)

// world has sites of gateways and processes on a network in memory. Gateway g of site s has the address
// 10.s.255.g in its LAN and 192.0.s.g outside, process p 10.s.0.p.
type world struct {
	t        testing.TB
	net      *sctptest.Network
	mu       sync.Mutex
	hosts    map[string]*sctptest.Host // guarded by mu
	gateways int                       // of each site
	line     bool
	routes   map[uint16]map[uint16]uint16
	sites    []uint16
	up       map[[2]uint16]*gateway
	set      func(*relay.GatewayConfig)
}

type gateway struct {
	*relay.Gateway
	lan, wan *sctp.Transport
}

func lanAddr(site, gw uint16) string { return fmt.Sprintf("10.%d.255.%d", site, gw) }
func wanAddr(site, gw uint16) string { return fmt.Sprintf("192.0.%d.%d", site, gw) }
func nodeAddr(site, p uint16) string { return fmt.Sprintf("10.%d.0.%d", site, p) }

// newWorld makes sites 1 to n, each with some gateways, that are linked all with all, or, with routes, in a line.
func newWorld(t testing.TB, seed uint64, sites, gateways int, line bool, set func(*relay.GatewayConfig)) *world {
	w := &world{
		t: t, net: sctptest.NewNetwork(seed), gateways: gateways, line: line, hosts: make(map[string]*sctptest.Host), routes: make(map[uint16]map[uint16]uint16),
		up: make(map[[2]uint16]*gateway), set: set,
	}
	w.net.SetDefault(lan)
	for s := range uint16(sites) {
		w.sites = append(w.sites, s+1)
	}
	for _, s := range w.sites {
		w.routes[s] = make(map[uint16]uint16)
		if line {
			for _, to := range w.sites {
				switch {
				case to > s+1:
					w.routes[s][to] = s + 1
				case to+1 < s:
					w.routes[s][to] = s - 1
				}
			}
		}
		for g := range uint16(gateways) {
			w.host(lanAddr(s, g+1))
			w.host(wanAddr(s, g+1))
		}
	}
	w.wan(wan)
	for _, s := range w.sites {
		for g := range uint16(gateways) {
			_ = w.start(s, g+1)
		}
	}
	return w
}

// wan sets the links between gateways of different sites.
func (w *world) wan(l sctptest.Link) {
	for _, s := range w.sites {
		for _, d := range w.sites {
			for g := range uint16(w.gateways) {
				for h := range uint16(w.gateways) {
					if s != d {
						w.net.SetLink(wanAddr(s, g+1), wanAddr(d, h+1), l)
					}
				}
			}
		}
	}
}

func (w *world) host(ip string) *sctptest.Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hosts[ip]
	if h == nil {
		h = w.net.NewHost(ip)
		w.hosts[ip] = h
	}
	return h
}

func (w *world) transport(ip string) *sctp.Transport {
	w.t.Helper()
	pc, err := w.host(ip).ListenPacket(ip + ":9899")
	wantNil(w.t, err)
	t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}, BusyPoll: -1})
	wantNil(w.t, err)
	return t
}

// start starts a gateway.
func (w *world) start(site, gw uint16) *gateway {
	w.t.Helper()
	g := &gateway{lan: w.transport(lanAddr(site, gw)), wan: w.transport(wanAddr(site, gw))}
	cfg := relay.GatewayConfig{
		Site: site, Number: gw, LAN: g.lan, WAN: g.wan, Jobs: map[uint32][]byte{testJob: jobKey},
		Routes: w.routes[site], Log: testLog(w.t),
	}
	for _, s := range w.sites {
		if w.line && (s > site+1 || s+1 < site) {
			continue
		}
		for h := range uint16(w.gateways) {
			if s != site || h+1 != gw {
				cfg.Peers = append(cfg.Peers, relay.Peer{
					Site: s, Gateway: h + 1, Addr: sctpAddr(wanAddr(s, h+1), relay.DefaultGatewayWAN), Key: siteKey(site, s),
				})
			}
		}
	}
	if w.set != nil {
		w.set(&cfg)
	}
	var err error
	g.Gateway, err = relay.NewGateway(cfg)
	wantNil(w.t, err)
	w.up[[2]uint16{site, gw}] = g
	return g
}

// kill ends a gateway without a word to its peers.
func (w *world) kill(site, gw uint16) {
	g := w.up[[2]uint16{site, gw}]
	delete(w.up, [2]uint16{site, gw})
	w.cut(site, gw, w.net.Cut)
	g.close()
}

func (g *gateway) close() {
	_ = g.Close()
	_ = g.lan.Close()
	_ = g.wan.Close()
}

// revive starts a gateway that was killed.
func (w *world) revive(site, gw uint16) {
	w.t.Helper()
	w.cut(site, gw, w.net.Restore)
	w.start(site, gw)
}

func (w *world) cut(site, gw uint16, f func(a, b string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, own := range []string{lanAddr(site, gw), wanAddr(site, gw)} {
		for ip := range w.hosts {
			if ip != own {
				f(own, ip)
			}
		}
	}
}

// node is a process.
type node struct {
	*relay.Node
	transport *sctp.Transport
}

// node starts process p of a site.
func (w *world) node(site, p uint16, set func(*relay.NodeConfig)) *node {
	w.t.Helper()
	n, err := w.tryNode(site, p, set)
	wantNil(w.t, err)
	return n
}

func (w *world) tryNode(site, p uint16, set func(*relay.NodeConfig)) (*node, error) {
	w.t.Helper()
	n := &node{transport: w.transport(nodeAddr(site, p))}
	cfg := relay.NodeConfig{
		Address: address(site, p), Job: testJob, Key: jobKey, Transport: n.transport, Log: testLog(w.t),
	}
	for g := range uint16(w.gateways) {
		cfg.Gateways = append(cfg.Gateways, sctpAddr(lanAddr(site, g+1), relay.DefaultGatewayLAN))
	}
	if set != nil {
		set(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var err error
	if n.Node, err = relay.NewNode(ctx, cfg); err != nil {
		_ = n.transport.Close()
	}
	return n, err
}

func address(site, p uint16) relay.Address { return relay.Address{Site: site, Node: 1, Process: p} }

func (n *node) close() {
	_ = n.Close()
	_ = n.transport.Close()
}

// close ends all gateways and the network.
func (w *world) close() {
	for _, g := range w.up {
		g.close()
	}
	w.net.Close()
}

// connected waits until the gateways have their legs.
func (w *world) connected() {
	time.Sleep(time.Second)
}

func sctpAddr(ip string, port uint16) sctp.Addr {
	return sctp.Addr{Addrs: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(ip), sctp.DefaultUDPPort)}, Port: port}
}

func testLog(t testing.TB) *slog.Logger {
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
