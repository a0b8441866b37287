package emulator

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/weftstack/weft/internal/netem"
)

// A plan is what an emulation consists of: the namespaces, their interfaces, and the way of
// packets between these. It makes nothing by itself.
type plan struct {
	nodes []planNode
	taps  []tap   // all interfaces, in the order of the nodes
	tapOf [][]int // index of the interface at a port, by network and port; routers have -1
	sites *netem.Sites
	addrs siteAddrs // with sites
}

// A planNode is one namespace.
type planNode struct {
	name   string // what follows weft-PID-
	kind   nodeKind
	site   int // from 0
	number int // of its kind in the site, from 0; without sites, of all
	first  int // its first interface in taps
	ifaces []planInterface
}

// nodeKind is what a namespace is for.
type nodeKind uint8

const (
	kindHost    nodeKind = iota // runs commands
	kindGateway                 // runs a weft gateway
	kindCross                   // sends and receives cross-traffic
)

// A planInterface is one interface of a namespace.
type planInterface struct {
	net, port int
	addr      [4]byte
	bits      int // length of the network prefix that is reached over it
	mtu       int
}

func (i planInterface) prefix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4(i.addr), i.bits)
}

// A tap is where packets come from and go to: an interface of a node.
type tap struct{ node, net, port int }

// plan returns what the options ask for.
func (o *options) plan() *plan {
	p := new(plan)
	if o.sites > 0 {
		o.planSites(p)
	} else {
		for h := range o.hosts {
			n := planNode{name: fmt.Sprint(h), number: h}
			for net := range o.nets {
				n.ifaces = append(n.ifaces, planInterface{net, h, hostAddr(net, h), 24, o.params.MTU})
			}
			p.nodes = append(p.nodes, n)
		}
	}
	for i := range p.nodes {
		p.nodes[i].first = len(p.taps)
		for _, f := range p.nodes[i].ifaces {
			for f.net >= len(p.tapOf) {
				p.tapOf = append(p.tapOf, nil)
			}
			for f.port >= len(p.tapOf[f.net]) {
				p.tapOf[f.net] = append(p.tapOf[f.net], -1)
			}
			p.tapOf[f.net][f.port] = len(p.taps)
			p.taps = append(p.taps, tap{i, f.net, f.port})
		}
	}
	return p
}

// fabric returns the networks of the plan.
func (p *plan) fabric(o *options) *netem.Fabric {
	if p.sites == nil {
		return netem.NewFabric(o.nets, o.hosts, o.params, o.seed)
	}
	return p.sites.Fabric(o.params, o.wan, o.seed)
}

// check reports whether a command fits the networks.
func (p *plan) check(c netem.Change, o *options) error {
	if p.sites == nil {
		return c.Check(o.nets, o.hosts)
	}
	return c.CheckSites(*p.sites)
}

// apply carries a command out.
func (p *plan) apply(c netem.Change, f *netem.Fabric) error {
	if p.sites == nil {
		return c.Apply(f)
	}
	return c.ApplySites(*p.sites, f)
}

// tapAt returns the interface at a port of a network, or -1 if a router is there.
func (p *plan) tapAt(net, port int) int {
	if net < len(p.tapOf) && port < len(p.tapOf[net]) {
		return p.tapOf[net][port]
	}
	return -1
}

// next returns the port of a network to which a packet goes that an interface has sent there,
// -1 if there is none.
func (p *plan) next(f *netem.Fabric, t tap, pkt []byte) int {
	if p.sites == nil {
		return destination(t.net, pkt)
	}
	return p.nextInSites(f, t, pkt)
}

// addrs returns the addresses of a node, separated by commas.
func (n *planNode) addrs() string {
	var list []string
	for _, f := range n.ifaces {
		list = append(list, netip.AddrFrom4(f.addr).String())
	}
	return strings.Join(list, ",")
}

// hostAddr returns the address of a host in a network that joins all hosts.
func hostAddr(net, host int) [4]byte { return [4]byte{10, 77, byte(net), byte(host + 1)} }

// destination finds out for which host of such a network a packet is.
func destination(net int, pkt []byte) int {
	dst, ok := packetTo(pkt)
	if !ok || dst[0] != 10 || dst[1] != 77 || int(dst[2]) != net {
		return -1
	}
	return int(dst[3]) - 1
}

// packetTo returns the address that an IPv4 packet is for.
func packetTo(pkt []byte) (dst [4]byte, ok bool) {
	if len(pkt) < 20 || pkt[0]>>4 != 4 {
		return dst, false
	}
	return [4]byte(pkt[16:20]), true
}
