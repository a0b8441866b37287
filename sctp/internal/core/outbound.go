package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// nextPacket appends the next packet to b.
func (a *Assoc) nextPacket(now clock.Time, b []byte) ([]byte, built, bool) {
	if c := &a.tx.carry; c.full {
		c.full = false
		return append(b, c.data...), c.built, true
	}
	if r, ok := a.standalone.pop(); ok {
		return append(b, r.data...), built{Tuple: r.Tuple, path: -1}, true
	}
	at := len(b)
	switch a.state {
	case Closed:
		return b, built{}, false
	case CookieWait:
		if !a.hs.sendInit {
			return b, built{}, false
		}
		b, p := a.buildInit(b, now)
		return b, p, true
	case CookieEchoed:
		if !a.hs.sendEcho {
			// RFC 9260, Section 5.1, C: "until the COOKIE ACK chunk is returned,
			// the sender MUST NOT send any other packets to the peer".
			return b, built{}, false
		}
		b, p := a.buildCookieEcho(b, now)
		return b, p, true
	}
	if a.asc.Muted() && !a.asc.Due() && !a.answerMuted() {
		return b, built{}, false
	}
	// Something may be due on any path; the data path comes last, because data
	// is bundled there.
	if i := a.mtuProbe(); i >= 0 && !a.asc.Muted() {
		return a.appendProbe(b, now, i), built{Tuple: a.paths[i].Tuple, path: -1}, true
	}
	d, due := a.dataPath(), a.tx.sb.ForwardDue()
	spread := a.tx.spread()
	if spread {
		d = a.tx.newPath(now, d)
	}
	d, named := a.tx.newDataPath(now, d)
	a.tx.q.PickKey()
	if i, ok := a.duePath(now, d); ok {
		carrier := d
		if spread && !named && i != d && a.paths[i].usable() && a.tx.roomAt(now, i) == now && !a.tx.wouldBlock(i) {
			carrier = i // data goes with what is due
		}
		queued := a.ctl.n
		if b, ecn, ok := a.buildPacket(b, now, i, carrier); ok {
			return b, a.builtOn(i, ecn, len(b)-at), true
		}
		b = b[:at]
		if a.ctl.n < queued { // it cannot be sent there and was dropped: something else may be due
			return a.nextPacket(now, b)
		}
	}
	for again := true; again; again = spread && a.state.canSendData() && a.tx.unblock(now) {
		for last := -1; ; {
			i := a.tx.repairTo(now, d)
			if i == last {
				break
			}
			if b, ecn, ok := a.buildPacket(b, now, i, d); ok {
				return b, a.builtOn(i, ecn, len(b)-at), true
			}
			last = i // its window may have shrunk for a pause, so that another path is chosen
		}
		if b, ecn, ok := a.buildPacket(b, now, d, d); ok {
			return b, a.builtOn(d, ecn, len(b)-at), true
		}
	}
	if a.runDry(now, due) {
		return a.nextPacket(now, b[:at])
	}
	return b[:at], built{}, false
}

// builtOn describes a packet of n bytes on path i.
func (r *reachability) builtOn(i int, ecn uint8, n int) built {
	p := &r.paths[i]
	x := built{Tuple: p.Tuple, path: i, ecn: ecn, oversize: n > p.mtu}
	p.Local = p.home // the next packet tries no other
	if sent := r.asc.TakeSent(); sent || r.asc.Muted() {
		if from, ok := r.asc.Source(p.Remote.Addr().Is4()); ok {
			x.Local, x.path = from, -1
		}
	}
	return x
}

// duePath returns a path on which a control chunk is due.
func (a *Assoc) duePath(now clock.Time, d int) (int, bool) {
	if a.hs.sendAck {
		return a.hs.ackPath, true
	}
	if i, ok := a.asc.NextPath(); ok {
		return i, true
	}
	if i, ok := a.ctl.path(); ok && i < len(a.paths) {
		return i, true
	}
	if (a.shut.sendReq || a.shut.sendAck) && a.paths[a.shut.path].confirmed {
		return a.shut.path, true
	}
	for i := range a.paths {
		if a.paths[i].hb.pending {
			return i, true
		}
	}
	if i, ok := a.reconfigPath(now); ok {
		return i, true
	}
	if a.rx.sack.Due(now) {
		return a.sackPath(a.paths, d), true
	}
	return 0, false
}

// sackPath returns on which of the paths a SACK goes: to where the data came from (RFC 9260,
// Section 6.7), unless that is unconfirmed.
func (r *receiver) sackPath(paths []path, d int) int {
	if i := r.rx.sack.Path(); i < len(paths) && paths[i].confirmed {
		return i
	}
	return d
}

// repairTo returns where chunks marked for retransmission go.
func (t *sender) repairTo(now clock.Time, d int) int {
	if t.spread() {
		return t.repairPath(now, d)
	}
	if i := t.rtxPath; i < len(*t.paths) && t.path(i).usable() {
		return i
	}
	return d
}

// buildInit appends the packet with our INIT, which stands alone (RFC 9260,
// Section 5.1).
func (a *Assoc) buildInit(b []byte, now clock.Time) ([]byte, built) {
	h, at := &a.hs, len(b)
	h.sendInit = false
	if h.sentAt == 0 {
		h.sentAt = now
	}
	b = wire.AppendHeader(b, wire.Header{SrcPort: a.port, DstPort: a.peer.port})
	ip := a.ownInit()
	b = ip.Append(b, false)
	wire.SetChecksum(b[at:])
	return b, built{Tuple: a.paths[h.path].Tuple, path: -1}
}

// buildCookieEcho appends the packet with the COOKIE ECHO, an ERROR chunk if
// the INIT ACK had something to report, and as much data as fits (RFC 9260,
// Section 5.1, C).
func (a *Assoc) buildCookieEcho(b []byte, now clock.Time) ([]byte, built) {
	h, at := &a.hs, len(b)
	p := &a.paths[h.path]
	d, _ := a.tx.newDataPath(now, h.path)
	a.tx.q.PickKey()
	h.sendEcho = false
	if h.sentAt == 0 {
		h.sentAt = now
	}
	b = wire.AppendHeader(b, a.header())
	auth := 0
	if m := &a.auth; m.On && m.Must.Has(wire.ChunkCookieEcho) {
		auth, b = len(b), m.BeginKey(b, a.dataKey())
	}
	b = wire.AppendCookieEcho(b, wire.CookieEcho{Cookie: h.cookie})
	if auth == 0 && a.auth.Always {
		auth, b = len(b), a.auth.BeginKey(b, a.dataKey())
	}
	if end := at + p.mtu; len(h.report) > 0 && len(b)+len(h.report)+2*wire.ChunkHeaderLen <= end {
		b = wire.AppendOpError(b, wire.OpError{Causes: wire.AppendUnrecognizedParams(nil, h.report)})
	}
	ecn := uint8(ECNNotECT)
	if !a.shut.wanted || !a.tx.q.Empty() {
		b, ecn = a.appendData(b, now, h.path, d, at+p.mtu)
	}
	if auth > 0 {
		a.auth.FinishKey(b[auth:], a.dataKey())
	}
	wire.SetChecksum(b[at:])
	return b, built{Tuple: p.Tuple, path: -1, ecn: ecn}
}

// buildPacket appends a packet for path i with everything there is for it; d is
// the path of new data. With ok false there was nothing, and b is as it was.
func (a *Assoc) buildPacket(b []byte, now clock.Time, i, d int) (_ []byte, ecn uint8, ok bool) {
	p, at := &a.paths[i], len(b)
	end := at + p.mtu
	b = wire.AppendHeader(b, a.header())
	begin, auth := len(b), 0
	full := end - begin // room for chunks besides AUTH
	ack := a.hs.sendAck && a.hs.ackPath == i
	if ack && !a.auth.Must.Has(wire.ChunkCookieAck) {
		// RFC 9260, Section 5.1, D: "the COOKIE ACK chunk MUST be the first".
		b = wire.AppendCookieAck(b)
		a.hs.sendAck, ack = false, false
	}
	if a.authDue(i) {
		auth, b = len(b), a.auth.BeginKey(b, a.dataKey())
		full -= len(b) - auth
		if auth == begin {
			begin = len(b)
		}
	}
	if ack {
		b = wire.AppendCookieAck(b)
		a.hs.sendAck = false
	}
	n := len(b)
	b = a.appendAsconf(b, now, i, end-len(b))
	asconf := len(b) > n
	if a.shut.path == i && p.confirmed {
		b = a.appendShutdown(b, end)
	}
	short := p.hb.pending && p.suspect // data would make the packet long
	if p.hb.pending {
		b = a.appendHeartbeat(b, now, i)
	}
	b = a.ctl.appendTo(b, i, end-len(b), full, p.confirmed)
	b = a.appendReconfig(b, now, i, end-len(b))
	data := !short && a.state.canSendData() && p.confirmed && a.tx.dataReady(now, i, d)
	if a.rx.sack.Pending() && i == a.sackPath(a.paths, d) &&
		(len(b) > begin || a.rx.sack.Due(now) || data && a.bundlesSack(now)) && p.confirmed {
		// Section 6.1: "the sender SHOULD create a SACK chunk and bundle it with
		// the outbound DATA chunk".
		b = a.appendAck(b, end-len(b))
	}
	if data {
		if a.ecn.cwr && end-len(b) >= ecnChunkLen {
			a.ecn.cwr = false
			b = wire.AppendCWR(b, wire.CWR{TSN: uint32(a.ecn.cut)})
		}
		if a.tx.sb.HasRtx() {
			// RFC 3758, Section 3.5, F2: "SHOULD always attempt to bundle an outgoing
			// FORWARD TSN with outbound DATA chunks".
			a.tx.sb.DropGivenUp(now)
		}
		if a.tx.sb.ForwardDue() {
			var sent bool
			b, sent = a.tx.sb.AppendForward(b, end-len(b))
			// RFC 3758, Section 3.5, C5: "If a FORWARD TSN is sent, the sender
			// MUST assure that at least one T3-rtx timer is running."
			if sent && !a.timers.RunningPath(timer.T3, i) {
				a.timers.StartPath(timer.T3, i, now+p.rto.Value())
			}
		}
		b, ecn = a.appendData(b, now, i, d, end)
	}
	if len(b) == begin {
		return b[:at], 0, false
	}
	if auth > 0 {
		a.auth.FinishKey(b[auth:], a.dataKey())
	}
	a.seal(b, at, i, asconf)
	return b, ecn, true
}

// appendShutdown appends the SHUTDOWN or SHUTDOWN ACK that is to be sent.
func (a *Assoc) appendShutdown(b []byte, end int) []byte {
	s := &a.shut
	switch {
	case s.sendReq && a.state == ShutdownSent:
		b = wire.AppendShutdown(b, wire.Shutdown{CumTSN: uint32(a.rx.tsns.CumTSN())})
		// Section 9.2: "If a SHUTDOWN chunk by itself cannot acknowledge all of
		// the received DATA chunks … a SACK chunk MUST also be sent." One goes along,
		// too, if the window was small once: a SHUTDOWN does not tell that it has opened.
		if !a.rx.tsns.HasGaps() && len(a.rx.tsns.Duplicates()) == 0 && !a.rx.reasm.Scarce() {
			a.rx.sack.Sent()
		}
	case s.sendAck && a.state == ShutdownAckSent:
		b = wire.AppendShutdownAck(b)
	}
	s.sendReq, s.sendAck = false, false
	return b
}

// appendData appends DATA chunks to the packet that ends before b[end]: first
// those to be retransmitted, then new ones (RFC 9260, Section 6.1, C and E).
func (a *Assoc) appendData(b []byte, now clock.Time, i, d, end int) ([]byte, uint8) {
	t, sb, p := &a.tx, a.tx.sb, &a.paths[i]
	before, full := len(b), p.pmdcs()
	permit, over := sb.Permit(), sb.Flight(i) >= p.cc.Cwnd()
	rtx := false
	if sb.HasRtx() && (permit || a.tx.mayFill(now, i)) && (i == a.tx.repairTo(now, d) || !a.state.connected()) {
		if n := sb.RtxSize(); n > full && len(b)+n > end && before-end+p.mtu <= wire.HeaderLen+p.reserve {
			end = before + n // Section 6.9: IP fragments it; it cannot be cut again
		}
		for ok := true; ok; {
			b, ok = sb.AppendRtx(b, now, i, end-len(b))
			rtx = rtx || ok
		}
		t.detour = 0
	}
	if i == d && !sb.HasRtx() && t.q.Pending() && (permit || rtx || a.tx.mayFill(now, i)) && a.tx.windowOpen(now, i) {
		probe := sb.ZeroWindow()
		most := 0
		if len(a.paths) > 1 {
			most = a.amdcs(i)
		}
		t.q.LimitChunks(most)
		for ok := true; ok; {
			b, ok = sb.AppendNew(b, now, i, tx.Room{Space: end - len(b), Full: full})
			if ok && probe {
				t.mayProbe = false
				t.probes++
				a.stats.WindowProbes++
			}
		}
		t.q.EndPacket()
	}
	n := len(b) - before
	if n == 0 {
		return b, ECNNotECT
	}
	if permit {
		sb.UsePermit(i, over)
	}
	a.dataSent(now, i, n, 1)
	if rtx {
		return b, ECNNotECT
	}
	return b, a.dataECN()
}

// dataSent tells congestion control, pacer and T3 of n bytes of chunks that left on path i, in so many packets.
func (a *Assoc) dataSent(now clock.Time, i, n, packets int) {
	p := &a.paths[i]
	p.lastData, p.lastSent = now, now
	p.count.packets += uint64(packets)
	p.count.bytes += uint64(n)
	p.cc.OnSent(now, n, a.tx.sb.Flight(i))
	if !a.cfg.NoPacing {
		p.pacer.OnSent(now, n)
	}
	// Section 6.3.2, R1, and Section 6.1 for the earliest outstanding chunk. In
	// COOKIE-ECHOED T1 is in charge.
	if !a.state.connected() {
		return
	}
	if restart := a.tx.sb.TakeRestart(i); restart || !a.timers.RunningPath(timer.T3, i) {
		a.timers.StartPath(timer.T3, i, now+p.rto.Value())
	}
}

// WantTransmit reports whether PollTransmit may have something to send for a
// reason that the caller cannot know otherwise: a window update after a Read or
// ReleasePiece.
func (a *Assoc) WantTransmit() bool { return a.state.connected() && a.rx.sack.Forced() }

// sendAlone queues a packet with header h and what chunk appends.
func (c *situation) sendAlone(t Tuple, h wire.Header, chunk func(b []byte) []byte) {
	r := c.standalone.slot(t)
	r.data = chunk(wire.AppendHeader(r.data, h))
	if m := &c.auth; m.On && h == c.header() && m.Must.Has(wire.ChunkType(r.data[wire.HeaderLen])) {
		r.data = chunk(m.Begin(r.data[:wire.HeaderLen]))
		m.Finish(r.data[wire.HeaderLen:])
	}
	wire.SetChecksum(r.data)
}
