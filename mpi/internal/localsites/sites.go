package localsites

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

const (
	// MaxSites bounds the sites.
	MaxSites = 64
	// job is the number of the job: the gateways relay for no other one.
	job = 1
)

// Config says which gateways there are. The zero value has one for each site, on loopback sockets, and legs between all
// sites.
type Config struct {
	Mode     sites.Mode
	Gateways int  // of each site; 0: 1
	Line     bool // sites have legs to the one before and the one behind only, in the order in which they were first named
	// Conns, if not nil, returns the connections of a gateway, in place of loopback sockets, and LAN and WAN the addresses
	// that processes and other gateways reach them by.
	Conns    func(site, gateway int, wan bool) ([]sctp.PacketConn, error)
	LAN, WAN func(site, gateway int) netip.AddrPort
	Log      *slog.Logger
}

// Sites are the gateways. It is safe for concurrent use.
type Sites struct {
	cfg  Config
	key  []byte // of the job
	legs []byte // of the gateways

	mu     sync.Mutex
	names  []string // of the sites, in the order of their numbers
	last   []uint16 // the highest number of a process, by site
	gates  map[[2]int]*gate
	addrs  map[[2]int][2][]netip.AddrPort // where gateways are or were, in LAN and WAN
	closed bool
}

// gate is a gateway that runs.
type gate struct {
	g        *relay.Gateway
	lan, wan *sctp.Transport
}

// Start starts the gateways of the sites with the given names.
func Start(cfg Config, names []string) (*Sites, error) {
	if len(names) < 2 || len(names) > MaxSites {
		return nil, fmt.Errorf("%d sites, want 2 to %d", len(names), MaxSites)
	}
	s := &Sites{
		cfg: cfg, key: make([]byte, 32), legs: make([]byte, 32), names: names, last: make([]uint16, len(names)),
		gates: make(map[[2]int]*gate), addrs: make(map[[2]int][2][]netip.AddrPort),
	}
	_, _ = rand.Read(s.key) // never fails
	_, _ = rand.Read(s.legs)
	s.cfg.Gateways = max(1, cfg.Gateways)
	if s.cfg.Mode == "" {
		s.cfg.Mode = sites.Piecewise
	}
	// All sockets come first: gateways are told the addresses of others.
	opened := make(map[[2]int]*gate)
	err := s.each(func(id [2]int) error {
		g, err := s.open(id)
		opened[id] = g
		return err
	})
	if err == nil {
		err = s.each(func(id [2]int) error { return s.run(id, opened[id]) })
	}
	if err != nil {
		for _, g := range opened {
			g.close()
		}
		return nil, fmt.Errorf("gateways: %w", err)
	}
	return s, nil
}

// each calls f with the site and the number of each gateway.
func (s *Sites) each(f func(id [2]int) error) error {
	for site := range s.names {
		for g := range s.cfg.Gateways {
			if err := f([2]int{site + 1, g + 1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens the sockets of a gateway: those that it had before, if it did.
func (s *Sites) open(id [2]int) (*gate, error) {
	g := &gate{}
	where := s.addrs[id]
	for i, t := range []**sctp.Transport{&g.lan, &g.wan} {
		tc := sctp.TransportConfig{BusyPoll: -1}
		var err error
		if s.cfg.Conns != nil {
			if tc.Conns, err = s.cfg.Conns(id[0], id[1], i == 1); err != nil {
				g.close()
				return nil, err
			}
		} else if tc.LocalAddrs = where[i]; tc.LocalAddrs == nil {
			tc.LocalAddrs = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)}
		}
		if *t, err = sctp.NewTransport(tc); err != nil {
			g.close()
			return nil, err
		}
		if where[i] = (*t).LocalAddrs(); s.cfg.Conns != nil {
			at := s.cfg.LAN
			if i == 1 {
				at = s.cfg.WAN
			}
			where[i] = []netip.AddrPort{at(id[0], id[1])}
		}
	}
	s.addrs[id] = where
	return g, nil
}

// run starts a gateway on its sockets.
func (s *Sites) run(id [2]int, g *gate) error {
	cfg := relay.GatewayConfig{
		Site: uint16(id[0]), Number: uint16(id[1]), LAN: g.lan, WAN: g.wan, Jobs: map[uint32][]byte{job: s.key},
		Routes: make(map[uint16]uint16), Log: s.cfg.Log,
	}
	_ = s.each(func(to [2]int) error {
		switch d := to[0] - id[0]; {
		case to == id:
		case s.cfg.Line && d > 1:
			cfg.Routes[uint16(to[0])] = uint16(id[0] + 1)
		case s.cfg.Line && d < -1:
			cfg.Routes[uint16(to[0])] = uint16(id[0] - 1)
		default:
			cfg.Peers = append(cfg.Peers, relay.Peer{
				Site: uint16(to[0]), Gateway: uint16(to[1]), Key: s.legs,
				Addr: sctp.Addr{Addrs: s.addrs[to][1], Port: relay.DefaultGatewayWAN},
			})
		}
		return nil
	})
	var err error
	if g.g, err = relay.NewGateway(cfg); err != nil {
		return err
	}
	s.gates[id] = g
	return nil
}

func (g *gate) close() {
	if g == nil {
		return
	}
	if g.g != nil {
		_ = g.g.Close()
	}
	for _, t := range []*sctp.Transport{g.lan, g.wan} {
		if t != nil {
			_ = t.Close()
		}
	}
}

// Process makes the address of a new process at a site.
func (s *Sites) Process(site string) (*sites.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &sites.Process{Node: 1, Job: job, Key: s.key, Mode: s.cfg.Mode, Names: make(map[uint16]string)}
	for i, n := range s.names {
		p.Names[uint16(i+1)] = n
		if n == site {
			p.Site = uint16(i + 1)
		}
	}
	if p.Site == 0 {
		return nil, fmt.Errorf("no site %q: the ranks of the first job have the sites %q", site, s.names)
	}
	if s.last[p.Site-1]++; s.last[p.Site-1] == 0 {
		return nil, errors.New("too many processes")
	}
	p.Process = s.last[p.Site-1]
	for g := range s.cfg.Gateways {
		lan := s.addrs[[2]int{int(p.Site), g + 1}][0]
		p.Gateways = append(p.Gateways, sctp.Addr{Addrs: lan, Port: relay.DefaultGatewayLAN})
	}
	return p, nil
}

// Kill ends a gateway at once, with all that it holds. Numbers are from 1.
func (s *Sites) Kill(site, gateway int) {
	id := [2]int{site, gateway}
	s.mu.Lock()
	g := s.gates[id]
	delete(s.gates, id)
	s.mu.Unlock()
	if g != nil {
		// The sockets are closed first: nobody learns of the end from it.
		_ = g.lan.Close()
		_ = g.wan.Close()
		_ = g.g.Close()
	}
}

// Restart starts a gateway that was killed, at the addresses that it had.
func (s *Sites) Restart(site, gateway int) error {
	id := [2]int{site, gateway}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.gates[id] != nil {
		return nil
	}
	g, err := s.open(id)
	if err == nil {
		err = s.run(id, g)
	}
	if err != nil {
		g.close()
	}
	return err
}

// Stats returns a snapshot of each gateway that runs.
func (s *Sites) Stats() []relay.GatewayStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []relay.GatewayStats
	_ = s.each(func(id [2]int) error {
		if g := s.gates[id]; g != nil {
			out = append(out, g.g.Stats())
		}
		return nil
	})
	return out
}

// Close ends all gateways.
func (s *Sites) Close() {
	s.mu.Lock()
	s.closed = true
	gates := s.gates
	s.gates = nil
	s.mu.Unlock()
	for _, g := range gates {
		g.close()
	}
}
