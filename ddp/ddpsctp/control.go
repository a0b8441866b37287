package ddpsctp

import (
	"encoding/binary"

	"github.com/weftstack/weft/ddp"
)

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
const enhancedLen = ddp.EnhancedLen

// ULPDepth as IRD or ORD means that the ULP negotiates it.
const ULPDepth = ddp.ULPDepth

// Enhanced is the enhanced connection data of RFC 6581, Section 9.
type Enhanced = ddp.Enhanced

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
		b = ddp.AppendEnhanced(b, c.Enhanced)
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
		if c.Enhanced, ok = ddp.ParseEnhanced(c.Private); ok {
			c.Private = c.Private[enhancedLen:]
		}
		return c, ok
	}
	return c, false
}
