package core

import (
	"github.com/weftstack/weft/sctp/wire"

	"github.com/weftstack/weft/sctp/internal/core/address"
)

// checkPacket does the checks that need no association: it parses the common header of
// p and verifies the checksum (RFC 9260, Section 6.8), unless verified tells that it is
// known to be right, or of no interest.
func checkPacket(p *Packet, verified bool) (wire.Header, DropReason) {
	if len(p.Data) < wire.HeaderLen+wire.ChunkHeaderLen {
		return wire.Header{}, DropShort
	}
	h, err := wire.ParseHeader(p.Data)
	if err != nil {
		return h, DropShort
	}
	// RFC 9260, Section 3.1: "The source port number 0 MUST NOT be used", and
	// the same for the destination port.
	if h.SrcPort == 0 || h.DstPort == 0 {
		return h, DropPorts
	}
	if !verified && !wire.VerifyChecksum(p.Data) {
		return h, DropChecksum
	}
	return h, DropNone
}

// Answer is what comes of a packet without the help of an association.
type Answer struct {
	// Reply is the packet to send back to where the packet came from, or
	// empty. It was appended to the caller's buffer.
	Reply []byte
	// OOTB tells that Reply answers a packet out of the blue (RFC 9260, Section 8.4), and
	// not one of a handshake with a listener.
	OOTB bool
	// Drop tells why a packet was dropped without effect.
	Drop DropReason
}

// HandleOOTB handles a packet to an SCTP port where nobody listens, and which
// belongs to no association (RFC 9260, Section 8.4). cfg is the configuration of the
// associations that this end of the port opens, nil if the port is not in use. A reply is
// appended to out.
func HandleOOTB(cfg *Config, p *Packet, out []byte) Answer {
	h, drop := checkPacket(p, p.verified(cfg))
	if drop != DropNone {
		return Answer{Drop: drop}
	}
	it := wire.NewChunks(p.Data[wire.HeaderLen:])
	if !it.Next() {
		return Answer{Drop: DropMalformed}
	}
	if c := it.Chunk(); c.Type == wire.ChunkInit && h.VTag == 0 {
		x, err := wire.ParseInit(c)
		if err != nil || x.Tag == 0 || len(it.Rest()) > 0 || !address.Usable(p.Remote.Addr().Unmap()) {
			return Answer{Drop: DropMalformed}
		}
		return Answer{Reply: appendAbortPacket(out, h, x.Tag, false, nil), OOTB: true}
	}
	return replyOOTB(h, p, out)
}

// replyOOTB applies the rules of RFC 9260, Section 8.4, that need no listener:
// all but 3 and 4.
func replyOOTB(h wire.Header, p *Packet, out []byte) Answer {
	if !address.Usable(p.Remote.Addr().Unmap()) {
		return Answer{Drop: DropOOTB} // rule 1
	}
	it := wire.NewChunks(p.Data[wire.HeaderLen:])
	reply := replyAbort
	for first := true; it.Next(); first = false {
		c := it.Chunk()
		if first && c.Type == wire.ChunkAuth {
			// RFC 4895, Section 6.3: "without taking the AUTH chunk into account".
			if !it.Next() {
				break
			}
			c = it.Chunk()
		}
		switch c.Type {
		case wire.ChunkAbort: // rule 2
			return Answer{Drop: DropOOTB}
		case wire.ChunkInit, wire.ChunkInitAck:
			// An INIT with a tag or in company, or an INIT ACK for nobody: the
			// sender cannot tell what a reflected tag means to it.
			reply = max(reply, replyNone)
		case wire.ChunkCookieEcho:
			if first {
				reply = max(reply, replyNone) // rule 4, with nobody listening
			}
		case wire.ChunkShutdownAck: // rule 5
			reply = max(reply, replyShutdownComplete)
		case wire.ChunkShutdownComplete, wire.ChunkCookieAck: // rules 6 and 7
			reply = max(reply, replyNone)
		case wire.ChunkError:
			if x, err := wire.ParseOpError(c); err == nil && hasCause(x.Causes, wire.CauseStaleCookie) {
				reply = max(reply, replyNone)
			}
		}
	}
	switch {
	case it.Err() != nil:
		return Answer{Drop: DropMalformed}
	case reply == replyShutdownComplete:
		b := wire.AppendHeader(out, wire.Header{SrcPort: h.DstPort, DstPort: h.SrcPort, VTag: h.VTag})
		b = wire.AppendShutdownComplete(b, wire.ShutdownComplete{Reflected: true})
		wire.SetChecksum(b[len(out):])
		return Answer{Reply: b[len(out):], OOTB: true}
	case reply == replyNone:
		return Answer{Drop: DropOOTB}
	}
	return Answer{Reply: appendAbortPacket(out, h, h.VTag, true, nil), OOTB: true} // rule 8
}

// ootbReply orders the replies to an out of the blue packet: the rules of RFC
// 9260, Section 8.4, that come first win.
type ootbReply uint8

const (
	replyAbort ootbReply = iota
	replyNone
	replyShutdownComplete
)

// hasCause reports whether a list of causes has one with the given code.
func hasCause(causes []byte, code wire.CauseCode) bool {
	it := wire.NewCauses(causes)
	for it.Next() {
		if it.Cause().Code == code {
			return true
		}
	}
	return false
}

// appendAbortPacket appends a packet with an ABORT that answers one with header
// h, and returns that packet alone.
func appendAbortPacket(out []byte, h wire.Header, tag uint32, reflected bool, causes []byte) []byte {
	b := wire.AppendHeader(out, wire.Header{SrcPort: h.DstPort, DstPort: h.SrcPort, VTag: tag})
	b = wire.AppendAbort(b, wire.Abort{Reflected: reflected, Causes: causes})
	wire.SetChecksum(b[len(out):])
	return b[len(out):]
}
