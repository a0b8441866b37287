package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/sctptest"
)

const (
	testJob     = 7
	testStreams = 10
	testCommID  = 1 << 8
	testTimeout = 3 * time.Second
)

var (
	testKey  = []byte("the key of job 7, for tests only")
	legKey   = []byte("the key of all gateways, for tests")
	errEnded = errors.New("the test is over")
)

// world has sites with one gateway and ranks on a network in memory. Its WAN is a line of sites.
type world struct {
	t        testing.TB
	net      *sctptest.Network
	hosts    map[string]*sctptest.Host
	mode     sites.Mode
	sites    int
	gateways map[uint16]*gate
	ranks    []*rank
	key      []byte                      // of the handshakes
	sockets  map[string][]netip.AddrPort // on loopback, instead of net: by address in it
}

type gate struct {
	*relay.Gateway
	lan, wan *sctp.Transport
}

// rank is a process of the job: its engine and its station. It is the Host of the station.
type rank struct {
	w         *world
	address   relay.Address
	eng       *p2p.Engine
	comm      *p2p.Comm
	transport *sctp.Transport
	station   *Station

	mu     sync.Mutex
	key    []byte
	downs  []error // by call of Engine.onDown
	silent []bool
}

func newWorld(t testing.TB, n int, mode sites.Mode) *world {
	w := &world{t: t, net: sctptest.NewNetwork(1), hosts: make(map[string]*sctptest.Host), mode: mode, sites: n,
		gateways: make(map[uint16]*gate), key: []byte("the key of the handshakes")}
	w.net.SetDefault(sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500})
	for s := range uint16(n) {
		for d := range uint16(n) {
			if s != d {
				w.net.SetLink(wanAddr(s+1), wanAddr(d+1), sctptest.Link{Delay: 9 * time.Millisecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500})
			}
		}
	}
	for s := range uint16(n) {
		w.startGateway(s + 1)
	}
	return w
}

// newLinked makes two sites with a rank in each, and the link between them.
func newLinked(t testing.TB, mode sites.Mode) *world {
	t.Helper()
	w := newWorld(t, 2, mode)
	w.start(1, 2)
	w.connect()
	return w
}

// newLoopback is newWorld with two sites on loopback sockets.
func newLoopback(t testing.TB, mode sites.Mode) *world {
	w := &world{t: t, net: sctptest.NewNetwork(1), mode: mode, sites: 2, gateways: make(map[uint16]*gate),
		key: []byte("the key of the handshakes"), sockets: make(map[string][]netip.AddrPort)}
	w.startGateway(2)
	w.startGateway(1) // which connects to the other one
	return w
}

func lanAddr(site uint16) string     { return fmt.Sprintf("10.%d.255.1", site) }
func wanAddr(site uint16) string     { return fmt.Sprintf("192.0.%d.1", site) }
func nodeAddr(site, p uint16) string { return fmt.Sprintf("10.%d.0.%d", site, p) }

func (w *world) at(ip string, port uint16) sctp.Addr {
	if w.sockets != nil {
		return sctp.Addr{Addrs: w.sockets[ip], Port: port}
	}
	return sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort(ip + ":9899")}, Port: port}
}

func (w *world) open(ip string) *sctp.Transport {
	w.t.Helper()
	if w.sockets != nil {
		t, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
		wantNil(w.t, err)
		w.sockets[ip] = t.LocalAddrs()
		return t
	}
	h := w.hosts[ip]
	if h == nil {
		h = w.net.NewHost(ip)
		w.hosts[ip] = h
	}
	pc, err := h.ListenPacket(ip + ":9899")
	wantNil(w.t, err)
	t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}, BusyPoll: -1})
	wantNil(w.t, err)
	return t
}

func (w *world) startGateway(site uint16) {
	w.t.Helper()
	g := &gate{lan: w.open(lanAddr(site)), wan: w.open(wanAddr(site))}
	cfg := relay.GatewayConfig{Site: site, Number: 1, LAN: g.lan, WAN: g.wan, Jobs: map[uint32][]byte{testJob: testKey}, Routes: map[uint16]uint16{}}
	for s := range uint16(w.sites) {
		switch s++; {
		case s+1 == site, s == site+1:
			cfg.Peers = append(cfg.Peers, relay.Peer{Site: s, Gateway: 1, Addr: w.at(wanAddr(s), relay.DefaultGatewayWAN), Key: legKey})
		case s > site:
			cfg.Routes[s] = site + 1
		case s < site:
			cfg.Routes[s] = site - 1
		}
	}
	var err error
	g.Gateway, err = relay.NewGateway(cfg)
	wantNil(w.t, err)
	w.gateways[site] = g
}

func (g *gate) close() {
	_ = g.Close()
	_ = g.lan.Close()
	_ = g.wan.Close()
}

// kill ends the gateway of a site without a word.
func (w *world) kill(site uint16) {
	for ip := range w.hosts {
		for _, own := range []string{lanAddr(site), wanAddr(site)} {
			if ip != own {
				w.net.Cut(own, ip)
			}
		}
	}
	w.gateways[site].close()
}

func (w *world) revive(site uint16) {
	for ip := range w.hosts {
		for _, own := range []string{lanAddr(site), wanAddr(site)} {
			if ip != own {
				w.net.Restore(own, ip)
			}
		}
	}
	w.startGateway(site)
}

// start makes the ranks of the job: each the only process of a site, in order. Their links are not made yet.
func (w *world) start(at ...uint16) {
	w.t.Helper()
	for i, site := range at {
		w.ranks = append(w.ranks, w.newRank(i, len(at), site, uint16(i+1)))
	}
}

func (w *world) newRank(i, size int, site, process uint16) *rank {
	w.t.Helper()
	r := &rank{w: w, address: relay.Address{Site: site, Node: 1, Process: process}, key: w.key}
	r.eng = p2p.New(&p2p.Config{Rank: i, Size: size, Eager: 64 << 10, Unexpected: 4 << 20, Streams: testStreams,
		PeerError: func(p *p2p.Peer, err error) error { return fmt.Errorf("rank %d: %w", p.Rank, err) },
		OnDown: func(p *p2p.Peer, _ error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.downs = append(r.downs, p.Failure())
		}})
	r.eng.Progress.Init(nil, 0)
	r.transport = w.open(nodeAddr(site, process))
	var err error
	r.station, err = New(context.Background(), Config{
		Process: &sites.Process{
			Site: site, Node: 1, Process: process, Job: testJob, Key: testKey, Mode: w.mode,
			Gateways: []sctp.Addr{w.at(lanAddr(site), relay.DefaultGatewayLAN)},
			Names:    map[uint16]string{1: "lyon", 2: "tokyo", 3: "quito"},
		},
		Host: r, Transport: r.transport, Streams: testStreams, MaxProcesses: 100, Timeout: testTimeout,
	})
	wantNil(w.t, err)
	return r
}

// connect makes the links of the ranks.
func (w *world) connect() {
	w.t.Helper()
	errs := make([]error, len(w.ranks))
	var wg sync.WaitGroup
	for i, r := range w.ranks {
		others := make(map[int]relay.Address)
		for j, o := range w.ranks {
			if i != j {
				others[j] = o.address
			}
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			errs[i] = r.station.Connect(ctx, i, others, 1)
		})
	}
	wg.Wait()
	wantNil(w.t, errors.Join(errs...))
	for i, r := range w.ranks {
		for j, p := range r.eng.Peers {
			if i != j {
				p.Link = r.station.Link(j)
			}
			p.Credit.Store(r.eng.Window)
		}
		r.comm = &p2p.Comm{ID: testCommID, Rank: i}
		r.comm.Init(r.eng, r.eng.Peers, nil, nil)
		r.comm.SetHints(r.eng.DefaultHints())
	}
}

func (w *world) link(from, to int) *Link { return w.ranks[from].station.Link(to) }

func (w *world) close() {
	for _, r := range w.ranks {
		r.close()
	}
	for _, g := range w.gateways {
		g.close()
	}
	w.net.Close()
}

func (r *rank) close() {
	r.eng.End(errEnded)
	_ = r.station.Close()
	_ = r.transport.Close()
}

func (r *rank) Params() (handshake.Params, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return handshake.Params{Key: r.key, Self: r.eng.Rank, Size: len(r.eng.Peers)}, r.key != nil
}

func (r *rank) SetupParams(uint64) (handshake.Params, bool) { return handshake.Params{}, false }

func (r *rank) Claim(_ uint64, number int, _ *Link) *p2p.Peer { return r.eng.Peers[number] }

func (r *rank) Linked(uint64, int, error) {}

func (r *rank) NoteLiveness(_ *p2p.Peer, answers bool, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = append(r.silent, !answers)
}

// ends returns the errors that the engine was told of.
func (r *rank) ends() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.downs...)
}

func wantNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pattern returns the bytes of a message.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}
