// Package relaytest has sites with gateways and processes on a network in memory, for tests of what is built above
// package relay.
package relaytest

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Job is the job of all processes.
const Job = 7

var (
	// Key is its key, LegKey that of all pairs of sites.
	Key, LegKey = []byte("the key of job 7, for tests only"), []byte("the key of sites, for tests only")

	// LAN and WAN are the links of the network unless others are set: 1 Gb/s with 25 µs and 9 ms.
	LAN = sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
	WAN = sctptest.Link{Delay: 9 * time.Millisecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500}
)

// World has sites 1 to n, of which each has a leg to the next one, with some gateways each. Gateway g of site s has
// the address 10.s.255.g in its LAN and 192.0.s.g outside, process p 10.s.0.p.
type World struct {
	Net *sctptest.Network

	t        testing.TB
	sites    uint16
	gateways uint16
	hosts    map[string]*sctptest.Host
	up       map[[2]uint16]*gateway
}

type gateway struct {
	*relay.Gateway
	lan, wan *sctp.Transport
}

// New makes the sites and starts the gateways. It must be closed.
func New(t testing.TB, seed uint64, sites, gateways int) *World {
	w := &World{
		Net: sctptest.NewNetwork(seed), t: t, sites: uint16(sites), gateways: uint16(gateways),
		hosts: make(map[string]*sctptest.Host), up: make(map[[2]uint16]*gateway),
	}
	w.Net.SetDefault(LAN)
	w.SetWAN(WAN)
	for s := range w.sites {
		for g := range w.gateways {
			w.start(s+1, g+1)
		}
	}
	return w
}

func lanAddr(site, gw uint16) string { return fmt.Sprintf("10.%d.255.%d", site, gw) }
func wanAddr(site, gw uint16) string { return fmt.Sprintf("192.0.%d.%d", site, gw) }

// NodeAddr returns the IP address of process p of a site.
func NodeAddr(site, p uint16) string { return fmt.Sprintf("10.%d.0.%d", site, p) }

// Address returns the address of process p of a site.
func Address(site, p uint16) relay.Address { return relay.Address{Site: site, Node: 1, Process: p} }

// SetWAN sets the links between gateways of neighbouring sites.
func (w *World) SetWAN(l sctptest.Link) {
	for s := uint16(1); s < w.sites; s++ {
		for g := range w.gateways {
			for h := range w.gateways {
				w.host(wanAddr(s, g+1))
				w.host(wanAddr(s+1, h+1))
				w.Net.SetLink(wanAddr(s, g+1), wanAddr(s+1, h+1), l)
				w.Net.SetLink(wanAddr(s+1, h+1), wanAddr(s, g+1), l)
			}
		}
	}
}

func (w *World) host(ip string) *sctptest.Host {
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

func sctpAddr(ip string, port uint16) sctp.Addr {
	return sctp.Addr{Addrs: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(ip), sctp.DefaultUDPPort)}, Port: port}
}

func (w *World) start(site, gw uint16) {
	w.t.Helper()
	g := &gateway{lan: w.Transport(lanAddr(site, gw)), wan: w.Transport(wanAddr(site, gw))}
	cfg := relay.GatewayConfig{
		Site: site, Number: gw, LAN: g.lan, WAN: g.wan, Jobs: map[uint32][]byte{Job: Key}, Routes: make(map[uint16]uint16),
	}
	for s := uint16(1); s <= w.sites; s++ {
		switch {
		case s+1 < site:
			cfg.Routes[s] = site - 1
			continue
		case s > site+1:
			cfg.Routes[s] = site + 1
			continue
		}
		for h := range w.gateways {
			if s != site || h+1 != gw {
				cfg.Peers = append(cfg.Peers, relay.Peer{
					Site: s, Gateway: h + 1, Addr: sctpAddr(wanAddr(s, h+1), relay.DefaultGatewayWAN), Key: LegKey,
				})
			}
		}
	}
	var err error
	if g.Gateway, err = relay.NewGateway(cfg); err != nil {
		w.t.Fatal(err)
	}
	w.up[[2]uint16{site, gw}] = g
}

// Kill ends a gateway without a word to its peers.
func (w *World) Kill(site, gw uint16) {
	g := w.up[[2]uint16{site, gw}]
	delete(w.up, [2]uint16{site, gw})
	w.cut(lanAddr(site, gw), w.Net.Cut)
	w.cut(wanAddr(site, gw), w.Net.Cut)
	g.close()
}

// Revive starts a gateway that was killed.
func (w *World) Revive(site, gw uint16) {
	w.t.Helper()
	w.cut(lanAddr(site, gw), w.Net.Restore)
	w.cut(wanAddr(site, gw), w.Net.Restore)
	w.start(site, gw)
}

func (w *World) cut(own string, f func(a, b string)) {
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

func (g *gateway) close() {
	_ = g.Close()
	_ = g.lan.Close()
	_ = g.wan.Close()
}

// Gateways returns the statistics of the gateways that are up.
func (w *World) Gateways() (all []relay.GatewayStats) {
	for _, g := range w.up {
		all = append(all, g.Stats())
	}
	return all
}

// Close ends all gateways and the network.
func (w *World) Close() {
	for _, g := range w.up {
		g.close()
	}
	w.Net.Close()
}

// Node is a process.
type Node struct {
	*relay.Node
	transport *sctp.Transport
}

// Node starts process p of a site. It must be closed before the world.
func (w *World) Node(site, p uint16, set func(*relay.NodeConfig)) *Node {
	w.t.Helper()
	n := &Node{transport: w.Transport(NodeAddr(site, p))}
	cfg := relay.NodeConfig{Address: Address(site, p), Job: Job, Key: Key, Transport: n.transport}
	for g := range w.gateways {
		cfg.Gateways = append(cfg.Gateways, sctpAddr(lanAddr(site, g+1), relay.DefaultGatewayLAN))
	}
	if set != nil {
		set(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var err error
	if n.Node, err = relay.NewNode(ctx, cfg); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// Close ends the process without waiting for what it has sent.
func (n *Node) Close() {
	_ = n.Node.Close()
	_ = n.transport.Close()
}
