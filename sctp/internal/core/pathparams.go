package core

import (
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// pathLimits are the parameters of a path that can be set one by one.
type pathLimits struct {
	hbInterval   time.Duration // negative: no heartbeats
	maxRetrans   int           // Path.Max.Retrans
	pfMaxRetrans int           // PotentiallyFailed.Max.Retrans; negative: never
	maxMTU       int           // what the interface takes
	discover     bool          // path MTU discovery (RFC 8899)
	dscp         uint8
}

// pathCounters count what happened on a path.
type pathCounters struct {
	packets, bytes    uint64 // with DATA
	timeouts          uint64
	heartbeats, acked uint64
	marks             uint64 // congestion marks of the peer's that were answered
	probes, holes     uint64 // of path MTU discovery
	undone            uint64 // reductions of the window that were taken back
}

// PathStats is a snapshot of one path.
type PathStats struct {
	Tuple
	// Active and Confirmed are RFC 9260's; PotentiallyFailed is RFC 7829's, of
	// active paths.
	Active, Confirmed, Primary, PotentiallyFailed bool
	SRTT, RTTVar, RTO                             time.Duration
	CWND, SSThresh, InFlight                      int
	MTU, Errors                                   int
	// PacketsSent and BytesSent count packets with DATA and the chunks in them,
	// Timeouts the expirations of T3-rtx, Heartbeats those sent and
	// HeartbeatsAcked those answered, CongestionMarks the reactions to ECN,
	// MTUProbes the probes of path MTU discovery and BlackHoles how often the
	// path MTU had to be given up; SpuriousLosses counts reductions of the
	// congestion window that were taken back because nothing had been lost.
	PacketsSent, BytesSent, Timeouts, Heartbeats, HeartbeatsAcked uint64
	CongestionMarks, MTUProbes, BlackHoles, SpuriousLosses        uint64
}

// PathStats returns a snapshot of path i, which is less than NumPaths.
func (r *reachability) PathStats(i int) PathStats {
	i = r.livePath(i)
	p := &r.paths[i]
	c := &p.count
	return PathStats{Tuple: p.Tuple, Active: p.active, Confirmed: p.confirmed, Primary: i == r.primary,
		PotentiallyFailed: p.pf, SRTT: time.Duration(p.rto.SRTT()), RTTVar: time.Duration(p.rto.Var()),
		RTO: time.Duration(p.rto.Value()), CWND: p.cc.Cwnd(), SSThresh: p.cc.Ssthresh(), InFlight: r.sb.Flight(i),
		MTU: p.mtu, Errors: p.errors, PacketsSent: c.packets, BytesSent: c.bytes, Timeouts: c.timeouts,
		Heartbeats: c.heartbeats, HeartbeatsAcked: c.acked, CongestionMarks: c.marks, MTUProbes: c.probes,
		BlackHoles: c.holes, SpuriousLosses: c.undone}
}

// SetCongestion replaces the congestion control of all paths. Windows start anew.
func (r *reachability) SetCongestion(alg cc.Algorithm) {
	r.cfg.Congestion = alg
	for i := range r.paths {
		r.paths[i].control(nil, alg)
		r.paths[i].beforeLoss = cc.Window{}
	}
}

// SetPrimary makes the path to addr the primary one (RFC 9260, Section
// 11.1.6). It returns ErrPath if there is no such path or it is unconfirmed.
func (r *reachability) SetPrimary(addr netip.AddrPort) error {
	i := r.pathByAddr(address.Unmap(addr))
	if i < 0 || !r.paths[i].confirmed {
		return ErrPath
	}
	if i != r.primary {
		r.primary = i
		r.events.push(Event{Kind: EventPrimary, Addr: r.paths[i].Remote})
	}
	return nil
}

// promotePrimary makes path i the primary one, if the peer has asked for it and
// the path is confirmed. RFC 5062, Section 5.3: an address that is not confirmed
// gets no data, so that a peer cannot aim us at a third party.
func (r *reachability) promotePrimary(i int) {
	p := &r.paths[i]
	if p.confirmed && r.preferred == p.Remote.Addr() {
		r.preferred = netip.Addr{}
		r.SetPrimary(p.Remote)
	}
}

// prefer follows the Set Primary parameter of an INIT or INIT ACK, if we change
// addresses at all (RFC 5061, Section 5.4): at once, or when the address is
// confirmed. An unspecified address stands for the one that the packet came from,
// which is the primary one anyhow.
func (r *reachability) prefer(ip netip.Addr) {
	if !r.cfg.ChangeAddrs || !address.Usable(ip) {
		return
	}
	if i := r.pathByIP(ip); i >= 0 {
		r.preferred = ip
		r.promotePrimary(i)
	}
}

// PathParams are the parameters of one path (RFC 6458, Section 8.1.12; RFC 7829,
// Section 7.2).
type PathParams struct {
	// HBInterval is how often the idle path is probed; negative means never.
	HBInterval time.Duration
	// MaxRetrans is Path.Max.Retrans and PFMaxRetrans PotentiallyFailed.Max.
	// Retrans; negative means that the path is never potentially failed.
	MaxRetrans, PFMaxRetrans int
	// MTU is the size of the largest SCTP packet, Discover whether it is looked
	// for (RFC 8899).
	MTU      int
	Discover bool
	// DSCP is the Differentiated Services Code Point of packets on the path.
	DSCP uint8
}

// dscpOf returns the Differentiated Services Code Point of a packet.
func (r *reachability) dscpOf(p *built) uint8 {
	i := p.path
	if i < 0 {
		i = r.pathByAddr(p.Remote)
	}
	if i < 0 {
		return r.cfg.DSCP
	}
	return r.paths[i].par.dscp
}

// PathParams returns the parameters of the path to addr. It returns ErrPath if
// there is no such path.
func (r *reachability) PathParams(addr netip.AddrPort) (PathParams, error) {
	i := r.pathByAddr(address.Unmap(addr))
	if i < 0 {
		return PathParams{}, ErrPath
	}
	p := &r.paths[i]
	return PathParams{HBInterval: p.par.hbInterval, MaxRetrans: p.par.maxRetrans, PFMaxRetrans: p.par.pfMaxRetrans,
		MTU: p.mtu, Discover: p.par.discover && p.plpmtu.On(), DSCP: p.par.dscp}, nil
}

// SetPathParams changes the parameters of the path to addr. Zero fields stay as
// they are, apart from PFMaxRetrans, Discover and DSCP; MTU counts only without
// Discover. It returns ErrPath if there is no such path. PollTransmit is due
// afterwards.
func (a *Assoc) SetPathParams(now clock.Time, addr netip.AddrPort, x PathParams) error {
	i := a.pathByAddr(address.Unmap(addr))
	if i < 0 {
		return ErrPath
	}
	p := &a.paths[i]
	p.par.pfMaxRetrans, p.par.dscp = x.PFMaxRetrans, x.DSCP
	if x.MaxRetrans > 0 {
		p.par.maxRetrans = x.MaxRetrans
	}
	if x.HBInterval != 0 && x.HBInterval != p.par.hbInterval {
		p.par.hbInterval = x.HBInterval
		if x.HBInterval < 0 {
			p.hb.pending = false
		}
		if !p.hb.waiting && !p.hb.pending {
			a.armHeartbeat(now, i)
		}
	}
	switch {
	case x.Discover && !(p.par.discover && p.plpmtu.On()):
		p.par.discover = true
		a.startPMTU(now, i)
	case !x.Discover:
		if x.MTU == 0 {
			x.MTU = p.mtu
		}
		a.fixMTU(i, x.MTU)
	}
	a.recheckSlow()
	return nil
}
