package ddpsctp

import "encoding/binary"

// Adaptation is the Adaptation Layer Indication of DDP (RFC 5043, Section
// 5.1).
const Adaptation uint32 = 0x00000001

// Payload protocol identifiers (RFC 5043, Section 5.2).
const (
	PPIDSegment uint32 = 16
	PPIDControl uint32 = 17
)

// Function is the function code of a session control message.
type Function uint16

// Function codes (RFC 5043, Section 5.2.3; RFC 6581, Section 7).
const (
	Initiate         Function = 1
	Accept           Function = 2
	Reject           Function = 3
	Terminate        Function = 4
	EnhancedInitiate Function = 5
	EnhancedAccept   Function = 6
	EnhancedReject   Function = 7
)

var functionNames = [...]string{"undefined", "Initiate", "Accept", "Reject", "Terminate",
	"Enhanced Initiate", "Enhanced Accept", "Enhanced Reject"}

// String returns the name the RFCs use.
func (f Function) String() string {
	if int(f) < len(functionNames) {
		return functionNames[f]
	}
	return functionNames[0]
}

// MaxPrivate bounds the private data of a message, the enhanced data included
// (RFC 5043, Section 5.2.3; RFC 6581, Section 7).
const MaxPrivate = 512

// minMULPDU is the least maximum segment size: what a control message with all
// private data needs (RFC 5043, Section 9).
const minMULPDU = 516

// enhancedLen is the size of the enhanced data.
const enhancedLen = 4

// ULPDepth as IRD or ORD means that the ULP negotiates it (RFC 6581, Section
// 9.1); larger values do not exist.
const ULPDepth = 0x3FFF

// Enhanced is the enhanced connection data of RFC 6581, Section 9.
type Enhanced struct {
	// PeerToPeer is control flag A. RTRSend, RTRWrite and RTRRead are B, C
	// and D: the ready-to-receive indications, which SCTP has no need of but
	// must answer.
	PeerToPeer, RTRSend, RTRWrite, RTRRead bool
	// IRD and ORD are the inbound and outbound read depths of the sender.
	IRD, ORD int
}

func (e Enhanced) append(b []byte) []byte {
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

func parseEnhanced(b []byte) (e Enhanced, ok bool) {
	if len(b) < enhancedLen {
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

// Control is a session control message. Private aliases what it was parsed
// from.
type Control struct {
	Function Function
	// Enhanced is valid for EnhancedInitiate and EnhancedAccept.
	Enhanced Enhanced
	Private  []byte
}

// AppendControl appends a control message, without its DDP-SSN, to b.
func AppendControl(b []byte, c *Control) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(c.Function))
	switch c.Function {
	case EnhancedInitiate, EnhancedAccept:
		b = c.Enhanced.append(b)
	case Terminate:
		return b // "Private Data MUST NOT be included"
	}
	return append(b, c.Private...)
}

// ParseControl reads a control message without its DDP-SSN. It reports false
// for one that is too short, too long, or of an undefined function.
func ParseControl(b []byte) (c Control, ok bool) {
	if len(b) < 2 || len(b) > 2+MaxPrivate {
		return c, false
	}
	c.Function, c.Private = Function(binary.BigEndian.Uint16(b)), b[2:]
	switch c.Function {
	case Initiate, Accept, Reject, EnhancedReject:
		return c, true
	case Terminate:
		return c, len(c.Private) == 0
	case EnhancedInitiate, EnhancedAccept:
		if c.Enhanced, ok = parseEnhanced(c.Private); ok {
			c.Private = c.Private[enhancedLen:]
		}
		return c, ok
	}
	return c, false
}
