package core

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/wire"
)

// heartbeatInfoLen is the length of our Heartbeat Info: the nonce, the path and
// the time. Only the nonce and the path are believed when it comes back; the
// time is kept here.
const heartbeatInfoLen = 8 + 4 + 8

// heartbeat is the probing of one path (RFC 9260, Sections 5.4 and 8.3). The
// path's timer.Heartbeat is, while waiting is set, the end of the wait for an answer,
// otherwise the end of the idle period.
type heartbeat struct {
	pending bool // to be sent with the next packet to the path
	waiting bool // sent, and an RTO has not passed yet
	nonce   uint64
	sentAt  clock.Time // when nonce was sent; 0: nonce is not in use
	from    netip.AddrPort
}

// heartbeating reports whether paths are probed. RFC 9260, Section 8.3: "is
// discontinued after sending either a SHUTDOWN chunk or SHUTDOWN ACK chunk".
func (s State) heartbeating() bool {
	return s == Established || s == ShutdownPending || s == ShutdownReceived
}

// probes reports whether path i is probed: also while the association ends, if
// that is the path for the rest and nothing but a heartbeat may be sent to it.
func (r *reachability) probes(i int) bool {
	return r.state.heartbeating() || r.state.connected() && !r.paths[i].confirmed && i == r.dataPath()
}

// probeNow has a heartbeat sent to the data path if it waits for one to be
// confirmed and none is on its way. It reports whether there is one now.
func (r *reachability) probeNow() bool {
	p := &r.paths[r.dataPath()]
	if p.confirmed || p.hb.waiting || p.hb.pending || !r.state.connected() {
		return false
	}
	p.hb.pending = true
	return true
}

// startHeartbeats begins to probe all paths; the association has just become
// established. Unconfirmed ones come first, one each RTO (HB.Max.Burst = 1).
func (r *reachability) startHeartbeats(now clock.Time) {
	wait := clock.Time(0)
	for i := range r.paths {
		p := &r.paths[i]
		p.hb = heartbeat{}
		if p.gone {
			continue
		}
		if !p.confirmed {
			r.timers.StartPath(timer.Heartbeat, i, now+max(wait, 1))
			wait += p.rto.Value()
		} else {
			r.armHeartbeat(now, i)
			r.startPMTU(now, i)
		}
	}
}

// armHeartbeat starts the idle period of path i: HB.interval plus its RTO, with
// a jitter of half of the RTO either way.
func (r *reachability) armHeartbeat(now clock.Time, i int) {
	p := &r.paths[i]
	if p.par.hbInterval < 0 || !r.state.heartbeating() {
		r.timers.StartPath(timer.Heartbeat, i, 0)
		return
	}
	rto := p.rto.Value()
	if p.pf {
		// RFC 7829, Section 3.2, rule 5: "The HB.Interval […] MUST be ignored for
		// destination addresses in PF state. Instead, HEARTBEAT chunks are sent
		// […] once per RTO."
		r.timers.StartPath(timer.Heartbeat, i, now+rto)
		return
	}
	r.timers.StartPath(timer.Heartbeat, i, now+clock.Time(p.par.hbInterval)+rto+r.rng.jitter(rto))
}

// heartbeatTimeout handles the expiry of timer.Heartbeat of path i. It reports false if the peer
// cannot be reached.
func (r *reachability) heartbeatTimeout(now clock.Time, i int) bool {
	p := &r.paths[i]
	if !r.probes(i) {
		p.hb.waiting = false // for the time when it is probed again
		return true
	}
	if !p.hb.waiting {
		// The path counts as idle only if nothing else was sent to it.
		if until := p.lastSent + clock.Time(p.par.hbInterval); !p.pf && p.confirmed && p.lastSent != 0 && until > now {
			r.timers.StartPath(timer.Heartbeat, i, until+p.rto.Value())
			return true
		}
		p.hb.pending = true
		return true
	}
	p.hb.waiting = false
	if r.cfg.HBRetry && i == r.dataPath() && r.sb.Outstanding() > 0 {
		// T3-rtx counts, at the same pace: not both.
		r.armHeartbeat(now, i)
		return true
	}
	if p.suspect && r.sb.Outstanding() > 0 {
		r.armHeartbeat(now, i) // it was sent because of T3-rtx, which counts
		return true
	}
	waited := p.rto.Value()
	p.rto.Backoff()
	// RFC 7829, Section 3.2, rule 6: "the timeout of a HEARTBEAT chunk MAY be
	// ignored if data is outstanding towards the destination address"; T3-rtx
	// counts then.
	if p.pf && r.sb.Flight(i) > 0 {
		r.armHeartbeat(now, i)
		return true
	}
	if !r.pathError(i, r.chargeHeartbeat(now, i, waited)) {
		return false
	}
	d := r.dataPath()
	if p.active && (!p.confirmed || p.pf && p.par.hbInterval >= 0) || !p.confirmed && i == d ||
		r.cfg.HBRetry && p.par.hbInterval >= 0 && (i == d || !r.paths[d].usable()) {
		// Section 5.4: "In each RTO, a probe MAY be sent on an active
		// UNCONFIRMED path"; RFC 7829, Section 3.2, rule 6: "transmits another
		// packet containing the HEARTBEAT chunk immediately".
		// Deviation, if asked for (8.3, RECOMMENDED): HB.interval does not count
		// after an unanswered heartbeat.
		p.hb.pending = true
		return true
	}
	r.armHeartbeat(now, i)
	return true
}

// chargeHeartbeat reports whether a heartbeat of path i that was waited for in vain
// counts against the association.
//
// RFC 9260, Section 8.1: only on the path that data takes; Section 5.4: and never
// on unconfirmed paths, save that there may be no other when the peer has changed
// its addresses. Nor on those that are potentially failed, which are probed more
// often (RFC 7829, Section 4): that would make the association less tolerant.
//
// Deviation, with HBRetry: if no path is usable, on whichever path; but only one in
// each timeout, as if it were data.
func (r *reachability) chargeHeartbeat(now clock.Time, i int, waited clock.Time) bool {
	d := r.dataPath()
	ours := i == d && !r.paths[i].pf
	if !r.cfg.HBRetry {
		return ours
	}
	if !ours && (r.paths[d].usable() || r.sb.Outstanding() > 0) || now-r.chargedAt < waited {
		return false
	}
	r.chargedAt = now
	return true
}

// appendHeartbeat appends the HEARTBEAT chunk that is pending on path i.
func (r *reachability) appendHeartbeat(b []byte, now clock.Time, i int) []byte {
	p := &r.paths[i]
	if p.errors > 0 && (!p.confirmed || !p.active) {
		p.tryLocal(&r.local)
	}
	p.hb = heartbeat{waiting: true, nonce: r.rng.uint64(), sentAt: now, from: p.Local}
	var info [heartbeatInfoLen]byte
	binary.BigEndian.PutUint64(info[0:], p.hb.nonce)
	binary.BigEndian.PutUint32(info[8:], p.id)
	binary.BigEndian.PutUint64(info[12:], uint64(now))
	r.stats.Heartbeats++
	p.count.heartbeats++
	p.lastSent = now
	r.timers.StartPath(timer.Heartbeat, i, now+p.rto.Value())
	return wire.AppendHeartbeat(b, wire.Heartbeat{Info: info[:]})
}

// handleHeartbeat queues the answer to a HEARTBEAT, which copies the whole
// chunk value (RFC 9260, Section 8.3).
func (a *Assoc) handleHeartbeat(c wire.Chunk) {
	switch a.state {
	case CookieEchoed, Established, ShutdownPending, ShutdownReceived, ShutdownSent:
		// Section 8.3: "up until reaching the SHUTDOWN-SENT state (sender of the
		// SHUTDOWN chunk) or the SHUTDOWN-ACK-SENT state".
		a.ctl.reply(a.in.path, wire.ChunkHeartbeatAck, 0, c.Value)
	}
}

// handleHeartbeatAck confirms the path that the HEARTBEAT was sent to, whichever
// way the answer came (RFC 9260, Sections 5.4 and 8.3).
func (r *reachability) handleHeartbeatAck(now clock.Time, c wire.Chunk) {
	x, err := wire.ParseHeartbeatAck(c)
	if err != nil || len(x.Info) < heartbeatInfoLen {
		return
	}
	i := r.pathByID(binary.BigEndian.Uint32(x.Info[8:]))
	if i < 0 {
		return
	}
	p := &r.paths[i]
	nonce := binary.BigEndian.Uint64(x.Info)
	if r.probeAcked(now, i, nonce) || p.hb.sentAt == 0 || nonce != p.hb.nonce {
		return
	}
	p.count.acked++
	if f := p.hb.from; f == p.home || slices.Contains(r.local.InUse, f) {
		p.Local = f
		p.setHome(f)
	}
	p.rto.Sample(now - p.hb.sentAt)
	p.hb = heartbeat{pending: p.hb.pending}
	r.pathAlive(i)
	p.aliveAt = now
	if p.suspect {
		r.blackHole(now, i)
	}
	if r.sb.TotalFlight() == 0 {
		// Section 8.1: "MAY choose not to clear the counter if there is
		// outstanding data": a path may carry small packets and lose large ones.
		r.errors = 0
	}
	if !p.confirmed {
		p.confirmed = true
		r.events.push(Event{Kind: EventPathConfirmed, Addr: p.Remote})
		r.startPMTU(now, i)
		r.promotePrimary(i)
	}
	if !p.hb.pending {
		r.armHeartbeat(now, i)
	}
}

// RequestHeartbeat sends a HEARTBEAT to addr with the next transmission (RFC
// 9260, Section 11.1.10). It returns ErrPath if there is no such path or the
// association is in no state to.
func (r *reachability) RequestHeartbeat(now clock.Time, addr netip.AddrPort) error {
	i := r.pathByAddr(address.Unmap(addr))
	if i < 0 || !r.state.heartbeating() {
		return ErrPath
	}
	r.paths[i].hb.pending = true
	r.slow |= slowHeartbeat
	return nil
}
