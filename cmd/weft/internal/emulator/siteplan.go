package emulator

import (
	"fmt"
	"net/netip"

	"github.com/weftstack/weft/internal/netem"
)

// Bounds of the dimensions of sites. Addresses have room for no more.
const (
	maxSites    = 8
	maxGateways = 8 // of a site
	maxWANs     = 4
	maxCross    = 16 // flows of cross-traffic in one direction
)

// siteAddrs are the addresses of a network with sites, whose numbers begin at 1:
//
//	10.77.S.H           host H in the LAN of site S
//	10.77.S.(255-G)     gateway G there
//	198.18.W.(16·S+G)   gateway G of site S in WAN W
//	198.18.W.(16·S+15)  the source of cross-traffic
//
// With overlapping addresses S is 1 in all LANs. 198.18.0.0/15 is for tests of networks (RFC 2544).
type siteAddrs struct {
	netem.Sites
	overlap bool
	routed  bool // hosts reach other sites without gateways
}

const (
	lanTop     = 255 // minus the number of a gateway: its last byte in a LAN
	crossDigit = 15
	lanBits    = 16 // of the prefix 10.77.0.0, which hosts send to
	ownBits    = 24 // of the prefix of one site, or of a WAN
)

func (a siteAddrs) lanDigit(site int) byte {
	if a.overlap {
		return 1
	}
	return byte(site + 1)
}

// host, lanGateway, wanGateway and cross return addresses; what they are given begins at 0.
func (a siteAddrs) host(site, host int) [4]byte {
	return [4]byte{10, 77, a.lanDigit(site), byte(host + 1)}
}

func (a siteAddrs) lanGateway(site, gateway int) [4]byte {
	return [4]byte{10, 77, a.lanDigit(site), byte(lanTop - 1 - gateway)}
}

func (a siteAddrs) wanGateway(site, gateway, wan int) [4]byte {
	return [4]byte{198, 18, byte(wan + 1), byte(16*(site+1) + gateway + 1)}
}

func (a siteAddrs) cross(site, wan int) [4]byte {
	return [4]byte{198, 18, byte(wan + 1), byte(16*(site+1) + crossDigit)}
}

// lanPrefix returns the addresses of a site's LAN.
func (a siteAddrs) lanPrefix(site int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, a.lanDigit(site), 0}), ownBits)
}

// inLAN returns the site and the LAN port that dst belongs to. Where the LANs of all sites have the same addresses,
// it is looked up in the LAN of site.
func (a siteAddrs) inLAN(dst [4]byte, site int) (at, port int, ok bool) {
	if dst[0] != 10 || dst[1] != 77 {
		return 0, 0, false
	}
	if !a.overlap {
		site = int(dst[2]) - 1
	} else if dst[2] != 1 {
		return 0, 0, false
	}
	n := int(dst[3])
	switch {
	case site < 0 || site >= a.Sites.Sites:
		return 0, 0, false
	case n >= 1 && n <= a.Hosts:
		return site, n - 1, true
	case n < lanTop && n >= lanTop-a.Gateways:
		return site, a.LANGateway(lanTop - 1 - n), true
	}
	return 0, 0, false
}

// inWAN returns what has an address of a WAN: its site and its port in the access network.
func (a siteAddrs) inWAN(dst [4]byte, wan int) (site, port int, ok bool) {
	site, n := int(dst[3])/16-1, int(dst[3])%16
	if dst[0] != 198 || dst[1] != 18 || int(dst[2])-1 != wan || site < 0 || site >= a.Sites.Sites {
		return 0, 0, false
	}
	switch {
	case n >= 1 && n <= a.Gateways:
		return site, n - 1, true
	case n == crossDigit:
		return site, a.AccessCross(), true
	}
	return 0, 0, false
}

// planSites plans the namespaces of sites: hosts, then gateways, then the sources of
// cross-traffic.
func (o *options) planSites(p *plan) {
	a := siteAddrs{netem.Sites{Sites: o.sites, Hosts: o.hosts, Gateways: o.gateways, WANs: o.wans}, o.overlap, o.routed}
	p.sites, p.addrs = &a.Sites, a
	bits := lanBits
	if o.overlap {
		bits = ownBits
	}
	for site := range o.sites {
		for h := range o.hosts {
			p.nodes = append(p.nodes, planNode{
				name: fmt.Sprintf("s%dh%d", site+1, h+1), site: site, number: h,
				ifaces: []planInterface{{a.LAN(site), h, a.host(site, h), bits, o.params.MTU}},
			})
		}
	}
	for site := range o.sites {
		for g := range o.gateways {
			n := planNode{
				name: fmt.Sprintf("s%dg%d", site+1, g+1), kind: kindGateway, site: site, number: g,
				ifaces: []planInterface{{a.LAN(site), a.LANGateway(g), a.lanGateway(site, g), bits, o.params.MTU}},
			}
			for w := range o.wans {
				n.ifaces = append(n.ifaces, planInterface{a.Access(site, w), g, a.wanGateway(site, g, w), ownBits, o.wan.MTU})
			}
			p.nodes = append(p.nodes, n)
		}
	}
	for site := range o.sites {
		if o.cross == 0 {
			break
		}
		n := planNode{name: fmt.Sprintf("s%dx", site+1), kind: kindCross, site: site}
		for w := range o.wans {
			n.ifaces = append(n.ifaces, planInterface{a.Access(site, w), a.AccessCross(), a.cross(site, w), ownBits, o.wan.MTU})
		}
		p.nodes = append(p.nodes, n)
	}
}

// nextInSites is next for a network with sites. Without a route between sites the first
// gateway of the site that is not cut off is where hosts send what is for other sites.
func (p *plan) nextInSites(f *netem.Fabric, t tap, pkt []byte) int {
	dst, ok := packetTo(pkt)
	if !ok {
		return -1
	}
	part, site, wan := p.sites.Part(t.net)
	if part == netem.PartAccess {
		to, port, ok := p.addrs.inWAN(dst, wan)
		switch {
		case !ok:
			return -1
		case to == site:
			return port
		}
		return p.sites.AccessRouter()
	}
	to, port, ok := p.addrs.inLAN(dst, site)
	switch {
	case !ok:
		return -1
	case to == site:
		return port
	case p.addrs.routed:
		return p.sites.Router()
	case p.nodes[t.node].kind == kindHost:
		for g := range p.sites.Gateways {
			if port := p.sites.LANGateway(g); !f.IsCut(t.net, port) {
				return port
			}
		}
	}
	return -1
}

// forward returns into which network, and there from and to which ports, a router sends a
// packet on that has come to it at a port of a network. What hosts send to other sites
// themselves takes the first WAN.
func (p *plan) forward(net, port int, pkt []byte) (next, from, to int, ok bool) {
	dst, ok := packetTo(pkt)
	if !ok {
		return 0, 0, 0, false
	}
	switch part, site, wan := p.sites.Part(net); part {
	case netem.PartLAN:
		to, _, ok := p.addrs.inLAN(dst, site)
		return p.sites.WAN(0), site, to, ok
	case netem.PartAccess:
		to, _, ok := p.addrs.inWAN(dst, wan)
		return p.sites.WAN(wan), site, to, ok
	default:
		if site, to, ok := p.addrs.inWAN(dst, wan); ok {
			return p.sites.Access(site, wan), p.sites.AccessRouter(), to, true
		}
		site, to, ok := p.addrs.inLAN(dst, port)
		return p.sites.LAN(site), p.sites.Router(), to, ok && site == port
	}
}
