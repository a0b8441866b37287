package netem

import "fmt"

// Sites is a network of two levels. Each site has a LAN, which joins its hosts, its
// gateways and a router. WANs join the sites: all of a site shares the link of its
// router to a WAN, with the rate, the delay and the losses of that link. Gateways and one
// more machine, the source and sink of cross-traffic, are joined to that router by an
// access network, which adds nothing of its own.
//
// In a Fabric each of these is a network: first the LANs, then the access networks, then
// the WANs, whose hosts are the sites. Sites, hosts and gateways are counted from 0 in the
// methods, and from 1 in commands.
type Sites struct {
	Sites    int // number of sites
	Hosts    int // of each site
	Gateways int // of each site
	WANs     int // that join all sites
}

// Fabric returns the networks, with parameters for the way out of hosts and gateways into
// their LAN, and for that of sites into each WAN.
func (s Sites) Fabric(lan, wan Params, seed uint64) *Fabric {
	f := new(Fabric)
	for range s.Sites {
		net := f.AddNet(s.LANPorts(), lan, seed)
		f.SetParams(net, s.Router(), routerParams(f.Params(net, s.Router())))
	}
	for range s.Sites * s.WANs {
		f.AddNet(s.AccessPorts(), Params{}, seed)
	}
	for range s.WANs {
		f.AddNet(s.Sites, wan, seed)
	}
	return f
}

// routerParams returns the parameters of a router's way into a LAN: it delays and loses
// as the hosts do, but what limits the rate are the lines of the hosts.
func routerParams(p Params) Params {
	p.Rate, p.DownRate = 0, 0
	return p
}

// LANPorts returns the number of ports of a LAN: hosts, gateways and the router.
func (s Sites) LANPorts() int { return s.Hosts + s.Gateways + 1 }

// LANGateway returns the port of a gateway in the LAN of its site.
func (s Sites) LANGateway(gateway int) int { return s.Hosts + gateway }

// Router returns the port of the router in a LAN.
func (s Sites) Router() int { return s.Hosts + s.Gateways }

// AccessPorts returns the number of ports of an access network: gateways, the source of
// cross-traffic and the router.
func (s Sites) AccessPorts() int { return s.Gateways + 2 }

// AccessCross returns the port of the source of cross-traffic in an access network.
func (s Sites) AccessCross() int { return s.Gateways }

// AccessRouter returns the port of the router in an access network.
func (s Sites) AccessRouter() int { return s.Gateways + 1 }

// LAN returns the network that is the LAN of a site.
func (s Sites) LAN(site int) int { return site }

// Access returns the network that joins what a site has in a WAN to its router.
func (s Sites) Access(site, wan int) int { return s.Sites + site*s.WANs + wan }

// WAN returns the network that is a WAN.
func (s Sites) WAN(wan int) int { return s.Sites + s.Sites*s.WANs + wan }

// Part is what a network of a Fabric with sites is.
type Part uint8

// The parts of a network of two levels.
const (
	PartLAN Part = iota
	PartAccess
	PartWAN
)

// Part returns what a network is, and its site and WAN, as far as it has one.
func (s Sites) Part(net int) (part Part, site, wan int) {
	switch {
	case net < s.Sites:
		return PartLAN, net, 0
	case net < s.Sites+s.Sites*s.WANs:
		return PartAccess, (net - s.Sites) / s.WANs, (net - s.Sites) % s.WANs
	}
	return PartWAN, 0, net - s.Sites - s.Sites*s.WANs
}

// CheckSites reports whether the command is one to sites, and fits them.
func (c Change) CheckSites(s Sites) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%q: %s", c.text, fmt.Sprintf(format, args...))
	}
	host := max(c.host, 0)
	toHost, toSite := 0, 0
	if c.lan {
		toHost = max(c.to, 0)
	} else {
		toSite = max(c.to, 0)
	}
	switch {
	case c.net >= 0:
		return bad("sites have no nets (want lan or wan)")
	case c.lan && c.wan:
		return bad("want lan or wan, not both")
	case c.host == 0 || c.to == 0:
		return bad("hosts and sites are counted from 1")
	case host > 0 && c.gateway > 0:
		return bad("want a host or a gateway, not both")
	case c.wan && host > 0:
		return bad("hosts are not in a WAN (want site or gateway)")
	case c.verb == verbSet && !c.lan && !c.wan:
		return bad("want lan or wan behind set")
	case c.verb == verbSet && c.wan && c.gateway > 0:
		return bad("all gateways of a site share its link (want site)")
	case (c.verb == verbKill || c.verb == verbStart) && (c.lan || c.wan || host > 0):
		return bad("%s is for gateways (want site and gateway)", c.verb)
	case max(c.site, toSite) > s.Sites || max(host, toHost) > s.Hosts || c.gateway > s.Gateways || c.wanNet > s.WANs:
		return bad("there are %d sites, each with %d hosts and %d gateways, and %d WANs, counted from 1",
			s.Sites, s.Hosts, s.Gateways, s.WANs)
	}
	return nil
}

// ApplySites carries out a command to sites. Those that start and kill gateways change
// nothing in the network: Gateways says which ones they mean.
func (c Change) ApplySites(s Sites, f *Fabric) error {
	if err := c.CheckSites(s); err != nil {
		return err
	}
	if c.verb == verbKill || c.verb == verbStart {
		return nil
	}
	for site := range s.Sites {
		if c.site > 0 && c.site-1 != site {
			continue
		}
		if !c.wan {
			c.applyLAN(s, f, site)
		}
		if !c.lan && c.host < 0 {
			c.applyWAN(s, f, site)
		}
	}
	return nil
}

func (c Change) applyLAN(s Sites, f *Fabric, site int) {
	net, to := s.LAN(site), -1
	if c.to > 0 {
		to = c.to - 1
	}
	for port := range s.LANPorts() {
		switch {
		case c.host > 0 && port != c.host-1, c.gateway > 0 && port != s.LANGateway(c.gateway-1):
			continue
		}
		c.applyTo(f, net, port, to)
		if port == s.Router() && c.verb == verbSet && to < 0 {
			f.SetParams(net, port, routerParams(f.Params(net, port)))
		}
	}
}

func (c Change) applyWAN(s Sites, f *Fabric, site int) {
	to := -1
	if c.to > 0 {
		to = c.to - 1
	}
	for wan := range s.WANs {
		switch {
		case c.wanNet > 0 && c.wanNet-1 != wan:
		case c.gateway > 0:
			c.applyTo(f, s.Access(site, wan), c.gateway-1, -1)
		default:
			c.applyTo(f, s.WAN(wan), site, to)
			for gateway := range s.Gateways {
				if c.verb == verbRestore {
					f.SetCut(s.Access(site, wan), gateway, false)
				}
			}
		}
	}
}

// Gateways returns which gateways the command kills or starts, by calling yield with
// the site and the number of each; none, if it does something else.
func (c Change) Gateways(s Sites, yield func(site, gateway int, start bool)) {
	if c.verb != verbKill && c.verb != verbStart {
		return
	}
	for site := range s.Sites {
		for gateway := range s.Gateways {
			if (c.site == 0 || c.site-1 == site) && (c.gateway == 0 || c.gateway-1 == gateway) {
				yield(site, gateway, c.verb == verbStart)
			}
		}
	}
}
