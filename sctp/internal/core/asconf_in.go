package core

import (
	"encoding/binary"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// asconfReceiver is what an end knows of its peer's ASCONF chunks.
type asconfReceiver struct {
	seq uint32 // Peer-Sequence-Number: of the last one
	// acks are the values of the last ASCONF-ACK chunks, to be sent again for a
	// retransmission.
	acks [maxAsconfAcks]struct {
		seq   uint32
		value []byte
	}
	n, at int
	// primary is an address that is to become the primary one as soon as it is
	// confirmed.
	primary netip.Addr
}

// find returns the ASCONF-ACK for seq, nil if there is none.
func (r *asconfReceiver) find(seq uint32) []byte {
	for i := range r.acks[:r.n] {
		if r.acks[i].seq == seq {
			return r.acks[i].value
		}
	}
	return nil
}

func (r *asconfReceiver) keep(seq uint32, value []byte) {
	r.n = max(r.n, r.at+1)
	r.acks[r.at].seq, r.acks[r.at].value = seq, value
	r.at = (r.at + 1) % len(r.acks)
}

// findByAsconf returns the path to an address that an ASCONF chunk names, for a
// packet whose source we do not know: RFC 5061, Section 5.2, D2 and D2-ext. Only
// a packet that is authenticated from there on counts. Without an address in the
// chunk the verification tag is enough; -1 if there is no path.
func (a *Assoc) findByAsconf(it wire.Chunks, authed bool) int {
	if !a.peer.features.has(featAsconf) {
		return -1
	}
	authed = authed || !a.auth.Need.Has(wire.ChunkAsconf)
	for ok := true; ok; ok = it.Next() {
		c := it.Chunk()
		if c.Type == wire.ChunkAuth && !authed && !a.checkAuth(c, it.Rest()) {
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
			return a.dataPath()
		}
		if i := a.pathByIP(x.Addr.Unmap()); i >= 0 {
			return i
		}
	}
	return -1
}

// handleAsconf takes in an ASCONF chunk, which was authenticated unless nobody
// asked for that (RFC 5061, Section 5.2, E1 to E6).
func (a *Assoc) handleAsconf(now clock.Time, c wire.Chunk) {
	if !a.state.connected() || a.state == ShutdownAckSent { // Section 5.1.1, C4
		return
	}
	x, err := wire.ParseAsconf(c)
	if err != nil {
		return
	}
	in := &a.asc.in
	var value []byte
	switch d := int32(x.Seq - in.seq); {
	case d == 1: // E4
		if value = a.answerAsconf(now, &x); a.state == Closed {
			return
		}
		in.seq++ // V5
		in.keep(x.Seq, value)
	case d <= 0: // E2
		if value = in.find(x.Seq); value == nil {
			return
		}
	default: // E5
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
	if len(a.local) > 0 && !a.sendsFrom(to.Local) { // Section 5.3, F4
		to.Local = a.localFor(0, to.Remote.Addr())
	}
	a.sendAlone(to, a.header(), func(b []byte) []byte { return wire.AppendChunk(b, wire.ChunkAsconfAck, 0, value) })
}

// asconfChange is the processing of one ASCONF chunk.
type asconfChange struct {
	out     []byte // value of the ASCONF-ACK
	room    int    // for it
	failed  bool   // something was refused: successes must be told from now on
	closed  bool   // F11: additions and deletions are refused from now on
	full    bool   // nothing can be told any more, and so nothing be done
	added   int    // paths
	delayed clock.Time
}

// answerAsconf carries out the requests of an ASCONF in order and returns the
// value of the ASCONF-ACK (V1 to V4).
func (a *Assoc) answerAsconf(now clock.Time, x *wire.Asconf) []byte {
	r := asconfChange{out: []byte{byte(x.Seq >> 24), byte(x.Seq >> 16), byte(x.Seq >> 8), byte(x.Seq)}}
	// Section 5.1.1, C5: it "SHOULD not be larger than the PMTU".
	r.room = min(a.paths[a.in.path].mtu-wire.HeaderLen-a.auth.ChunkLen()-wire.ChunkHeaderLen, maxControlReplyBytes)
	it := wire.NewParams(x.Params)
	for it.Next() && a.state != Closed && !r.full {
		p := it.Param()
		req, err := wire.ParseAsconfRequest(p)
		known := p.Type == wire.ParamAddIP || p.Type == wire.ParamDeleteIP || p.Type == wire.ParamSetPrimary
		switch {
		case err == wire.ErrType && known:
			// The address is a host name or something else that is none.
			r.refuse(correlation(p), wire.AppendUnresolvableAddress(nil, addrParam(p)))
			r.closed = r.closed || p.Type != wire.ParamSetPrimary
			continue
		case err == wire.ErrType:
			// V2: as the two high bits of the type ask, save for what we know and
			// has no place here: "the parameter MUST be ignored" (Section 4.2).
			switch p.Type {
			case wire.ParamErrorCause, wire.ParamSuccess, wire.ParamAdaptation:
				continue
			}
			if len(p.Value) >= 4 && p.Type.Reported() {
				r.refuse(correlation(p), wire.AppendUnrecognizedParams(nil, p.Raw))
			}
			if p.Type.StopsChunk() {
				return r.out
			}
			continue
		case err != nil:
			a.violate("malformed ASCONF parameter")
			return nil
		}
		if r.failed && len(r.out)+successLen > r.room {
			r.full = true // its success could not be told
			continue
		}
		if cause := a.changePaths(now, &r, p, req); cause != nil {
			r.refuse(req.ID, cause)
			// F11: "once a receiver begins failing any ADD or DELETE request, it must
			// fail all subsequent ADD or DELETE requests contained in that single
			// ASCONF."
			r.closed = r.closed || req.Type != wire.ParamSetPrimary
		} else if r.failed {
			r.append(wire.AppendAsconfSuccess(nil, req.ID))
		}
	}
	if it.Err() != nil {
		a.violate("malformed ASCONF")
	}
	return r.out
}

// successLen is the length of a Success Indication.
const successLen = 8

// correlation returns the correlation ID of a request, 0 if it is too short for
// one.
func correlation(p wire.Param) uint32 {
	if len(p.Value) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(p.Value)
}

// refuse reports a failed request. If there is no room it is taken for failed
// all the same, because another one failed before it; and nothing is done from
// then on, because its success could not be told.
func (r *asconfChange) refuse(id uint32, cause []byte) {
	b := wire.AppendAsconfError(nil, wire.AsconfError{ID: id, Causes: cause})
	if len(r.out)+len(b) > r.room {
		b = wire.AppendAsconfError(nil, wire.AsconfError{ID: id, Causes: wire.AppendOutOfResource(nil)}) // in short
	}
	r.append(b)
	r.failed = true
}

func (r *asconfChange) append(b []byte) {
	if len(r.out)+len(b) <= r.room {
		r.out = append(r.out, b...)
	} else {
		r.full = true
	}
}

// changePaths carries out one request. It returns the cause to refuse it with,
// or nil.
func (a *Assoc) changePaths(now clock.Time, r *asconfChange, p wire.Param, req wire.AsconfRequest) []byte {
	from := a.in.from.Remote.Addr()
	ip, any := req.Addr.Unmap(), req.Addr.IsUnspecified()
	if any {
		ip = from
	}
	if !usableAddr(ip) {
		return wire.AppendUnresolvableAddress(nil, addrParam(p))
	}
	i := a.pathByIP(ip)
	switch req.Type {
	case wire.ParamAddIP:
		switch {
		case r.closed:
			return wire.AppendRefused(nil, wire.CauseResourceShortage, p)
		case i >= 0: // it is there already
		case !a.reaches(ip):
			return wire.AppendUnresolvableAddress(nil, addrParam(p))
		case a.NumPaths() >= MaxPeerAddrs: // F9
			return wire.AppendRefused(nil, wire.CauseResourceShortage, p)
		default:
			a.pathAdded(now, r, ip)
		}
	case wire.ParamDeleteIP:
		switch {
		case r.closed:
			return wire.AppendRefused(nil, wire.CauseResourceShortage, p)
		case any:
			// Section 4.2.2: "all addresses of the peer except the source address
			// of the packet MUST be deleted."
			if i < 0 {
				return wire.AppendRefused(nil, wire.CauseDeleteLastIP, p)
			}
			for k := range a.paths {
				if k != i && !a.paths[k].gone {
					a.removePath(k)
				}
			}
		case i < 0: // it is gone already
		case a.NumPaths() == 1: // F7
			return wire.AppendRefused(nil, wire.CauseDeleteLastIP, p)
		case ip == from: // F8
			return wire.AppendRefused(nil, wire.CauseDeleteSourceIP, p)
		default: // F13
			a.removePath(i)
		}
	case wire.ParamSetPrimary:
		// Section 5.4: "If a request arrives that asks the receiver to set an
		// address as primary that does not exist, the receiver SHOULD NOT honor
		// the request".
		if i < 0 {
			return wire.AppendUnresolvableAddress(nil, addrParam(p))
		}
		a.asc.in.primary = ip
		a.promotePrimary(i)
	}
	return nil
}

// addrParam returns the address parameter inside a request.
func addrParam(p wire.Param) wire.Param {
	it := wire.NewParams(p.Value[4:])
	it.Next()
	return it.Param()
}

// pathAdded makes a path for a new address of the peer. F14: it is "put into the
// UNCONFIRMED state and MUST have path verification performed". The UDP port is
// that of the packet, as for addresses in an INIT (RFC 6951, Section 5.3).
func (a *Assoc) pathAdded(now clock.Time, r *asconfChange, ip netip.Addr) {
	from, local := a.in.from, netip.AddrPort{}
	if ip == from.Remote.Addr() && (a.sendsFrom(from.Local) || len(a.local) == 0) {
		local = from.Local // or another one, if packets merely may still come to it
	}
	i := a.addPath(local, netip.AddrPortFrom(ip, from.Remote.Port()), false)
	// RFC 9260, Section 5.4: one probe each RTO (HB.Max.Burst = 1).
	if r.added++; r.added == 1 {
		a.paths[i].hb.pending = true
	} else {
		r.delayed += a.paths[i].rto.Value()
		a.timers.setPath(timerHB, i, now+r.delayed)
	}
	a.events.push(Event{Kind: EventPathAdded, Addr: a.paths[i].Remote})
}

// promotePrimary makes path i the primary one, if the peer has asked for it and
// the path is confirmed. RFC 5062, Section 5.3: an address that is not confirmed
// gets no data, so that a peer cannot aim us at a third party.
func (a *Assoc) promotePrimary(i int) {
	p := &a.paths[i]
	if in := &a.asc.in; p.confirmed && in.primary == p.Remote.Addr() {
		in.primary = netip.Addr{}
		a.SetPrimary(p.Remote)
	}
}

// prefer follows the Set Primary parameter of an INIT or INIT ACK, if we change
// addresses at all (RFC 5061, Section 5.4): at once, or when the address is
// confirmed. An unspecified address stands for the one that the packet came from,
// which is the primary one anyhow.
func (a *Assoc) prefer(ip netip.Addr) {
	if !a.cfg.ChangeAddrs || !usableAddr(ip) {
		return
	}
	if i := a.pathByIP(ip); i >= 0 {
		a.asc.in.primary = ip
		a.promotePrimary(i)
	}
}

// removePath forgets an address of the peer's. Its place stays empty until
// another path needs one, because the scoreboard knows paths by their place.
func (a *Assoc) removePath(i int) {
	p := &a.paths[i]
	was := p.Remote
	a.tx.sb.MarkPath(i)
	a.tx.sb.ForwardAgain() // its T3 ran here
	a.tx.q.ForgetPath(i)
	for k := range numPathTimers {
		a.timers.setPath(k, i, 0)
	}
	p.plpmtu.Fix(p.mtu)
	*p = path{gone: true, errors: goneErrors, par: p.par, mtu: p.mtu, plpmtu: p.plpmtu, rto: p.rto, cc: p.cc}
	if c := &a.tx.carry; c.full && c.path == i {
		c.full = false // what was in it is marked
	}
	if a.asc.in.primary == was.Addr() {
		a.asc.in.primary = netip.Addr{}
	}
	if a.primary == i { // F12
		for k := range a.paths {
			if a.paths[k].fitter(&a.paths[a.primary]) {
				a.primary = k
			}
		}
		a.events.push(Event{Kind: EventPrimary, Addr: a.paths[a.primary].Remote})
	}
	for _, at := range []*int{&a.hs.ackPath, &a.shut.path, &a.asc.path, &a.tx.rtxPath, &a.in.path, &a.failed} {
		if *at == i {
			*at = a.primary
		}
	}
	a.rc.MovePath(i, a.primary)
	a.tx.sb.MovePath(i, a.primary)
	a.ctl.move(i, a.primary)
	a.probeNow()
	a.events.push(Event{Kind: EventPathRemoved, Addr: was})
}

// goneErrors is the error counter of a removed path, which makes it the last
// choice.
const goneErrors = 1 << 30

// move gives the replies for path i to another one.
func (q *controlQueue) move(i, to int) {
	for k := range q.n {
		if q.list[k].path == i {
			q.list[k].path = to
		}
	}
}

// freePath returns the place of a removed path, or that behind the last one.
func (a *Assoc) freePath() int {
	for i := range a.paths {
		if a.paths[i].gone {
			return i
		}
	}
	return len(a.paths)
}

// livePath returns the place of the ith path that was not removed.
func (a *Assoc) livePath(i int) int {
	for k := range a.paths {
		if a.paths[k].gone {
			continue
		}
		if i == 0 {
			return k
		}
		i--
	}
	return 0
}

// silent reports whether nothing but heartbeats and ASCONF chunks may be sent:
// no address of the peer is confirmed, or none of ours known to it.
func (a *Assoc) silent() bool { return a.asc.mute || !a.paths[a.dataPath()].confirmed }
