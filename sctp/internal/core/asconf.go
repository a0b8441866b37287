package core

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/asconf"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// openAsconf begins anew: the association was established or restarted.
func (a *Assoc) openAsconf(peerTSN seq.TSN) {
	a.failAsconf(tx.ErrRestart)
	a.local.Restarted(a.local.InUse)
	a.asc.Open(&a.local, &a.reqs, asconfHost{a}, uint32(a.tsn))
	a.asconfIn.Open(uint32(peerTSN))
	a.preferred = netip.Addr{}
}

// failAsconf ends all requests; addresses on their way out are in use again.
func (r *reachability) failAsconf(err error) {
	r.asc.Fail(err)
	r.timers.Start(timer.T4, 0)
}

// asconfUnknown ends the use of ASCONF: the peer did not recognize the chunk.
func (r *reachability) asconfUnknown() {
	r.asc.Unsupported()
	r.timers.Start(timer.T4, 0)
	r.rehome(false)
}

// checkAsconf returns why the user cannot ask for a change of addresses.
func (c *situation) checkAsconf() error {
	switch {
	case c.state == Closed:
		return ErrClosed
	case c.state > Established:
		return ErrShutdown
	case c.state != Established || !c.peer.features.Has(feature.Asconf):
		return requests.ErrNotSupported
	}
	return nil
}

// askAsconf has a change of addresses asked for, which the number that it returns names in the
// EventRequestDone that tells the outcome.
func (r *reachability) askAsconf(ask func(s *asconf.Sender) (uint32, error)) (uint32, error) {
	if err := r.checkAsconf(); err != nil {
		return 0, err
	}
	id, err := ask(&r.asc)
	if err == nil {
		r.slow |= slowAsconf
	}
	return id, err
}

// AddLocalAddr tells the peer of another address of ours: see [asconf.Sender.Add].
func (r *reachability) AddLocalAddr(addr netip.AddrPort) (uint32, error) {
	return r.askAsconf(func(s *asconf.Sender) (uint32, error) { return s.Add(addr) })
}

// RemoveLocalAddr takes an address of ours back: see [asconf.Sender.Remove].
func (r *reachability) RemoveLocalAddr(addr netip.AddrPort) (uint32, error) {
	return r.askAsconf(func(s *asconf.Sender) (uint32, error) { return s.Remove(addr) })
}

// ReplaceLocalAddr replaces an address of ours in one step: see [asconf.Sender.Replace].
func (r *reachability) ReplaceLocalAddr(from, to netip.AddrPort) (uint32, error) {
	return r.askAsconf(func(s *asconf.Sender) (uint32, error) { return s.Replace(from, to) })
}

// SetPeerPrimary asks the peer to send to an address of ours: see [asconf.Sender.SetPrimary].
func (r *reachability) SetPeerPrimary(addr netip.AddrPort) (uint32, error) {
	return r.askAsconf(func(s *asconf.Sender) (uint32, error) { return s.SetPrimary(addr) })
}

// FollowLocalAddrs asks the peer for the changes after which want are our addresses, and reports
// whether there is nothing left to ask for: see [asconf.Sender.Follow].
func (r *reachability) FollowLocalAddrs(want []netip.AddrPort) (done bool) {
	switch err := r.checkAsconf(); {
	case r.state < Established || r.asc.Pending() > 0:
		return false
	case err != nil:
		return true
	}
	done = r.asc.Follow(want, r.probeAll) // what did not work before may now, and the other way round
	if r.asc.Busy() {
		r.slow |= slowAsconf
	}
	return done
}

// probeAll has a heartbeat sent to each address of the peer.
func (r *reachability) probeAll() {
	for i := range r.paths {
		if p := &r.paths[i]; !p.gone && r.state.heartbeating() {
			p.hb.pending = true
			r.slow |= slowHeartbeat
		}
	}
}

// appendAsconf appends the outstanding ASCONF, if it is to go to path i.
func (r *reachability) appendAsconf(b []byte, now clock.Time, i, room int) []byte {
	b, ok := r.asc.Append(b, i, room)
	if ok {
		if !r.timers.Running(timer.T4) { // it may be sent early: see answerMuted
			r.timers.Start(timer.T4, now+r.paths[i].rto.Value()) // RFC 5061, Section 5.1, A4
		}
		r.paths[i].lastSent = now
	}
	return b
}

// answerMuted has the ASCONF sent again where the answer to an ASCONF or a
// HEARTBEAT is to go, which may not go alone now: both ends may be changing all
// their addresses, and a peer that verifies our new one waits no longer than its
// RTO. It reports false if there is no answer that fits beside the ASCONF.
func (r *reachability) answerMuted() bool {
	q := &r.ctl
	for k := range q.n {
		reply := &q.list[k]
		t := wire.ChunkType(reply.chunk[0])
		if t != wire.ChunkAsconfAck && t != wire.ChunkHeartbeatAck || reply.path >= len(r.paths) {
			continue
		}
		if wire.HeaderLen+r.auth.ChunkLen()+len(r.asc.Chunk())+len(reply.chunk) <= r.paths[reply.path].mtu {
			r.asc.SendTo(reply.path)
			return true
		}
	}
	return false
}

// handleAsconfAck takes in an ASCONF-ACK (RFC 5061, Section 5.1, A5 to A8).
func (a *Assoc) handleAsconfAck(now clock.Time, c wire.Chunk) {
	s := &a.asc
	x, err := wire.ParseAsconfAck(c)
	if err != nil {
		return
	}
	outcome, ok, legal := s.Answers(&x)
	switch {
	case !legal:
		a.abort(wire.AppendIllegalAsconfAck(nil))
	case ok:
		i := s.Path()
		a.timers.Start(timer.T4, 0)
		a.errors = 0
		a.pathAlive(i)
		s.Finish(outcome, now+2*a.paths[i].rto.Value())
	}
}

// t4Timeout sends the ASCONF again (RFC 5061, Section 5.1, B1 to B5).
func (a *Assoc) t4Timeout() {
	s := &a.asc
	if !s.Outstanding() || !a.state.connected() || a.state == ShutdownAckSent { // C4
		return
	}
	a.stats.Timeouts++
	a.paths[s.Path()].rto.Backoff()
	if a.timedOut(s.Path()) {
		s.Retry()
	}
}

// rehome gives paths whose local address is gone another one; with spread set it
// also lets those that are not the primary one use what is new.
func (r *reachability) rehome(spread bool) {
	for i := range r.paths {
		p := &r.paths[i]
		if p.gone || len(r.local.InUse) == 0 {
			continue
		}
		if !r.local.SendsFrom(p.home) || spread && i != r.primary {
			p.setHome(r.local.For(i, p.Remote.Addr()))
		}
		p.Local = p.home
	}
}

// takesAt reports whether packets to ip belong to the association, some of whose
// addresses were removed.
func (r *reachability) takesAt(now clock.Time, ip netip.Addr) bool {
	if r.local.Takes(now, ip) || r.asc.Adding(ip) {
		return true
	}
	for i := range r.paths {
		if p := &r.paths[i]; !p.gone && (p.home.Addr() == ip || p.Local.Addr() == ip) {
			return true
		}
	}
	return false
}

// findByAsconf returns the path to an address that an ASCONF chunk names, for a
// packet whose source we do not know: RFC 5061, Section 5.2, D2 and D2-ext. Only
// a packet that is authenticated from there on counts. Without an address in the
// chunk the verification tag is enough; -1 if there is no path.
func (r *reachability) findByAsconf(it wire.Chunks, authed bool) int {
	if !r.peer.features.Has(feature.Asconf) {
		return -1
	}
	authed = authed || !r.auth.Need.Has(wire.ChunkAsconf)
	for ok := true; ok; ok = it.Next() {
		c := it.Chunk()
		if c.Type == wire.ChunkAuth && !authed && !r.checkAuth(c, it.Rest()) {
			return -1
		}
		if authed = authed || c.Type == wire.ChunkAuth; !authed {
			continue
		}
		x, err := wire.ParseAsconf(c)
		switch {
		case err != nil, !x.Addr.IsValid():
			continue
		case x.Addr.IsUnspecified():
			return r.dataPath()
		}
		if i := r.pathByIP(x.Addr.Unmap()); i >= 0 {
			return i
		}
	}
	return -1
}

// handleAsconf takes in an ASCONF chunk, which was authenticated unless the
// configuration does not ask for that.
func (a *Assoc) handleAsconf(now clock.Time, c wire.Chunk) {
	if !a.state.connected() || a.state == ShutdownAckSent { // RFC 5061, Section 5.1.1, C4
		return
	}
	x, err := wire.ParseAsconf(c)
	if err != nil {
		return
	}
	// Section 5.1.1, C5: it "SHOULD not be larger than the PMTU".
	room := min(a.paths[a.in.path].mtu-wire.HeaderLen-a.auth.ChunkLen()-wire.ChunkHeaderLen, maxControlReplyBytes)
	value, violation := a.asconfIn.Handle(&x, room, &asconfPaths{a: a, now: now})
	switch {
	case violation != "":
		a.violate(violation)
		return
	case value == nil:
		return
	}
	// E6: "The destination address of the SCTP packet containing the ASCONF-ACK
	// chunks MUST be the source address of the SCTP packet that held the ASCONF
	// chunks."
	if i := a.pathByAddr(a.in.from.Remote); i >= 0 {
		a.ctl.reply(i, wire.ChunkAsconfAck, 0, value)
		return
	}
	to := a.in.from
	if len(a.local.InUse) > 0 && !a.local.SendsFrom(to.Local) { // Section 5.3, F4
		to.Local = a.local.For(0, to.Remote.Addr())
	}
	a.sendAlone(to, a.header(), func(b []byte) []byte { return wire.AppendChunk(b, wire.ChunkAsconfAck, 0, value) })
}

// asconfHost is the association as ASCONF sees it: see [asconf.Association].
type asconfHost struct{ a *Assoc }

func (h asconfHost) CanSend() bool             { return h.a.state.canSendData() }
func (h asconfHost) DataPath() int             { return h.a.dataPath() }
func (h asconfHost) OtherPath(i int) int       { return h.a.otherPath(i) }
func (h asconfHost) MaySendTo(i int) bool      { return h.a.paths[i].confirmed || i == h.a.dataPath() }
func (h asconfHost) LocalChanged(added bool)   { h.a.rehome(added) }
func (h asconfHost) Done(id uint32, err error) { h.a.requestDone(id, err) }

// asconfPaths is the paths of the association as the peer's ASCONF changes them: see [asconf.Paths].
type asconfPaths struct {
	a       *Assoc
	now     clock.Time
	added   int
	delayed clock.Time
}

func (x *asconfPaths) From() netip.Addr           { return x.a.in.from.Remote.Addr() }
func (x *asconfPaths) Find(ip netip.Addr) int     { return x.a.pathByIP(ip) }
func (x *asconfPaths) Reaches(ip netip.Addr) bool { return x.a.local.Reaches(ip) }
func (x *asconfPaths) Len() int                   { return x.a.NumPaths() }
func (x *asconfPaths) Remove(i int)               { x.a.removePath(i) }

func (x *asconfPaths) RemoveOthers(i int) {
	for k := range x.a.paths {
		if k != i && !x.a.paths[k].gone {
			x.a.removePath(k)
		}
	}
}

// Add makes a path for a new address of the peer. RFC 5061, Section 5.3, F14: it is "put into the
// UNCONFIRMED state and MUST have path verification performed". The UDP port is
// that of the packet, as for addresses in an INIT (RFC 6951, Section 5.3).
func (x *asconfPaths) Add(ip netip.Addr) {
	a := x.a
	from, local := a.in.from, netip.AddrPort{}
	if ip == from.Remote.Addr() && (a.local.SendsFrom(from.Local) || len(a.local.InUse) == 0) {
		local = from.Local // or another one, if packets merely may still come to it
	}
	i := a.addPath(local, netip.AddrPortFrom(ip, from.Remote.Port()), false)
	// RFC 9260, Section 5.4: one probe each RTO (HB.Max.Burst = 1).
	if x.added++; x.added == 1 {
		a.paths[i].hb.pending = true
	} else {
		x.delayed += a.paths[i].rto.Value()
		a.timers.StartPath(timer.Heartbeat, i, x.now+x.delayed)
	}
	a.events.push(Event{Kind: EventPathAdded, Addr: a.paths[i].Remote})
}

func (x *asconfPaths) Prefer(i int) {
	x.a.preferred = x.a.paths[i].Remote.Addr()
	x.a.promotePrimary(i)
}
