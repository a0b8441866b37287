package core

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pace"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/rto"
	"github.com/weftstack/weft/sctp/wire"
)

// path is one destination address of the peer with all that belongs to it (RFC
// 9260, Section 14.3).
type path struct {
	Tuple
	home      netip.AddrPort // Local, but for tries with another one
	id        uint32         // never used again within the association
	confirmed bool           // the address is the peer's (RFC 9260, Section 5.4)
	refused   bool           // an ICMP message said that nothing uses its UDP port, while waiting for the INIT ACK
	active    bool           // reachable as far as we know (Section 8.2)
	pf        bool           // potentially failed (RFC 7829); active still
	errors    int            // consecutive unanswered timeouts and heartbeats
	mtu       int            // size of the largest packet: plpmtu.MTU()
	reserve   int            // kept free for an AUTH chunk
	gone      bool           // removed (RFC 5061); the place is free
	par       pathLimits
	plpmtu    pmtu.Discovery
	aliveAt   clock.Time // when the peer answered last what was sent to the path
	// suspect tells that large packets do not arrive any more, and that an answer to a
	// heartbeat is to tell whether small ones do.
	suspect bool
	rto     rto.Estimator
	cc      cc.Control
	pacer   pace.Pacer
	hb      heartbeat
	// lastSent is when a chunk that can measure the round trip, or counts as
	// use of the path, was sent to it last.
	lastSent clock.Time
	// lastData is when data was sent to it last; 0 once the pause since then
	// was told to the congestion control.
	lastData clock.Time
	// burstFrom is what was in flight when the last SACK came, from where
	// Max.Burst counts.
	burstFrom int
	// single lets one packet be in flight only, after a timeout and until
	// something is acknowledged.
	single bool
	// beforeLoss is the window of before the last loss, see lossOn.
	beforeLoss cc.Window
	count      pathCounters
}

// usable reports whether data may be sent to the path.
func (p *path) usable() bool { return p.confirmed && p.active && !p.pf }

// pmdcs is the Path Maximum DATA Chunk Size: what the largest packet carries
// besides the common header and, if it needs one, an AUTH chunk.
func (p *path) pmdcs() int { return p.mtu - wire.HeaderLen - p.reserve }

// setHome has packets to the path leave from local. RFC 9260, Section 7.2.5.2: the
// "selection of a different source address" is a change of routes, for which "the
// congestion control parameters for the affected destination addresses MUST be
// reset to their initial values".
func (p *path) setHome(local netip.AddrPort) {
	if p.home != local {
		p.home = local
		p.cc.Reset()
	}
}

// control begins with the congestion control alg; the memory for CUBIC may be given.
func (p *path) control(mem *cc.CubicControl, alg cc.Algorithm) {
	p.cc = cc.NewIn(mem, cc.Config{Algorithm: alg, IPv6: p.Remote.Addr().Is6()}, p.pmdcs())
}

// addPath adds a path to remote; without a local address it takes the one that fits best.
func (a *Assoc) addPath(local, remote netip.AddrPort, confirmed bool) int {
	i := a.freePath()
	if !local.IsValid() {
		local = a.local.For(i, remote.Addr())
	}
	a.pathIDs++
	p := path{Tuple: Tuple{Local: local, Remote: remote}, home: local, id: a.pathIDs, confirmed: confirmed,
		active: true, mtu: a.cfg.MTU, plpmtu: pmtu.New(a.cfg.MTU, remote), reserve: a.auth.Reserve(),
		par: pathLimits{hbInterval: a.cfg.HBInterval, maxRetrans: a.cfg.PathMaxRetrans,
			pfMaxRetrans: a.cfg.PFMaxRetrans, dscp: a.cfg.DSCP, maxMTU: a.cfg.MaxMTU, discover: a.cfg.Discover},
		rto: rto.New(clock.Time(a.cfg.RTOInitial), clock.Time(a.cfg.RTOMin), clock.Time(a.cfg.RTOMax))}
	var mem *cc.CubicControl
	if i == 0 {
		mem = &a.first.cubic
	}
	p.control(mem, a.cfg.Congestion)
	if i < len(a.paths) {
		a.paths[i] = p
		a.tx.sb.ReusePath(i)
	} else {
		a.paths = append(a.paths, p)
	}
	a.timers.Resize(len(a.paths))
	if a.tx.sb != nil {
		a.tx.sb.SetPaths(len(a.paths))
		a.watchSizes(i)
	}
	return i
}

// addPeerAddrs adds unconfirmed paths for the addresses of list that are new.
// The UDP port is that of the packet that listed them (RFC 6951, Section 5.3).
func (a *Assoc) addPeerAddrs(list *address.List, port uint16) {
	for _, ip := range list.All() {
		if a.NumPaths() >= address.MaxPeer || a.cfg.SinglePath {
			return
		}
		if a.pathByIP(ip) < 0 && a.local.Reaches(ip) {
			a.addPath(netip.AddrPort{}, netip.AddrPortFrom(ip, port), false)
		}
	}
}

// arrivalPath returns the path on which a packet came whose verification tag
// is right, or -1 if its source is no address of the peer. If only the UDP port
// is new, the path moves to it: RFC 6951, Section 5.4, "the source port … MUST
// be updated", which is safe behind the tag check only.
func (r *reachability) arrivalPath(remote netip.AddrPort) int {
	if i := r.pathByAddr(remote); i >= 0 {
		return i
	}
	i := r.pathByIP(remote.Addr())
	if i >= 0 {
		r.paths[i].Remote = remote
		r.events.push(Event{Kind: EventPathMoved, Addr: remote})
	}
	return i
}
