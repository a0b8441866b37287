package sctptest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Network is a set of hosts and the links between their addresses. It is safe
// for concurrent use.
type Network struct {
	seed uint64

	mu    sync.RWMutex
	def   Link
	links map[[2]netip.Addr]*link
	pairs uint32 // of Conns
	hosts map[netip.Addr]*Host
}

// NewNetwork returns a network without hosts. Everything random about it
// derives from seed.
func NewNetwork(seed uint64) *Network {
	return &Network{
		seed:  seed,
		links: map[[2]netip.Addr]*link{},
		hosts: map[netip.Addr]*Host{},
	}
}

// SetDefault sets the parameters of all links, present and future.
func (n *Network) SetDefault(l Link) {
	n.mu.Lock()
	n.def = l
	n.mu.Unlock()
	for _, k := range n.allLinks() {
		k.mu.Lock()
		k.par = l
		k.mu.Unlock()
	}
}

// allLinks returns the links there are. A link is never locked while the
// network is: packets being delivered lock the other way round.
func (n *Network) allLinks() []*link {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Collect(maps.Values(n.links))
}

// SetLink sets the parameters of the direction from one address to another.
// Packets on their way are not affected. It panics if an address is invalid.
func (n *Network) SetLink(from, to string, l Link) {
	k := n.link(netip.MustParseAddr(from), netip.MustParseAddr(to))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.par = l
}

// Cut loses every packet sent between two addresses, in both directions, until
// Restore.
func (n *Network) Cut(a, b string) { n.cut(a, b, true) }

// Restore undoes Cut.
func (n *Network) Restore(a, b string) { n.cut(a, b, false) }

func (n *Network) cut(a, b string, cut bool) {
	x, y := netip.MustParseAddr(a), netip.MustParseAddr(b)
	for _, k := range []*link{n.link(x, y), n.link(y, x)} {
		k.mu.Lock()
		k.cut = cut
		k.mu.Unlock()
	}
}

// Counters returns the counters of the direction from one address to another.
func (n *Network) Counters(from, to string) Counters {
	k := n.link(netip.MustParseAddr(from), netip.MustParseAddr(to))
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count
}

// Total returns the sum of the counters of all links.
func (n *Network) Total() Counters {
	var c Counters
	for _, k := range n.allLinks() {
		k.mu.Lock()
		c.add(k.count)
		k.mu.Unlock()
	}
	return c
}

// Close closes every socket and forgets the packets on their way.
func (n *Network) Close() {
	n.mu.RLock()
	var conns []*PacketConn
	for _, h := range n.hosts {
		conns = append(conns, h.conns()...)
	}
	n.mu.RUnlock()
	for _, k := range n.allLinks() {
		k.mu.Lock()
		k.cut = true
		k.flight = nil
		if k.timer != nil {
			k.timer.Stop()
		}
		k.mu.Unlock()
	}
	for _, c := range conns {
		c.Close()
	}
}

func (n *Network) link(from, to netip.Addr) *link {
	key := [2]netip.Addr{from, to}
	n.mu.RLock()
	k := n.links[key]
	n.mu.RUnlock()
	if k != nil {
		return k
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.links[key]; k != nil {
		return k
	}
	h := fnv.New64a()
	fmt.Fprint(h, from, to)
	k = &link{net: n, from: from, to: to, par: n.def, rng: rand.New(rand.NewPCG(n.seed, h.Sum64()))}
	n.links[key] = k
	return k
}

type outcome uint8

const (
	delivered outcome = iota
	unreachable
	overflow
)

func (n *Network) deliver(p *packet) outcome {
	n.mu.RLock()
	h := n.hosts[p.to.Addr()]
	n.mu.RUnlock()
	if h == nil {
		return unreachable
	}
	c := h.find(p.to)
	if c == nil {
		return unreachable
	}
	return c.push(p)
}

// Host is a machine with one or more addresses.
type Host struct {
	net   *Network
	addrs []netip.Addr

	mu    sync.Mutex
	ports map[netip.AddrPort]*PacketConn // by bound address, which may be unspecified
	next  uint16
}

// NewHost adds a host with the given addresses. It panics if one is invalid or
// taken, or if there is none.
func (n *Network) NewHost(addrs ...string) *Host {
	h := &Host{net: n, ports: map[netip.AddrPort]*PacketConn{}, next: 49152}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range addrs {
		a := netip.MustParseAddr(s)
		if n.hosts[a] != nil {
			panic("sctptest: address " + s + " is taken")
		}
		n.hosts[a] = h
		h.addrs = append(h.addrs, a)
	}
	if len(h.addrs) == 0 {
		panic("sctptest: a host needs an address")
	}
	return h
}

// Addrs returns the addresses of the host.
func (h *Host) Addrs() []netip.Addr { return h.addrs }

// AddrPort returns the ith address of the host with a port.
func (h *Host) AddrPort(i int, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(h.addrs[i], port)
}

func (h *Host) conns() []*PacketConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*PacketConn
	for _, c := range h.ports {
		out = append(out, c)
	}
	return out
}

func (h *Host) find(to netip.AddrPort) *PacketConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.ports[to]; c != nil {
		return c
	}
	return h.ports[netip.AddrPortFrom(netip.Addr{}, to.Port())]
}

var errInUse = errors.New("address in use")

// ListenPacket opens a socket on "ip:port", or on ":port" for all addresses of
// the host; port 0 asks for a free one.
func (h *Host) ListenPacket(address string) (*PacketConn, error) {
	fail := func(err error) (*PacketConn, error) {
		return nil, &net.OpError{Op: "listen", Net: "udp", Err: err}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fail(err)
	}
	var bound netip.AddrPort
	if host == "" {
		host = "0.0.0.0"
	}
	if bound, err = netip.ParseAddrPort(net.JoinHostPort(host, port)); err != nil {
		return fail(err)
	}
	ip := bound.Addr()
	if ip.IsUnspecified() {
		ip = netip.Addr{}
	} else {
		if !slices.Contains(h.addrs, ip) {
			return fail(fmt.Errorf("host has no address %v", ip))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := bound.Port()
	for p == 0 || bound.Port() == 0 && h.ports[netip.AddrPortFrom(ip, p)] != nil {
		if h.next++; h.next == 0 {
			h.next = 49152
		}
		p = h.next
	}
	key := netip.AddrPortFrom(ip, p)
	if h.ports[key] != nil {
		return fail(errInUse)
	}
	c := newPacketConn(h, key)
	h.ports[key] = c
	return c, nil
}
