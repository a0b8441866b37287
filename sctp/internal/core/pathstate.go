package core

import "github.com/weftstack/weft/sctp/internal/core/address"

// errorCeiling bounds the error counter of an inactive path, in multiples of
// what makes a path inactive: RFC 7829, Section 4.1, rule 3, wants it to go on,
// so that paths can be compared, up to "an order of magnitude higher than the
// PMR value".
const errorCeiling = 10

// pathError counts an unanswered timeout or heartbeat of path i, and one of the
// association if charge is set (RFC 9260, Sections 8.1 and 8.2). It reports false if
// that is one too many: the peer cannot be reached, and the association has to end.
func (r *reachability) pathError(i int, charge bool) bool {
	p := &r.paths[i]
	if charge {
		r.errors++
		if r.errors > r.cfg.AssocMaxRetrans {
			return false
		}
	}
	if p.gone {
		return true
	}
	p.errors = min(p.errors+1, errorCeiling*(p.par.maxRetrans+1))
	r.failed = i
	switch {
	case !p.active:
	case p.errors > p.par.maxRetrans:
		p.active, p.pf = false, false
		r.events.push(Event{Kind: EventPathDown, Addr: p.Remote})
	case !p.pf && p.confirmed && len(r.paths) > 1 && p.par.pfMaxRetrans >= 0 && p.errors > p.par.pfMaxRetrans:
		// RFC 7829, Section 3.2, rule 2: "When the value in the destination
		// address error counter exceeds PFMR, the endpoint MUST mark the
		// destination address as in the PF state." With one path there is
		// nothing to fail over to.
		p.pf = true
		r.events.push(Event{Kind: EventPathFailed, Addr: p.Remote})
		r.probePF(i)
	}
	r.switchPrimary(i)
	return true
}

// probePF has a heartbeat sent to a path that is potentially failed. RFC 7829,
// Section 3.2, rule 6: "HEARTBEATs are sent when a destination address reaches
// the PF state".
func (r *reachability) probePF(i int) {
	p := &r.paths[i]
	if p.par.hbInterval >= 0 && r.state.heartbeating() && !p.hb.waiting {
		p.hb.pending = true
	}
}

// switchPrimary is Primary Path Switchover (RFC 7829, Section 5): "When the path
// error counter on a set primary path exceeds PSMR, the SCTP implementation MUST
// autonomously select and set a new primary path", the one that data takes.
func (r *reachability) switchPrimary(i int) {
	p := &r.paths[i]
	// Rule 1: "PSMR MUST be set greater than or equal to the PFMR value", which may
	// be another one on this path.
	least := p.par.pfMaxRetrans
	if least < 0 {
		least = p.par.maxRetrans
	}
	if !r.cfg.SwitchPrimary || i != r.primary || p.errors <= max(r.cfg.SwitchMaxRetrans, least) {
		return
	}
	if d := r.dataPath(); d != i && r.paths[d].usable() {
		r.primary = d
		r.events.push(Event{Kind: EventPrimary, Addr: r.paths[d].Remote})
	}
}

// pathAlive notes that the peer answered something that was sent on path i and
// on no other one.
func (r *reachability) pathAlive(i int) {
	p := &r.paths[i]
	if p.gone {
		return
	}
	p.errors = 0
	if p.plpmtu.Resume(); p.plpmtu.Due() {
		r.slow |= slowHeartbeat
	}
	if !p.active || p.pf {
		p.active, p.pf = true, false
		r.events.push(Event{Kind: EventPathUp, Addr: p.Remote})
	}
}

// tryLocal chooses the local address for the next heartbeat of the path, which did
// not answer the last one. Now and then it is another one than usual: its network
// may not be that of the peer's address, whatever the prefixes say.
func (p *path) tryLocal(local *address.Local) {
	every := 3
	if !p.confirmed {
		every = 2
	}
	if p.Local = p.home; p.errors%every == 0 {
		p.Local = local.Other(p.home, p.Remote.Addr(), p.errors/every)
	}
}

// silent reports whether nothing but heartbeats and ASCONF chunks may be sent:
// no address of the peer is confirmed, or none of ours known to it.
func (r *reachability) silent() bool { return r.asc.Muted() || !r.paths[r.dataPath()].confirmed }
