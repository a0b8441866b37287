package core

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// ECN codepoints of the IP header (RFC 3168, Section 5).
const (
	ECNNotECT = 0
	ECNECT1   = 1
	ECNECT0   = 2
	ECNCE     = 3
)

// MaxPacket is the largest SCTP packet that fits a UDP datagram over IPv4,
// rounded down to the four bytes that chunks are aligned to.
const MaxPacket = 65507 &^ 3

// Tuple holds the UDP addresses of one packet as seen from this host. The
// local address may be unspecified.
type Tuple struct{ Local, Remote netip.AddrPort }

// Packet is one received SCTP packet: the payload of one UDP datagram.
type Packet struct {
	Tuple
	// ECN is the two-bit codepoint of the IP header.
	ECN uint8
	// Data is the SCTP packet. Core reads it and never writes to it.
	Data []byte
	// Verified tells that the checksum is known to be right.
	Verified bool
	// Buf is the slab that Data lies in. Core takes a reference of its own
	// for what it keeps. If it is nil, core copies.
	Buf *slab.Buf
	// DeferSack lets core defer a SACK in front of data in the packet: the caller will call
	// ProcessDeferredSack once it has handled the data.
	DeferSack bool
}

// Transmit describes the datagrams that one PollTransmit appended: Segs
// datagrams of SegSize bytes each, of which the last may be shorter, all for
// one destination and with one ECN codepoint.
type Transmit struct {
	Tuple
	ECN     uint8
	DSCP    uint8 // Differentiated Services Code Point
	SegSize int
	Segs    int
	// Fragment tells that the one datagram is longer than the path MTU has
	// become, and has to be fragmented by IP (RFC 9260, Section 6.9).
	Fragment bool
	// Retained tells that the datagrams are in memory of the association, see
	// PollTransmitRetained: the caller does not call TakeReleases until it has sent them.
	Retained bool
	// Last tells that another PollTransmit at once would have nothing to send.
	Last bool
}

// DropReason tells why a packet was dropped; DropNone that it was not.
type DropReason uint8

// Reasons for dropping a packet.
const (
	DropNone      DropReason = iota
	DropShort                // no room for a common header and a chunk
	DropChecksum             // wrong CRC32c (RFC 9260, Section 6.8)
	DropPorts                // not the SCTP ports of the association, or port 0
	DropTag                  // wrong verification tag (RFC 9260, Section 8.5)
	DropAddr                 // not an address of the peer
	DropMalformed            // chunk lengths do not add up, or forbidden bundling
	DropState                // nothing in it is acceptable in the current state
	DropCookie               // the state cookie is forged, foreign or expired
	DropOOTB                 // out of the blue, and not to be answered (Section 8.4)
	DropClosed               // the association has ended
	DropAuth                 // not authenticated (RFC 4895, Section 6.3)
	NumDropReasons
)

var dropNames = [NumDropReasons]string{"none", "short", "checksum", "ports", "tag", "address",
	"malformed", "state", "cookie", "out of the blue", "closed", "authentication"}

// String returns a short lower-case name.
func (d DropReason) String() string {
	if d < NumDropReasons {
		return dropNames[d]
	}
	return "unknown"
}
