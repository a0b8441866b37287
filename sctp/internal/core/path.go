package core

import (
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

// path is one destination address of the peer with all that belongs to it (RFC
// 9260, Section 14.3).
type path struct {
	Tuple
	id        uint32 // never used again within the association
	confirmed bool   // the address is the peer's (RFC 9260, Section 5.4)
	active    bool   // reachable as far as we know (Section 8.2)
	errors    int    // consecutive unanswered timeouts and heartbeats
	mtu       int    // size of the largest packet
	rto       RTO
	cc        CongestionControl
	pacer     Pacer
	hb        heartbeat
	// lastSent is when a chunk that can measure the round trip, or counts as
	// use of the path, was sent to it last.
	lastSent Time
	// lastData is when data was sent to it last; 0 once the pause since then
	// was told to the congestion control.
	lastData Time
	// burstFrom is what was in flight when the last SACK came, from where
	// Max.Burst counts.
	burstFrom int
}

// usable reports whether data may be sent to the path.
func (p *path) usable() bool { return p.confirmed && p.active }

// pmdcs is the Path Maximum DATA Chunk Size: what the largest packet carries
// besides the common header.
func (p *path) pmdcs() int { return p.mtu - wire.HeaderLen }

// addPath adds a path to remote, by which it leaves this host on a local
// address of the same family; with several of them the paths take turns, so
// that they have as little in common as possible (RFC 9260, Section 6.4.1).
func (a *Assoc) addPath(local, remote netip.AddrPort, confirmed bool) int {
	i := len(a.paths)
	if !local.IsValid() {
		local = a.localFor(i, remote.Addr())
	}
	a.pathIDs++
	p := path{Tuple: Tuple{Local: local, Remote: remote}, id: a.pathIDs, confirmed: confirmed, active: true, mtu: a.cfg.MTU,
		rto: NewRTO(Time(a.cfg.RTOInitial), Time(a.cfg.RTOMin), Time(a.cfg.RTOMax))}
	p.cc = NewCongestionControl(CCConfig{Algorithm: a.cfg.Congestion, IPv6: remote.Addr().Is6()}, p.pmdcs())
	a.paths = append(a.paths, p)
	a.timers.resize(len(a.paths))
	if a.tx.sb != nil {
		a.tx.sb.SetPaths(len(a.paths))
	}
	return i
}

// reaches reports whether packets to an address of this family can leave: RFC
// 9260, Section 5.1.2, lets us ignore addresses of a family that we do not
// support. An unspecified IPv6 address counts as a dual-stack socket.
func (a *Assoc) reaches(remote netip.Addr) bool {
	for _, l := range a.local {
		if ip := l.Addr(); ip.Is4() == remote.Is4() || ip == netip.IPv6Unspecified() {
			return true
		}
	}
	return len(a.local) == 0
}

func (a *Assoc) localFor(i int, remote netip.Addr) netip.AddrPort {
	n := 0
	for _, l := range a.local {
		if l.Addr().Is4() == remote.Is4() {
			n++
		}
	}
	if n == 0 {
		if len(a.local) > 0 {
			return a.local[0] // a dual-stack wildcard, if anything
		}
		return netip.AddrPort{}
	}
	i %= n
	for _, l := range a.local {
		if l.Addr().Is4() != remote.Is4() {
			continue
		}
		if i == 0 {
			return l
		}
		i--
	}
	return netip.AddrPort{}
}

// addPeerAddrs adds unconfirmed paths for the addresses of list that are new.
// The UDP port is that of the packet that listed them (RFC 6951, Section 5.3).
func (a *Assoc) addPeerAddrs(list *addrList, port uint16) {
	for _, ip := range list.list[:list.n] {
		if len(a.paths) >= MaxPeerAddrs {
			return
		}
		if a.pathByIP(ip) < 0 && a.reaches(ip) {
			a.addPath(netip.AddrPort{}, netip.AddrPortFrom(ip, port), false)
		}
	}
}

// pathByAddr returns the path to remote, or -1.
func (a *Assoc) pathByAddr(remote netip.AddrPort) int {
	if i := a.lastPath; i < len(a.paths) && a.paths[i].Remote == remote {
		return i
	}
	for i := range a.paths {
		if a.paths[i].Remote == remote {
			a.lastPath = i
			return i
		}
	}
	return -1
}

// pathByIP returns the path to an IP address, or -1.
func (a *Assoc) pathByIP(ip netip.Addr) int {
	for i := range a.paths {
		if a.paths[i].Remote.Addr() == ip {
			return i
		}
	}
	return -1
}

// arrivalPath returns the path on which a packet came whose verification tag
// is right, or -1 if its source is no address of the peer. If only the UDP port
// is new, the path moves to it: RFC 6951, Section 5.4, "the source port … MUST
// be updated", which is safe behind the tag check only.
func (a *Assoc) arrivalPath(remote netip.AddrPort) int {
	if i := a.pathByAddr(remote); i >= 0 {
		return i
	}
	i := a.pathByIP(remote.Addr())
	if i >= 0 && remote.Port() != 0 {
		a.paths[i].Remote = remote
		a.events.push(Event{Kind: EventPathMoved, Addr: remote})
	}
	return i
}

// dataPath returns the path for new data: the primary one, or while that is
// inactive another active one (RFC 9260, Sections 6.4 and 6.4.1). If no path is
// active it is a confirmed one all the same: something must find out when the
// peer is back.
func (a *Assoc) dataPath() int {
	if a.paths[a.primary].usable() {
		return a.primary
	}
	best := -1
	for i := range a.paths {
		p := &a.paths[i]
		switch {
		case p.usable():
			return i
		case p.confirmed && (best < 0 || p.errors < a.paths[best].errors):
			best = i
		}
	}
	return max(best, 0)
}

// otherPath returns a usable path that is not i, or i if there is none (RFC
// 9260, Section 6.4: "SHOULD try to retransmit a chunk that timed out to an
// active destination transport address that is different").
func (a *Assoc) otherPath(i int) int {
	for k := 1; k < len(a.paths); k++ {
		if j := (i + k) % len(a.paths); a.paths[j].usable() {
			return j
		}
	}
	return i
}

// replyPath returns where a reply to a packet from path i goes: back there,
// unless nothing but heartbeats may be sent to it (RFC 9260, Sections 5.4 and
// 6.4).
func (a *Assoc) replyPath(i int) int {
	if i < len(a.paths) && a.paths[i].confirmed {
		return i
	}
	return a.dataPath()
}

// pathError counts an unanswered timeout or heartbeat of path i, and one of the
// association if charge is set (RFC 9260, Sections 8.1 and 8.2). It reports
// whether the association survived.
func (a *Assoc) pathError(i int, charge bool) bool {
	p := &a.paths[i]
	if charge {
		a.errors++
		if a.errors > a.cfg.AssocMaxRetrans {
			a.close(ErrUnreachable)
			return false
		}
	}
	// Section 8.3: of an inactive path "SHOULD stop increasing the counter".
	if !p.active {
		return true
	}
	p.errors++
	if p.errors > a.cfg.PathMaxRetrans {
		p.active = false
		a.events.push(Event{Kind: EventPathDown, Addr: p.Remote})
	}
	return true
}

// pathAlive notes that the peer answered something sent on path i.
func (a *Assoc) pathAlive(i int) {
	p := &a.paths[i]
	p.errors = 0
	if !p.active {
		p.active = true
		a.events.push(Event{Kind: EventPathUp, Addr: p.Remote})
	}
}

// NumPaths returns how many paths there are.
func (a *Assoc) NumPaths() int { return len(a.paths) }

// PathStats is a snapshot of one path.
type PathStats struct {
	Tuple
	Active, Confirmed, Primary bool
	SRTT, RTTVar, RTO          time.Duration
	CWND, SSThresh, InFlight   int
	MTU, Errors                int
}

// PathStats returns a snapshot of path i, which is less than NumPaths.
func (a *Assoc) PathStats(i int) PathStats {
	p := &a.paths[i]
	return PathStats{Tuple: p.Tuple, Active: p.active, Confirmed: p.confirmed, Primary: i == a.primary,
		SRTT: time.Duration(p.rto.SRTT()), RTTVar: time.Duration(p.rto.Var()), RTO: time.Duration(p.rto.Value()),
		CWND: p.cc.Cwnd(), SSThresh: p.cc.Ssthresh(), InFlight: a.inFlight(i), MTU: p.mtu, Errors: p.errors}
}

// SetPrimary makes the path to addr the primary one (RFC 9260, Section
// 11.1.6). It returns ErrPath if there is no such path or it is unconfirmed.
func (a *Assoc) SetPrimary(addr netip.AddrPort) error {
	i := a.pathByAddr(unmap(addr))
	if i < 0 || !a.paths[i].confirmed {
		return ErrPath
	}
	if i != a.primary {
		a.primary = i
		a.events.push(Event{Kind: EventPrimary, Addr: a.paths[i].Remote})
	}
	return nil
}

// SetPathMTU sets the size of the largest SCTP packet for the path to addr. It
// returns ErrPath if there is no such path.
func (a *Assoc) SetPathMTU(addr netip.AddrPort, size int) error {
	i := a.pathByAddr(unmap(addr))
	if i < 0 {
		return ErrPath
	}
	p := &a.paths[i]
	p.mtu = clampMTU(size)
	p.cc.SetMTU(p.pmdcs())
	return nil
}
