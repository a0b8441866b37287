package sites

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/weftstack/weft/sctp"
)

// Limits of a sites file.
const (
	MaxFile         = 1 << 20   // bytes
	MaxSites        = 256       // sites
	MaxHosts        = 65534     // hosts of a site; the number of a host is its node, and 65535 is GatewayNode
	MaxAllHosts     = 1 << 17   // hosts of all sites
	MaxGateways     = 16        // gateways of a site
	MaxAddrs        = 8         // addresses of a gateway on one side
	MaxLegs         = 4096      // legs
	MaxPath         = 6         // sites on the way of a message, its ends included
	MaxAssociations = 16        // parallel associations of a leg
	MaxClasses      = 15        // classes of jobs
	MaxWeight       = 1000      // weight of a class of jobs
	MaxRank         = 65534     // number of a rank; its process number is one more
	MaxRanges       = 4096      // ranges of ranks, and prefixes of addresses, in the file
	MaxName         = 64        // bytes of a name of a site, gateway or class
	MinRate         = 80_000    // bits per second
	MaxRate         = 1_000e9   // bits per second
	GatewayNode     = 1<<16 - 1 // number of the node of each site that the gateways' own processes have
)

// Congestion names a congestion control of legs between gateways.
type Congestion string

// The congestion controls. DefaultCongestion is that of legs that name none.
const (
	Cubic   Congestion = "cubic"
	NewReno Congestion = "newreno"
	BBR     Congestion = "bbr"

	DefaultCongestion = BBR
)

// Algorithm returns it as package sctp has it.
func (c Congestion) Algorithm() sctp.Congestion {
	switch c {
	case BBR:
		return sctp.BBR
	case NewReno:
		return sctp.NewReno
	}
	return sctp.Cubic
}

// Mode tells what a message survives, and when a send completes.
type Mode string

// The modes.
const (
	Piecewise Mode = "piecewise" // the buffer of a send is free early; the death of a gateway loses nothing
	Chained   Mode = "chained"   // a send completes when the far process has the message
	Lossy     Mode = "lossy"     // the origin keeps no copy: the death of a gateway may lose messages
)

func (m Mode) valid() bool { return m == Piecewise || m == Chained || m == Lossy }

// File is a sites file that has been read and checked. It must not be changed.
type File struct {
	// Name is where it was read from. Paths in it are relative to the directory of Name.
	Name string
	// JobsKeyFile is the path of the key for jobs, or empty if there is one site only.
	JobsKeyFile string
	Mode        Mode
	Sites       []*Site // in the order of the file
	Legs        []*Leg
	Classes     []*Class

	byName map[string]*Site
	hosts  map[string]Place    // by name
	short  map[string][]string // host names by what is before the first dot
	ranks  []rankRange         // sorted
	next   [][]*Site           // by index of the site and of the destination
}

// Site is a cluster with a network of its own.
type Site struct {
	Name   string
	Number uint16
	// Hosts are the names of its hosts: the node of Hosts[i] has the number i+1.
	Hosts    []string
	Gateways []*Gateway
	// TCP are the addresses of its hosts, for programs whose TCP connections gateways carry.
	TCP  []netip.Prefix
	Line int // where the file has it

	index int // in File.Sites
	ranks bool
}

// Ranks reports whether the site consists of ranks instead of hosts.
func (s *Site) Ranks() bool { return s.ranks }

// Gateway returns the gateway of that name, or nil.
func (s *Site) Gateway(name string) *Gateway {
	if i := slices.IndexFunc(s.Gateways, func(g *Gateway) bool { return g.Name == name }); i >= 0 {
		return s.Gateways[i]
	}
	return nil
}

// Gateway relays messages between its site and others.
type Gateway struct {
	Name   string
	Number uint16 // in its site, from 1
	// LAN are the addresses at which processes of the site reach it, WAN those at which other gateways do.
	LAN, WAN []netip.AddrPort
	// Status is where it tells its state; not valid if the file does not say.
	Status netip.AddrPort
	Line   int
}

// LANAddr returns the address for processes. The SCTP port is the UDP port of the first address.
func (g *Gateway) LANAddr() sctp.Addr { return addrOf(g.LAN) }

// WANAddr returns the address for other gateways, like LANAddr.
func (g *Gateway) WANAddr() sctp.Addr { return addrOf(g.WAN) }

func addrOf(list []netip.AddrPort) sctp.Addr {
	return sctp.Addr{Addrs: slices.Clone(list), Port: list[0].Port()}
}

// Leg connects the gateways of two sites.
type Leg struct {
	A, B         *Site
	KeyFile      string // path of the key of this pair of sites
	Associations int    // how many each pair of gateways has, at least 1
	Rate         int64  // limit in bits per second in each direction; 0 means none
	Congestion   Congestion
	Line         int
}

// Other returns the other site of the leg, or nil if s is none of them.
func (l *Leg) Other(s *Site) *Site {
	switch s {
	case l.A:
		return l.B
	case l.B:
		return l.A
	}
	return nil
}

// Key reads the key of the leg.
func (l *Leg) Key() ([]byte, error) { return ReadKey(l.KeyFile) }

// Class is a class of jobs, which share legs by weight, and may have a limit.
type Class struct {
	Name   string
	Number int   // from 1; 0 is the class of jobs without one
	Weight int   // at least 1; jobs without a class have 1
	Rate   int64 // limit in bits per second of all its jobs on a gateway's legs to other sites; 0 means none
	Line   int
}

// Site returns the site of that name, or nil.
func (f *File) Site(name string) *Site { return f.byName[name] }

// SiteNumber returns the site with that number, or nil.
func (f *File) SiteNumber(n uint16) *Site {
	if i := slices.IndexFunc(f.Sites, func(s *Site) bool { return s.Number == n }); i >= 0 {
		return f.Sites[i]
	}
	return nil
}

// Class returns the class of that name, or nil.
func (f *File) Class(name string) *Class {
	if i := slices.IndexFunc(f.Classes, func(c *Class) bool { return c.Name == name }); i >= 0 {
		return f.Classes[i]
	}
	return nil
}

// Leg returns the leg between two sites, or nil.
func (f *File) Leg(a, b *Site) *Leg {
	if i := slices.IndexFunc(f.Legs, func(l *Leg) bool { return l.A == a && l.B == b || l.A == b && l.B == a }); i >= 0 {
		return f.Legs[i]
	}
	return nil
}

// JobsKey reads the key for jobs.
func (f *File) JobsKey() ([]byte, error) {
	if f.JobsKeyFile == "" {
		return nil, fmt.Errorf("%s: no line jobs key-file FILE", f.Name)
	}
	return ReadKey(f.JobsKeyFile)
}

// path returns a path of the file, which is relative to its directory.
func (f *File) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.Name), name)
}
