package ddp

import "encoding/binary"

// EnhancedLen is the size of the enhanced connection data.
const EnhancedLen = 4

// ULPDepth as IRD or ORD means that the ULP negotiates it (RFC 6581, Section
// 9.1); larger values do not exist.
const ULPDepth = 0x3FFF

// Enhanced is the enhanced connection data of RFC 6581, Section 9, which both
// lower layers put in front of the private data.
type Enhanced struct {
	// PeerToPeer is control flag A. RTRSend, RTRWrite and RTRRead are B, C
	// and D: the ready-to-receive indications, which SCTP has no need of but
	// must answer.
	PeerToPeer, RTRSend, RTRWrite, RTRRead bool
	// IRD and ORD are the inbound and outbound read depths of the sender.
	IRD, ORD int
}

// AppendEnhanced appends the data to b. Depths out of range are clamped.
func AppendEnhanced(b []byte, e Enhanced) []byte {
	hi := uint16(min(max(e.IRD, 0), ULPDepth))
	lo := uint16(min(max(e.ORD, 0), ULPDepth))
	if e.PeerToPeer {
		hi |= 0x8000
		if e.RTRSend {
			hi |= 0x4000
		}
		if e.RTRWrite {
			lo |= 0x8000
		}
		if e.RTRRead {
			lo |= 0x4000
		}
	}
	b = binary.BigEndian.AppendUint16(b, hi)
	return binary.BigEndian.AppendUint16(b, lo)
}

// ParseEnhanced reads the data at the start of b. It reports false if that is
// too short.
func ParseEnhanced(b []byte) (e Enhanced, ok bool) {
	if len(b) < EnhancedLen {
		return e, false
	}
	hi, lo := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	e.IRD, e.ORD = int(hi&ULPDepth), int(lo&ULPDepth)
	if hi&0x8000 != 0 { // Section 9.2: otherwise B, C and D "MUST be ignored"
		e.PeerToPeer = true
		e.RTRSend, e.RTRWrite, e.RTRRead = hi&0x4000 != 0, lo&0x8000 != 0, lo&0x4000 != 0
	}
	return e, true
}
