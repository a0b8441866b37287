package relay

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp"
)

const (
	// DefaultGatewayMemory bounds the memory in bytes of the frames in a gateway.
	DefaultGatewayMemory = 64 << 20
	// MaxAssociations bounds the associations between two gateways.
	MaxAssociations = 16
	// DefaultGatewayLAN and DefaultGatewayWAN are the default SCTP ports of gateways.
	DefaultGatewayLAN, DefaultGatewayWAN = 5747, 5748
)

// Peer is another gateway: of another site, or of the own one.
type Peer struct {
	Site, Gateway uint16
	// Addr is where it listens for gateways. It may be empty if that side connects: the
	// gateway with the lower (site, number) does.
	Addr sctp.Addr
	// Key is the key of the pair of sites, of at least MinKey random bytes.
	Key []byte
	// Associations is how many associations there are with it, which must be the same on both sides
	// (default 1, at most MaxAssociations). Each has a congestion window of its own; flows are hashed over them,
	// and move to others when one dies.
	Associations int
	// Rate limits what is sent to it, in bytes of frames a second, over all associations. 0 is no limit,
	// MinRate the lowest.
	Rate int64
	// Congestion is the congestion control of this side, if not zero, which leaves
	// GatewayConfig.WANSCTP to say.
	Congestion sctp.Congestion
}

// GatewayConfig holds the parameters of a Gateway. Site, Number, and LAN or WAN must be set.
type GatewayConfig struct {
	// Site is the number of the site, Number that of the gateway in it, each from 1.
	Site, Number uint16

	// LAN carries the legs to processes, on the SCTP port LANPort, WAN those to gateways, on
	// WANPort. They may be one transport. They belong to the caller, and must be closed after
	// the gateway. A port is DefaultGatewayLAN or DefaultGatewayWAN if it is 0.
	LAN, WAN         *sctp.Transport
	LANPort, WANPort uint16
	// LANSCTP and WANSCTP are the parameters of the associations. This package sets their
	// streams and upcalls.
	LANSCTP, WANSCTP sctp.Config

	// Jobs has the keys of the jobs that the gateway relays for; see Gateway.AddJob, too.
	Jobs map[uint32][]byte
	// JobKey, if not nil, returns the key of a job that is not in Jobs, or nil if there is no such job. It
	// must not block. Frames of other sites' gateways are relayed for all jobs then.
	JobKey func(job uint32) []byte
	// Peers are the gateways that it has legs to, Routes the sites through which other sites
	// are reached: by destination, the next site, which has peers.
	Peers  []Peer
	Routes map[uint16]uint16
	// Classes are how jobs share the legs to other gateways; without any all are equal.
	Classes []Class

	// Memory bounds the memory of frames (default DefaultGatewayMemory), JobMemory that of one
	// job (default half of Memory), FlowMemory that of a flow (default twice
	// DefaultFlowWindow), MaxFlows the flows (default DefaultMaxFlows), of which a process may
	// have a quarter.
	Memory, JobMemory, FlowMemory, MaxFlows int

	// LegTimeout is after how long without a frame the other end of a leg is dead.
	LegTimeout time.Duration

	// Log, if not nil, gets a line for each leg that comes or goes, for peers that are refused,
	// and at most once a second for each reason for which frames are refused.
	Log *slog.Logger
}

func (c *GatewayConfig) check() error {
	switch {
	case c.Site == 0 || c.Number == 0:
		return fmt.Errorf("%w: gateway %d of site %d: numbers begin with 1", ErrConfig, c.Number, c.Site)
	case c.LAN == nil && c.WAN == nil:
		return fmt.Errorf("%w: neither LAN nor WAN transport", ErrConfig)
	case c.WAN == nil && len(c.Peers) > 0:
		return fmt.Errorf("%w: peers without a WAN transport", ErrConfig)
	}
	for job, key := range c.Jobs {
		if err := checkJob(job, key); err != nil {
			return err
		}
	}
	sites := make(map[uint16]bool)
	seen := make(map[uint32]bool)
	c.Peers = slices.Clone(c.Peers)
	for i := range c.Peers {
		def(&c.Peers[i].Associations, 1)
		p := c.Peers[i]
		id := uint32(p.Site)<<16 | uint32(p.Gateway)
		switch {
		case p.Site == 0 || p.Gateway == 0:
			return fmt.Errorf("%w: peer %d of site %d: numbers begin with 1", ErrConfig, p.Gateway, p.Site)
		case p.Site == c.Site && p.Gateway == c.Number:
			return fmt.Errorf("%w: gateway %d of site %d is its own peer", ErrConfig, c.Number, c.Site)
		case seen[id]:
			return fmt.Errorf("%w: gateway %d of site %d is listed twice", ErrConfig, p.Gateway, p.Site)
		case len(p.Key) < MinKey:
			return fmt.Errorf("%w: key for site %d of %d bytes, want at least %d", ErrConfig, p.Site, len(p.Key), MinKey)
		case c.connects(p) && len(p.Addr.Addrs) == 0:
			return fmt.Errorf("%w: gateway %d of site %d has no address to connect to", ErrConfig, p.Gateway, p.Site)
		case p.Associations < 1 || p.Associations > MaxAssociations:
			return fmt.Errorf("%w: gateway %d of site %d: %d associations, want 1 to %d", ErrConfig, p.Gateway, p.Site, p.Associations, MaxAssociations)
		case p.Congestion > sctp.BBR:
			return fmt.Errorf("%w: gateway %d of site %d: congestion control %d, want at most %d", ErrConfig, p.Gateway, p.Site, p.Congestion, sctp.BBR)
		case p.Rate != 0 && p.Rate < MinRate:
			return fmt.Errorf("%w: gateway %d of site %d: rate of %d bytes a second, want at least %d", ErrConfig, p.Gateway, p.Site, p.Rate, MinRate)
		}
		seen[id], sites[p.Site] = true, true
	}
	for to, via := range c.Routes {
		switch {
		case to == c.Site || via == c.Site:
			return fmt.Errorf("%w: route to site %d through %d leads through the own site", ErrConfig, to, via)
		case !sites[via]:
			return fmt.Errorf("%w: route to site %d through %d, which has no peers", ErrConfig, to, via)
		case sites[to]:
			return fmt.Errorf("%w: route to site %d through %d, but it has peers", ErrConfig, to, via)
		}
	}
	if err := c.checkClasses(); err != nil {
		return err
	}
	def(&c.Memory, DefaultGatewayMemory)
	def(&c.JobMemory, c.Memory/2)
	def(&c.FlowMemory, 2*DefaultFlowWindow)
	def(&c.MaxFlows, DefaultMaxFlows)
	def(&c.LegTimeout, DefaultLegTimeout)
	def(&c.LANPort, DefaultGatewayLAN)
	def(&c.WANPort, DefaultGatewayWAN)
	switch {
	case c.Memory < 0 || c.JobMemory < 0 || c.FlowMemory < 0 || c.MaxFlows < 0:
		return fmt.Errorf("%w: negative limit", ErrConfig)
	case c.LegTimeout < MinLegTimeout:
		return fmt.Errorf("%w: LegTimeout %v, want at least %v", ErrConfig, c.LegTimeout, MinLegTimeout)
	}
	return nil
}

// connects reports whether this side connects to p.
func (c *GatewayConfig) connects(p Peer) bool {
	return c.Site < p.Site || c.Site == p.Site && c.Number < p.Gateway
}
