package core

import "net/netip"

// errorCeiling bounds the error counter of an inactive path, in multiples of
// what makes a path inactive: RFC 7829, Section 4.1, rule 3, wants it to go on,
// so that paths can be compared, up to "an order of magnitude higher than the
// PMR value".
const errorCeiling = 10

// pathClass orders paths by their fitness for data (RFC 7829, Section 3.2,
// rules 3 and 4, and Section 4.1).
type pathClass uint8

const (
	pathUsable pathClass = iota
	pathPF
	pathInactive
	pathUnconfirmed
)

func (p *path) class() pathClass {
	switch {
	case !p.confirmed:
		return pathUnconfirmed
	case !p.active:
		return pathInactive
	case p.pf:
		return pathPF
	}
	return pathUsable
}

// fitter reports whether p is better for data than q: by class and then, "the
// lowest error count (fewest consecutive timeouts)".
func (p *path) fitter(q *path) bool {
	if x, y := p.class(), q.class(); x != y {
		return x < y
	}
	return p.class() != pathUsable && p.errors < q.errors
}

// dataPath returns the path for new data: the primary one, or while that is
// potentially failed or inactive another active one (RFC 9260, Sections 6.4 and
// 6.4.1; RFC 7829, Section 3.2, rule 3). If none is active it is a path all the
// same: something must find out when the peer is back.
func (a *Assoc) dataPath() int {
	if a.paths[a.primary].usable() {
		return a.primary
	}
	best := a.primary
	for i := range a.paths {
		p, q := &a.paths[i], &a.paths[best]
		// RFC 7829, Section 4.1, rule 3: of several with the same error count, one
		// apart from "the last source -- destination pair where failure was
		// observed".
		if p.fitter(q) || best == a.failed && p.class() == q.class() && p.errors == q.errors && q.class() != pathUnconfirmed {
			best = i
		}
	}
	return best
}

// otherPath returns the path to retransmit by what timed out on path i: another
// active one (RFC 9260, Section 6.4: "SHOULD try to retransmit a chunk that
// timed out to an active destination transport address that is different"), or
// the least bad one.
func (a *Assoc) otherPath(i int) int {
	best := i
	for k := 1; k < len(a.paths); k++ {
		j := (i + k) % len(a.paths)
		p, q := &a.paths[j], &a.paths[best]
		if p.fitter(q) || best == i && p.confirmed && !q.fitter(p) {
			best = j
		}
	}
	return best
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
	if p.gone {
		return true
	}
	p.errors = min(p.errors+1, errorCeiling*(p.par.maxRetrans+1))
	a.failed = i
	switch {
	case !p.active:
	case p.errors > p.par.maxRetrans:
		p.active, p.pf = false, false
		a.events.push(Event{Kind: EventPathDown, Addr: p.Remote})
	case !p.pf && p.confirmed && len(a.paths) > 1 && p.par.pfMaxRetrans >= 0 && p.errors > p.par.pfMaxRetrans:
		// RFC 7829, Section 3.2, rule 2: "When the value in the destination
		// address error counter exceeds PFMR, the endpoint MUST mark the
		// destination address as in the PF state." With one path there is
		// nothing to fail over to.
		p.pf = true
		a.events.push(Event{Kind: EventPathFailed, Addr: p.Remote})
		a.probePF(i)
	}
	a.switchPrimary(i)
	return true
}

// probePF has a heartbeat sent to a path that is potentially failed. RFC 7829,
// Section 3.2, rule 6: "HEARTBEATs are sent when a destination address reaches
// the PF state".
func (a *Assoc) probePF(i int) {
	p := &a.paths[i]
	if p.par.hbInterval >= 0 && a.state.heartbeating() && !p.hb.waiting {
		p.hb.pending = true
	}
}

// switchPrimary is Primary Path Switchover (RFC 7829, Section 5): "When the path
// error counter on a set primary path exceeds PSMR, the SCTP implementation MUST
// autonomously select and set a new primary path", the one that data takes.
func (a *Assoc) switchPrimary(i int) {
	p := &a.paths[i]
	// Rule 1: "PSMR MUST be set greater than or equal to the PFMR value", which may
	// be another one on this path.
	least := p.par.pfMaxRetrans
	if least < 0 {
		least = p.par.maxRetrans
	}
	if !a.cfg.SwitchPrimary || i != a.primary || p.errors <= max(a.cfg.SwitchMaxRetrans, least) {
		return
	}
	if d := a.dataPath(); d != i && a.paths[d].usable() {
		a.primary = d
		a.events.push(Event{Kind: EventPrimary, Addr: a.paths[d].Remote})
	}
}

// pathAlive notes that the peer answered something that was sent on path i and
// on no other one.
func (a *Assoc) pathAlive(i int) {
	p := &a.paths[i]
	if p.gone {
		return
	}
	p.errors = 0
	if p.plpmtu.Resume(); p.plpmtu.Due() {
		a.slow |= slowHeartbeat
	}
	if !p.active || p.pf {
		p.active, p.pf = true, false
		a.events.push(Event{Kind: EventPathUp, Addr: p.Remote})
	}
}

// localFor returns the local address by which packets to remote leave: one of
// the same family, and of them one that has the longest prefix in common with
// remote, as it will be on the same network. Path i takes the ith of several, so
// that paths have as little in common as possible (RFC 9260, Section 6.4.1).
func (a *Assoc) localFor(i int, remote netip.Addr) netip.AddrPort {
	best, n := -1, 0
	for _, l := range a.local.InUse {
		if l.Addr().Is4() != remote.Is4() {
			continue
		}
		if c := commonPrefix(l.Addr(), remote); c > best {
			best, n = c, 1
		} else if c == best {
			n++
		}
	}
	if n == 0 {
		if len(a.local.InUse) > 0 {
			return a.local.InUse[0] // a dual-stack wildcard, if anything
		}
		return netip.AddrPort{}
	}
	i %= n
	for _, l := range a.local.InUse {
		if l.Addr().Is4() == remote.Is4() && commonPrefix(l.Addr(), remote) == best {
			if i == 0 {
				return l
			}
			i--
		}
	}
	return netip.AddrPort{}
}

// tryLocal chooses the local address for the next heartbeat of path i, which did
// not answer the last one. Now and then it is another one than usual: its network
// may not be that of the peer's address, whatever the prefixes say.
func (a *Assoc) tryLocal(i int) {
	p := &a.paths[i]
	every := 3
	if !p.confirmed {
		every = 2
	}
	if p.Local = p.home; p.errors%every != 0 {
		return
	}
	skip := p.errors / every
	for range len(a.local.InUse) * skip {
		for _, l := range a.local.InUse {
			if l == p.home || l.Addr().Is4() != p.Remote.Addr().Is4() {
				continue
			}
			if skip--; skip == 0 {
				p.Local = l
				return
			}
		}
	}
}

// commonPrefix returns how many leading bits two addresses of a family share.
func commonPrefix(x, y netip.Addr) int {
	a, b := x.As16(), y.As16()
	n := 0
	for i := range a {
		d := a[i] ^ b[i]
		if d == 0 {
			n += 8
			continue
		}
		for ; d&0x80 == 0; d <<= 1 {
			n++
		}
		break
	}
	return n
}

// silent reports whether nothing but heartbeats and ASCONF chunks may be sent:
// no address of the peer is confirmed, or none of ours known to it.
func (a *Assoc) silent() bool { return a.asc.Muted() || !a.paths[a.dataPath()].confirmed }
