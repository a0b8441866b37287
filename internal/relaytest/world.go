// Package relaytest has sites with gateways and processes on a network in memory, for tests of package relay and of
// what is built above it.
package relaytest

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

// Job is the job of all processes.
const Job = 7

var (
	// Key is its key.
	Key = []byte("the key of job 7, for tests only")

	// LAN and WAN are the links of the network unless others are set: 1 Gb/s with 25 µs and 9 ms, and queues for all
	// that a leg has under way, so that slow start does not overshoot.
	LAN = sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
	WAN = sctptest.Link{Delay: 9 * time.Millisecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
)

// LegKey returns the key of two sites.
func LegKey(a, b uint16) []byte {
	return fmt.Appendf(nil, "the key of the sites %d and %d", min(a, b), max(a, b))
}

// World has sites 1 to n with some gateways each. Gateway g of site s has the address 10.s.255.g in its LAN and
// 192.0.s.g outside, process p 10.s.0.p.
type World struct {
	Net *sctptest.Network
	// Up has the gateways that are up, by site and number.
	Up map[[2]uint16]*Gateway

	t        testing.TB
	mu       sync.Mutex
	hosts    map[string]*sctptest.Host // guarded by mu
	sites    uint16
	gateways uint16 // of each site
	line     bool   // each site has a leg to the next one only
	set      func(*relay.GatewayConfig)
}

// Gateway is a gateway with its transports.
type Gateway struct {
	*relay.Gateway
	LAN, WAN *sctp.Transport
}

// New makes a row of sites, with a leg from each to the next one, and starts the gateways. It must be closed.
func New(t testing.TB, seed uint64, sites, gateways int) *World {
	return NewWith(t, seed, sites, gateways, true, nil)
}

// NewWith is New in which each site has a leg to each other one, unless line is true, and set, if not nil, completes
// the configuration of the gateways.
func NewWith(t testing.TB, seed uint64, sites, gateways int, line bool, set func(*relay.GatewayConfig)) *World {
	w := &World{
		Net: sctptest.NewNetwork(seed), Up: make(map[[2]uint16]*Gateway), t: t, hosts: make(map[string]*sctptest.Host),
		sites: uint16(sites), gateways: uint16(gateways), line: line, set: set,
	}
	w.Net.SetDefault(LAN)
	for s := range w.sites {
		for g := range w.gateways {
			w.host(LANAddr(s+1, g+1))
			w.host(WANAddr(s+1, g+1))
		}
	}
	w.SetWAN(WAN)
	for s := range w.sites {
		for g := range w.gateways {
			w.start(s+1, g+1)
		}
	}
	return w
}

// LANAddr returns the IP address of a gateway in its site.
func LANAddr(site, gw uint16) string { return fmt.Sprintf("10.%d.255.%d", site, gw) }

// WANAddr returns the IP address of a gateway for those of other sites.
func WANAddr(site, gw uint16) string { return fmt.Sprintf("192.0.%d.%d", site, gw) }

// NodeAddr returns the IP address of process p of a site.
func NodeAddr(site, p uint16) string { return fmt.Sprintf("10.%d.0.%d", site, p) }

// Address returns the address of process p of a site.
func Address(site, p uint16) relay.Address { return relay.Address{Site: site, Node: 1, Process: p} }

// SetWAN sets the links between gateways of different sites.
func (w *World) SetWAN(l sctptest.Link) {
	for s := range w.sites {
		for d := range w.sites {
			for g := range w.gateways {
				for h := range w.gateways {
					if s != d {
						w.Net.SetLink(WANAddr(s+1, g+1), WANAddr(d+1, h+1), l)
					}
				}
			}
		}
	}
}

func (w *World) host(ip string) *sctptest.Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hosts[ip]
	if h == nil {
		h = w.Net.NewHost(ip)
		w.hosts[ip] = h
	}
	return h
}

// Transport opens a transport on a host.
func (w *World) Transport(ip string) *sctp.Transport {
	w.t.Helper()
	pc, err := w.host(ip).ListenPacket(ip + ":9899")
	if err != nil {
		w.t.Fatal(err)
	}
	t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}, BusyPoll: -1})
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// Addr returns the SCTP address of a host.
func Addr(ip string, port uint16) sctp.Addr {
	return sctp.Addr{Addrs: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(ip), sctp.DefaultUDPPort)}, Port: port}
}

// Log returns where gateways and processes log to: standard error with WEFT_RELAY_LOG, and nowhere without.
func Log() *slog.Logger {
	if os.Getenv("WEFT_RELAY_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

func (w *World) start(site, gw uint16) {
	w.t.Helper()
	g := &Gateway{LAN: w.Transport(LANAddr(site, gw)), WAN: w.Transport(WANAddr(site, gw))}
	cfg := relay.GatewayConfig{
		Site: site, Number: gw, LAN: g.LAN, WAN: g.WAN, Jobs: map[uint32][]byte{Job: Key},
		Routes: make(map[uint16]uint16), Log: Log(),
	}
	for s := uint16(1); s <= w.sites; s++ {
		switch {
		case w.line && s+1 < site:
			cfg.Routes[s] = site - 1
			continue
		case w.line && s > site+1:
			cfg.Routes[s] = site + 1
			continue
		}
		for h := range w.gateways {
			if s != site || h+1 != gw {
				cfg.Peers = append(cfg.Peers, relay.Peer{
					Site: s, Gateway: h + 1, Addr: Addr(WANAddr(s, h+1), relay.DefaultGatewayWAN), Key: LegKey(site, s),
				})
			}
		}
	}
	if w.set != nil {
		w.set(&cfg)
	}
	var err error
	if g.Gateway, err = relay.NewGateway(cfg); err != nil {
		w.t.Fatal(err)
	}
	w.Up[[2]uint16{site, gw}] = g
}

// Kill ends a gateway without a word to its peers.
func (w *World) Kill(site, gw uint16) {
	g := w.Up[[2]uint16{site, gw}]
	delete(w.Up, [2]uint16{site, gw})
	w.Cut(site, gw, w.Net.Cut)
	g.Close()
}

// Revive starts a gateway that was killed.
func (w *World) Revive(site, gw uint16) {
	w.t.Helper()
	w.Cut(site, gw, w.Net.Restore)
	w.start(site, gw)
}

// Cut calls f, which is Net.Cut or Net.Restore, for a gateway and each host.
func (w *World) Cut(site, gw uint16, f func(a, b string)) {
	w.cut(LANAddr(site, gw), f)
	w.cut(WANAddr(site, gw), f)
}

func (w *World) cut(own string, f func(a, b string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ip := range w.hosts {
		if ip != own {
			f(own, ip)
		}
	}
}

// CutNode cuts the network of a process; RestoreNode joins it again.
func (w *World) CutNode(site, p uint16) { w.cut(NodeAddr(site, p), w.Net.Cut) }

// RestoreNode reverts CutNode.
func (w *World) RestoreNode(site, p uint16) { w.cut(NodeAddr(site, p), w.Net.Restore) }

// Close ends the gateway and closes its transports.
func (g *Gateway) Close() {
	_ = g.Gateway.Close()
	_ = g.LAN.Close()
	_ = g.WAN.Close()
}

// Gateways returns the statistics of the gateways that are up.
func (w *World) Gateways() (all []relay.GatewayStats) {
	for _, g := range w.Up {
		all = append(all, g.Stats())
	}
	return all
}

// Close ends all gateways and the network.
func (w *World) Close() {
	for _, g := range w.Up {
		g.Close()
	}
	w.Net.Close()
}

// Node is a process.
type Node struct {
	*relay.Node
	Transport *sctp.Transport
}

// Node starts process p of a site. It must be closed before the world.
func (w *World) Node(site, p uint16, set func(*relay.NodeConfig)) *Node {
	w.t.Helper()
	n, err := w.TryNode(site, p, set)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TryNode is Node that returns the error of relay.NewNode.
func (w *World) TryNode(site, p uint16, set func(*relay.NodeConfig)) (*Node, error) {
	w.t.Helper()
	n := &Node{Transport: w.Transport(NodeAddr(site, p))}
	cfg := relay.NodeConfig{Address: Address(site, p), Job: Job, Key: Key, Transport: n.Transport, Log: Log()}
	for g := range w.gateways {
		cfg.Gateways = append(cfg.Gateways, Addr(LANAddr(site, g+1), relay.DefaultGatewayLAN))
	}
	if set != nil {
		set(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var err error
	if n.Node, err = relay.NewNode(ctx, cfg); err != nil {
		_ = n.Transport.Close()
	}
	return n, err
}

// Close ends the process without waiting for what it has sent.
func (n *Node) Close() {
	_ = n.Node.Close()
	_ = n.Transport.Close()
}
