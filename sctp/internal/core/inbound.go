package core

import (
	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// inbound is what the handlers of chunks need to know of the packet in hand.
type inbound struct {
	path      int
	buf       *slab.Buf
	ecn       uint8
	reports   int  // bytes of unknown chunks reported
	authed    bool // what follows was authenticated
	deferSack bool // see Packet.DeferSack
	control   bool // it may change why the slow path is needed
	from      Tuple
}

// HandlePacket takes in one packet, found by its verification tag or, failing
// that, by address and ports. It aliases p.Data in p.Buf, of which it takes
// references; without Buf it copies. The result is DropNone if the packet was
// acceptable, whatever came of its chunks.
func (a *Assoc) HandlePacket(now clock.Time, p *Packet) DropReason {
	a.stats.PacketsReceived++
	a.ProcessDeferredSack()
	a.in.deferSack, a.in.control = p.DeferSack, p.ECN == ECNCE
	d := a.handlePacket(now, p)
	if a.in.control || a.slow != 0 {
		a.slow = a.findSlowReasons()
	}
	if d != DropNone {
		a.stats.Dropped++
	} else if p.ECN == ECNCE {
		a.stats.Marked++
	}
	return d
}

func (a *Assoc) handlePacket(now clock.Time, p *Packet) DropReason {
	if a.state == Closed {
		return DropClosed
	}
	h, drop := checkPacket(p, a.verified(p))
	switch {
	case drop != DropNone:
		return drop
	case h.DstPort != a.port || h.SrcPort != a.peer.port:
		return DropPorts
	}
	it := wire.NewChunks(p.Data[wire.HeaderLen:])
	if !it.Next() {
		return DropMalformed
	}
	a.ctl.begin(0)
	c, authed := it.Current(), false
	if c.Type == wire.ChunkAuth && a.auth.On {
		if !a.authFirst(h, &it) {
			return DropAuth
		}
		c, authed = it.Current(), true // what is behind the AUTH chunk
	}
	// RFC 4895, Section 6.3: the receiver "MUST silently discard these chunks if
	// they are not placed after an AUTH chunk in the packet".
	lacking := !authed && a.auth.Need.Has(c.Type)
	switch c.Type {
	case wire.ChunkData, wire.ChunkIData, wire.ChunkSack:
	default:
		a.in.control = true
	}
	// RFC 9260, Section 8.5: the tag must be ours, with the exceptions of
	// Section 8.5.1.
	switch c.Type {
	case wire.ChunkInit: // A
		if h.VTag != 0 || len(it.Rest()) > 0 {
			return DropMalformed
		}
		return a.handleInit(now, p, h, *c)
	case wire.ChunkAbort: // B
		if !a.tagOrReflected(h.VTag, c.Flags) {
			return DropTag
		}
		if lacking {
			return DropAuth
		}
		// RFC 5061, Section 5.3.1: "an Abort MUST be ignored if the destination address of the
		// Abort message is that of a destination being deleted."
		if a.local.Leaving(p.Local.Addr()) {
			return DropAddr
		}
		if !a.handleAbort(*c) {
			return DropMalformed
		}
		return DropNone
	case wire.ChunkShutdownComplete: // C
		if !a.tagOrReflected(h.VTag, c.Flags) || len(it.Rest()) > 0 {
			return DropTag
		}
		a.handleShutdownComplete()
		return DropNone
	case wire.ChunkCookieEcho: // D
		if lacking {
			return DropAuth
		}
		d, ok := a.handleCookieEcho(now, p, h, *c)
		if !ok {
			return d
		}
	case wire.ChunkShutdownAck: // E
		if lacking {
			break
		}
		if a.state == CookieWait || a.state == CookieEchoed {
			return a.ootbShutdownAck(p, h)
		}
	case wire.ChunkInitAck:
		if h.VTag != a.tag {
			return DropTag
		}
		if len(it.Rest()) > 0 { // Section 5.1: "MUST NOT be bundled"
			return DropMalformed
		}
		return a.handleInitAck(now, p, *c)
	}
	if h.VTag != a.tag {
		return DropTag
	}
	i := a.arrivalPath(address.Unmap(p.Remote))
	if i < 0 {
		i = a.findByAsconf(it, authed)
	}
	if i < 0 {
		// Deviation (8.4, SHOULD): a packet with the right tag from an address
		// that is not the peer's is not answered.
		return DropAddr
	}
	if a.local.Removed() && !a.takesAt(now, p.Local.Addr().Unmap()) {
		return DropAddr
	}
	a.ctl.begin(a.paths[a.replyPath(i)].pmdcs() - wire.SackHeaderLen)
	in := &a.in // field by field: the processor waits for what is written to be copied
	in.path, in.buf, in.ecn, in.reports, in.authed = i, p.Buf, p.ECN, 0, authed
	in.from.Local, in.from.Remote = p.Local, address.Unmap(p.Remote)
	if c.Type == wire.ChunkCookieEcho && !it.Next() {
		return DropNone
	}
	return a.handleChunks(now, &it)
}

// ootbShutdownAck answers the SHUTDOWN ACK of an earlier association: it is out
// of the blue here (RFC 9260, Section 8.4, rule 5 and Section 9.2).
func (c *situation) ootbShutdownAck(p *Packet, h wire.Header) DropReason {
	var buf [64]byte
	if r := replyOOTB(h, p, buf[:0]); len(r.Reply) > 0 {
		c.standalone.push(back(p), r.Reply)
	}
	return DropState
}

// handleChunks handles the chunks of a packet, from the current one of it on.
func (a *Assoc) handleChunks(now clock.Time, it *wire.Chunks) DropReason {
	drop := DropNone
	for ok := true; ok; ok = it.Next() {
		c := it.Current()
		typ := c.Type
		if typ == wire.ChunkAuth && a.auth.On {
			// "The control chunk AUTH MUST NOT appear more than once". If it is
			// not right, "all the chunks following the AUTH chunk MUST be
			// silently discarded".
			if a.in.authed || !a.checkAuth(*c, it.Rest()) {
				break
			}
			a.in.authed = true
			continue
		}
		if !a.in.authed && a.auth.Need.Has(typ) {
			if typ == wire.ChunkAsconf {
				break // RFC 5061, Section 5.2, D5: "and the rest of the packet"
			}
			continue
		}
		if f := extensionOf(typ); f != 0 && !a.peer.features.Has(f) {
			if f == feature.IData && !a.cfg.NoInterleaving {
				// RFC 8260, Section 2.2.3: the receiver MUST abort "if I-DATA
				// support has not been negotiated".
				a.violate("I-DATA chunk although I-DATA was not negotiated")
				return DropNone
			}
			typ = chunkUnknown // not negotiated, so as if not known
		}
		switch typ {
		case wire.ChunkData, wire.ChunkIData, wire.ChunkSack:
		default:
			a.in.control = true
		}
		switch typ {
		case wire.ChunkData:
			a.handleData(c, false)
		case wire.ChunkIData:
			a.handleData(c, true)
		case wire.ChunkSack:
			if !a.in.deferSack || !a.deferSackChunk(now, c, it.Rest()) {
				a.handleSack(now, *c)
			}
		case wire.ChunkHeartbeat:
			a.handleHeartbeat(*c)
		case wire.ChunkHeartbeatAck:
			a.handleHeartbeatAck(now, *c)
		case wire.ChunkCookieAck:
			a.handleCookieAck(now)
		case wire.ChunkForwardTSN:
			a.handleForwardTSN(*c)
		case wire.ChunkIForwardTSN:
			a.handleIForwardTSN(*c)
		case wire.ChunkShutdown:
			a.handleShutdown(now, *c)
		case wire.ChunkShutdownAck:
			a.handleShutdownAck()
		case wire.ChunkError:
			a.handleError(now, *c)
		case wire.ChunkAbort:
			if c.Flags&1 == 0 { // the tag is ours
				a.handleAbort(*c)
			}
		case wire.ChunkECNE, wire.ChunkCWR:
			a.handleECN(now, *c)
		case wire.ChunkReConfig:
			a.handleReconfig(now, *c)
		case wire.ChunkAsconf:
			a.handleAsconf(now, *c)
		case wire.ChunkAsconfAck:
			a.handleAsconfAck(now, *c)
		case wire.ChunkPad: // RFC 4820, Section 3: it is ignored.
		case wire.ChunkInit, wire.ChunkInitAck, wire.ChunkShutdownComplete, wire.ChunkCookieEcho:
			// RFC 9260, Section 6.10: the first three are never bundled, and a
			// COOKIE ECHO comes first.
			drop = DropMalformed
		default:
			if a.unknownChunk(*c) {
				a.endPacket(now)
				return drop
			}
		}
		if a.state == Closed {
			return DropNone
		}
	}
	if it.Err() != nil {
		drop = DropMalformed // RFC 9260, Section 6.10: a partial chunk is dropped
	}
	a.endPacket(now)
	return drop
}

// chunkUnknown stands for a type that nobody knows.
const chunkUnknown = wire.ChunkType(0xff)

// extensionOf returns the extension that a chunk type belongs to, 0 for none.
func extensionOf(t wire.ChunkType) feature.Set {
	switch t {
	case wire.ChunkIData:
		return feature.IData
	case wire.ChunkForwardTSN, wire.ChunkIForwardTSN:
		return feature.PartialReliability
	case wire.ChunkReConfig:
		return feature.Reconfig
	case wire.ChunkAsconf, wire.ChunkAsconfAck:
		return feature.Asconf
	}
	return 0
}

// unknownChunk treats a chunk as the two high bits of its type ask (RFC 9260,
// Section 3.2, Table 2). It reports whether the rest of the packet is to be
// discarded.
func (a *Assoc) unknownChunk(c wire.Chunk) bool {
	if n := len(c.Raw); c.Type.Reported() && a.in.reports+n <= cookie.MaxReported && a.state.connected() {
		a.in.reports += n
		a.ctl.reply(a.replyPath(a.in.path), wire.ChunkError, 0, wire.AppendUnrecognizedChunk(nil, c))
	}
	return c.Type.StopsPacket()
}

// endPacket ends the handling of a packet's chunks.
func (a *Assoc) endPacket(now clock.Time) {
	a.rx.sack.EndPacket(now, a.in.path, a.rx.tsns.HasGaps())
	if !a.auth.Always && a.rx.sack.Early(now) {
		a.earlySack()
	}
	a.shutdownHeard(now)
	a.in.buf = nil
}

// EndBatch ends a batch of HandlePacket calls: it decides whether what they
// brought is acknowledged now or later.
func (a *Assoc) EndBatch(now clock.Time) {
	if a.state == Closed || a.rx.reasm == nil {
		return
	}
	a.rx.sack.EndBatch()
	a.ctl.begin(0)
	if a.rc.Progress(now); a.state == Closed {
		return
	}
	a.recheckSlow()
	if r := a.rx.reasm.CheckUpTo(a.rx.tsns.CumTSN()); r.Violation() {
		a.violate(r.String())
	}
}
