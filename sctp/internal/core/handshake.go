package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// handshake is the state of the establishment of an association (RFC 9260,
// Section 5).
type handshake struct {
	tries    int        // expirations of T1 in a row
	rto      clock.Time // of T1
	path     int        // where INIT or COOKIE ECHO goes
	sentAt   clock.Time // when it was first sent
	sendInit bool       // to be sent
	sendEcho bool
	sendAck  bool // a COOKIE ACK
	ackPath  int
	cookie   []byte // the peer's, while in COOKIE-ECHOED
	report   []byte // encoded parameters of the INIT ACK to report
	stale    int    // Stale Cookie errors received
	lifeMS   uint32 // Cookie Preservative of the next INIT
	// localTie and peerTie stand in for the tags in cookies made while the
	// association exists (RFC 9260, Section 5.2.2). They are 0 until needed.
	localTie, peerTie uint32
}

// clear stops whatever the handshake would send.
func (h *handshake) clear() {
	h.sendInit, h.sendEcho, h.sendAck = false, false, false
	h.cookie, h.report = nil, nil
}

// ownInit returns what our INIT says.
func (a *Assoc) ownInit() cookie.InitParams {
	return cookie.InitParams{Tag: a.tag, RWND: uint32(a.cfg.RecvBuffer), Out: a.cfg.OutStreams, In: a.cfg.InStreams,
		TSN: a.tsn, Features: localFeatures(&a.cfg), Adaptation: a.cfg.Adaptation, Addrs: address.Listable(a.local.InUse),
		LifeMS: a.hs.lifeMS, Auth: a.auth.Mine}
}

// startT1 starts T1-init or T1-cookie anew.
func (a *Assoc) startT1(now clock.Time) {
	h := &a.hs
	h.tries, h.sentAt = 0, 0
	h.rto = a.boundT1(a.paths[h.path].rto.Value())
	a.timers.Start(timer.T1, now+h.rto)
}

// boundT1 bounds T1 by what the user allows (RFC 6458, Section 5.3.1,
// sinit_max_init_timeo).
func (c *situation) boundT1(rto clock.Time) clock.Time {
	if m := clock.Time(c.cfg.MaxInitTimeout); m > 0 {
		return min(rto, m)
	}
	return rto
}

// t1Timeout sends the INIT or COOKIE ECHO again (RFC 9260, Section 4, notes 2
// and 3), by the next address of the peer (Section 5.1).
func (a *Assoc) t1Timeout(now clock.Time) {
	h := &a.hs
	h.tries++
	a.stats.Timeouts++
	if h.tries > a.cfg.MaxInitRetrans {
		a.close(ErrUnreachable)
		return
	}
	h.rto = a.boundT1(min(2*h.rto, clock.Time(a.cfg.RTOMax)))
	for range a.paths {
		h.path = (h.path + 1) % len(a.paths)
		if a.paths[h.path].confirmed {
			break
		}
	}
	a.timers.Start(timer.T1, now+h.rto)
	if a.state == CookieWait {
		h.sendInit = true
	} else {
		h.sendEcho = true
		a.tx.rewind() // data that was bundled with it is lost too
	}
}

// rttSample takes the round trip of INIT or COOKIE ECHO, if it was sent once
// (Karn's algorithm, RFC 9260, Section 6.3.1, C5).
func (a *Assoc) handshakeSample(now clock.Time) {
	if h := &a.hs; h.tries == 0 && h.sentAt != 0 {
		a.paths[h.path].rto.Sample(now - h.sentAt)
	}
}

// handleInitAck takes in the INIT ACK of a packet with our tag (RFC 9260,
// Section 5.1, C).
func (a *Assoc) handleInitAck(now clock.Time, p *Packet, c wire.Chunk) DropReason {
	if a.state != CookieWait {
		return DropState // Section 5.2.3
	}
	x, err := wire.ParseInitAck(c)
	if err != nil {
		return DropMalformed
	}
	h := wire.Header{SrcPort: a.port, DstPort: a.peer.port, VTag: x.Tag}
	if x.Tag == 0 {
		// Section 3.3.3: "it MUST destroy the TCB and SHOULD send an ABORT chunk
		// with the T bit set".
		h.VTag = a.tag
		causes := wire.AppendInvalidParam(nil)
		a.sendAlone(back(p), h, func(b []byte) []byte {
			return wire.AppendAbort(b, wire.Abort{Reflected: true, Causes: causes})
		})
		a.close(newAbortError(causes, false))
		return DropNone
	}
	var in cookie.Init
	in.Parse(&x, true)
	in.Check(localFeatures(&a.cfg))
	if causes, bad := in.Refusal(nil, true); bad {
		a.sendAlone(back(p), h, func(b []byte) []byte { return wire.AppendAbort(b, wire.Abort{Causes: causes}) })
		if in.RWND >= MinRecvBuffer || in.Out == 0 || in.In == 0 {
			a.close(newAbortError(causes, false))
		}
		// Section 3.3.3, a_rwnd: "MUST NOT change the state of any existing
		// association".
		return DropNone
	}
	a.handshakeSample(now)
	a.peer = peerInfo{port: a.peer.port, tag: in.Tag}
	a.peer.learn(feature.Negotiate(localFeatures(&a.cfg), in.Features), in.Adaptation, in.HasAdaptation)
	// Section 5.1.2, C: the addresses listed and the one it came from.
	remote := address.Unmap(p.Remote)
	in.Addrs.Add(remote.Addr())
	a.addPeerAddrs(&in.Addrs, remote.Port())
	a.learnAuth(in.Auth.Vector())
	a.openStreams(int(min(a.cfg.OutStreams, in.In)), int(min(a.cfg.InStreams, in.Out)), in.TSN, in.RWND)
	h2 := &a.hs
	h2.cookie = append(h2.cookie[:0], in.Cookie...)
	h2.report = in.AppendUnknown(h2.report[:0], false)
	// The COOKIE ECHO goes back to where the INIT ACK came from if that address
	// was given by the user, and so is confirmed (Section 5.4).
	if i := a.pathByAddr(remote); i >= 0 && a.paths[i].confirmed {
		h2.path = i
		a.primary = i
	}
	a.prefer(in.Primary)
	a.setState(CookieEchoed, "INIT ACK received")
	h2.sendInit, h2.sendEcho = false, true
	a.startT1(now)
	return DropNone
}

// handleCookieAck completes the handshake at the initiating end (RFC 9260,
// Section 5.1, E); elsewhere it is discarded (Section 5.2.5).
func (a *Assoc) handleCookieAck(now clock.Time) {
	if a.state == CookieEchoed {
		a.handshakeSample(now)
		a.establish(now, "COOKIE ACK received")
	}
}

// establish enters the ESTABLISHED state from the handshake, for the reason given.
func (a *Assoc) establish(now clock.Time, reason string) {
	a.setState(Established, reason)
	a.timers.Start(timer.T1, 0)
	ack, path := a.hs.sendAck, a.hs.ackPath
	a.hs.clear()
	a.hs.sendAck, a.hs.ackPath = ack, path
	a.errors = 0
	a.events.push(Event{Kind: EventUp, Tag: a.tag})
	a.startHeartbeats(now)
	// Data that went with the COOKIE ECHO was T1's business till now.
	for i := range a.paths {
		if a.tx.sb.FlightChunks(i) > 0 && !a.timers.RunningPath(timer.T3, i) {
			a.timers.StartPath(timer.T3, i, now+a.paths[i].rto.Value())
		}
	}
	if a.shut.wanted {
		a.Shutdown(now)
	}
}

// handleStaleCookie asks for a fresh cookie with a longer life (RFC 9260,
// Section 5.2.6, alternative 3).
func (a *Assoc) handleStaleCookie(now clock.Time, c wire.Cause) {
	if a.state != CookieEchoed {
		return
	}
	h := &a.hs
	if h.stale++; h.stale > maxStaleCookies {
		a.close(ErrStale)
		return
	}
	// "SHOULD use the RTT information measured based on the previous COOKIE
	// ECHO/ERROR chunk exchange and SHOULD add no more than 1 second beyond the
	// measured RTT".
	rtt := clock.Time(0)
	if h.sentAt != 0 {
		rtt = now - h.sentAt
	}
	h.lifeMS = uint32((rtt + clock.Time(time.Second)) / clock.Time(time.Millisecond))
	a.setState(CookieWait, "the cookie was stale")
	h.sendEcho, h.sendInit = false, true
	a.tx.rewind()
	a.startT1(now)
}

// tieTags returns the tie-tags, which are made on first use (RFC 9260, Section
// 5.2.2).
func (a *Assoc) tieTags() (local, peer uint32) {
	if a.hs.localTie == 0 {
		a.hs.localTie, a.hs.peerTie = a.rng.tag(), a.rng.tag()
	}
	return a.hs.localTie, a.hs.peerTie
}

// handleInit answers the INIT, alone in its packet and without a tag, of a peer
// that we have an association with already: a collision, a restart or a
// leftover (RFC 9260, Sections 5.2.1, 5.2.2 and 9.2). It never changes the
// state.
func (a *Assoc) handleInit(now clock.Time, p *Packet, h wire.Header, c wire.Chunk) DropReason {
	x, err := wire.ParseInit(c)
	if err != nil || x.Tag == 0 {
		return DropMalformed
	}
	var in cookie.Init
	in.Parse(&x, false)
	in.Check(localFeatures(&a.cfg))
	reply := wire.Header{SrcPort: a.port, DstPort: a.peer.port, VTag: x.Tag}
	abort := func(causes []byte) DropReason {
		a.sendAlone(back(p), reply, func(b []byte) []byte { return wire.AppendAbort(b, wire.Abort{Causes: causes}) })
		return DropNone
	}
	if causes, bad := in.Refusal(nil, false); bad {
		return abort(causes)
	}
	remote := address.Unmap(p.Remote)
	s := cookie.State{Created: now, Life: cookieLife(&a.cfg, in.LifeMS), LocalPort: a.port, PeerPort: a.peer.port,
		LocalTag: a.tag, LocalTSN: a.tsn, Own: true,
		Out: min(a.cfg.OutStreams, in.In), In: min(a.cfg.InStreams, in.Out), Random: a.auth.Random}
	s.FromPeer(&in, remote, localFeatures(&a.cfg))
	in.Addrs.Add(remote.Addr())
	switch a.state {
	case ShutdownAckSent:
		// Section 9.2: "SHOULD discard the INIT chunk and retransmit the
		// SHUTDOWN ACK chunk".
		a.shut.sendAck = true
		return DropNone
	case CookieWait:
		// Section 5.2.1: the INIT ACK goes only to an address that our user
		// gave, and with the parameters of our INIT.
		if a.pathByIP(remote.Addr()) < 0 {
			return DropAddr
		}
	default:
		// Section 5.2.1 for COOKIE-ECHOED, Section 5.2.2 for the others.
		var added []byte
		for _, ip := range in.Addrs.All() {
			if a.pathByIP(ip) < 0 && !a.cfg.SinglePath {
				added = wire.AppendAddr(added, ip)
			}
		}
		if len(added) > 0 && in.Tag == a.peer.tag && a.peer.features.Has(feature.Asconf) {
			// Deviation (5.2.2, MUST): it is the INIT that began this association,
			// come late, and lists addresses that are gone since (RFC 5061). An
			// ABORT would end the association.
			return DropState
		}
		if len(added) > 0 {
			return abort(wire.AppendRestart(nil, added))
		}
		s.LocalTie, s.PeerTie = a.tieTags()
		switch {
		case a.state != CookieEchoed:
			s.LocalTag = a.rng.tag()
			a.cookies.Derive(&s)
		case in.Tag != a.peer.tag && a.senderBegun():
			// Deviation (5.2.1, MUST): another TSN than in our INIT. The peer may
			// have acknowledged, under its former tag, the data that went with the
			// COOKIE ECHO, and restarted since. Such a SACK has our tag, too: it is
			// not to be taken for one of the new association.
			s.LocalTSN += tx.TSNSpace
		}
	}
	var buf [2048]byte
	ack := appendInitAckPacket(buf[:0], h, len(p.Data), &s, &in, a.cookies, &a.cfg,
		a.local.ForRestart(address.Unmap(p.Local)))
	if i := a.pathByIP(remote.Addr()); (i < 0 || !a.paths[i].confirmed) && len(ack) > maxAmplification*len(p.Data) {
		return DropAddr // an address that the peer listed, but that need not be its own
	}
	a.standalone.push(back(p), ack)
	return DropNone
}

// handleCookieEcho takes in a COOKIE ECHO, the first chunk of its packet (RFC
// 9260, Section 5.2.4). It reports whether the rest of the packet may be
// processed, by then with our tag.
func (a *Assoc) handleCookieEcho(now clock.Time, p *Packet, h wire.Header, c wire.Chunk) (DropReason, bool) {
	var s cookie.State
	err := a.cookies.Open(&s, h, p.Remote, p.Local, c.Value, now)
	if err == cookie.ErrForged {
		return DropCookie, false
	}
	mine, theirs := s.LocalTag == a.tag, a.peer.tag != 0 && s.PeerTag == a.peer.tag
	if err == cookie.ErrStale && !(mine && theirs) {
		// Step 3 of Section 5.2.4; the answer carries the tag of the cookie.
		var buf [128]byte
		a.standalone.push(back(p), appendStalePacket(buf[:0], &s, now, a.cfg.Auth))
		return DropCookie, false
	}
	ties := a.hs.localTie != 0 && s.LocalTie == a.hs.localTie && s.PeerTie == a.hs.peerTie
	switch {
	case mine && theirs: // (D)
		if a.state == CookieEchoed {
			a.establish(now, "COOKIE ECHO received")
		}
	case mine: // (B)
		if !a.adoptPeer(now, &s) {
			return DropCookie, false
		}
	case !theirs && ties: // (A)
		if a.state == ShutdownAckSent {
			// "it MUST NOT set up a new association but instead resend the
			// SHUTDOWN ACK chunk and send an ERROR chunk with a 'Cookie Received
			// While Shutting Down' error cause".
			a.shut.sendAck = true
			a.ctl.reply(a.replyPath(max(a.pathByAddr(address.Unmap(p.Remote)), 0)), wire.ChunkError, 0,
				wire.AppendCookieInShutdown(nil))
			return DropState, false
		}
		a.restart(now, &s)
	default: // (C), and whatever Table 12 does not show
		return DropCookie, false
	}
	i := a.pathByAddr(address.Unmap(p.Remote))
	a.hs.sendAck, a.hs.ackPath = true, a.replyPath(max(i, 0))
	return DropNone, true
}

// adoptPeer is case B of RFC 9260, Table 12: both sides began at the same time,
// and the peer has taken another tag since it answered our INIT. Data that went
// with a COOKIE ECHO goes again, with the TSNs that our INIT ACK told.
//
// Deviation (5.2.4, SHOULD): once data has gone to the peer under its former tag,
// or come, this is a restart: another tag needs other TSNs. It happens if the
// peer restarts while our COOKIE ECHO is under way.
func (a *Assoc) adoptPeer(now clock.Time, s *cookie.State) bool {
	switch {
	case a.state > Established:
		return false
	case a.state == Established && (a.rx.begun() || a.senderBegun()):
		a.restart(now, s)
		return true
	}
	a.peer.tag = s.PeerTag
	a.peer.learn(s.Features, s.Adaptation, s.HasAdaptation)
	a.tx.rewind()
	a.tx.sb.Shift(s.LocalTSN - a.tsn)
	a.tsn = s.LocalTSN
	a.addPeerAddrs(&s.Addrs, s.Remote.Port())
	a.learnAuth(s.Auth)
	a.openStreams(int(s.Out), int(s.In), s.PeerTSN, s.PeerRWND)
	a.prefer(s.Preferred())
	if !a.state.connected() {
		a.establish(now, "COOKIE ECHO received")
	}
	return true
}

// restart is case A of RFC 9260, Table 12: the peer has lost its side of the
// association and set up a new one. What was queued or received is dropped.
func (a *Assoc) restart(now clock.Time, s *cookie.State) {
	a.tx.close(tx.ErrRestart)
	a.failAsconf(tx.ErrRestart) // our addresses are what they were before it
	a.local.Restarted(a.local.ForRestart(s.Local))
	a.timers.StopAll()
	a.ctl.clear()
	a.hs.clear()
	a.hs.localTie, a.hs.peerTie = 0, 0
	a.shut = shutdown{}
	a.fromCookie(s)
	a.errors = 0
	a.setState(Established, "the peer restarted")
	a.events.push(Event{Kind: EventRestart, Tag: a.tag})
	a.startHeartbeats(now)
}
