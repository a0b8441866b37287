package wire

import "fmt"

// CauseHeaderLen is the length of a cause's code and length fields.
const CauseHeaderLen = tlvLen

// CauseCode tells what an error cause is (RFC 9260, Section 3.3.10, and the
// IANA registry "SCTP Error Cause Codes").
type CauseCode uint16

// The cause codes of RFC 9260 and of the extensions that this package knows.
const (
	CauseInvalidStream       CauseCode = 1      // RFC 9260, Section 3.3.10.1
	CauseMissingParam        CauseCode = 2      // RFC 9260, Section 3.3.10.2
	CauseStaleCookie         CauseCode = 3      // RFC 9260, Section 3.3.10.3
	CauseOutOfResource       CauseCode = 4      // RFC 9260, Section 3.3.10.4
	CauseUnresolvableAddress CauseCode = 5      // RFC 9260, Section 3.3.10.5
	CauseUnrecognizedChunk   CauseCode = 6      // RFC 9260, Section 3.3.10.6
	CauseInvalidParam        CauseCode = 7      // RFC 9260, Section 3.3.10.7
	CauseUnrecognizedParams  CauseCode = 8      // RFC 9260, Section 3.3.10.8
	CauseNoUserData          CauseCode = 9      // RFC 9260, Section 3.3.10.9
	CauseCookieInShutdown    CauseCode = 10     // RFC 9260, Section 3.3.10.10
	CauseRestart             CauseCode = 11     // RFC 9260, Section 3.3.10.11
	CauseUserAbort           CauseCode = 12     // RFC 9260, Section 3.3.10.12
	CauseProtocolViolation   CauseCode = 13     // RFC 9260, Section 3.3.10.13
	CauseDeleteLastIP        CauseCode = 0x00A0 // RFC 5061, Section 4.3.1
	CauseResourceShortage    CauseCode = 0x00A1 // RFC 5061, Section 4.3.2
	CauseDeleteSourceIP      CauseCode = 0x00A2 // RFC 5061, Section 4.3.3
	CauseIllegalAsconfAck    CauseCode = 0x00A3 // RFC 5061, Section 4.3.4
	CauseNoAuthorization     CauseCode = 0x00A4 // RFC 5061, Section 4.3.5
	CauseUnsupportedHMAC     CauseCode = 0x0105 // RFC 4895, Section 4.1
)

// Known reports whether this package knows the layout of causes with code c.
func (c CauseCode) Known() bool { return c.name() != "" }

// String returns a short lower-case description, like "stale cookie".
func (c CauseCode) String() string {
	if s := c.name(); s != "" {
		return s
	}
	return fmt.Sprintf("cause(%d)", uint16(c))
}

func (c CauseCode) name() string {
	switch c {
	case CauseInvalidStream:
		return "invalid stream identifier"
	case CauseMissingParam:
		return "missing mandatory parameter"
	case CauseStaleCookie:
		return "stale cookie"
	case CauseOutOfResource:
		return "out of resource"
	case CauseUnresolvableAddress:
		return "unresolvable address"
	case CauseUnrecognizedChunk:
		return "unrecognized chunk type"
	case CauseInvalidParam:
		return "invalid mandatory parameter"
	case CauseUnrecognizedParams:
		return "unrecognized parameters"
	case CauseNoUserData:
		return "no user data"
	case CauseCookieInShutdown:
		return "cookie received while shutting down"
	case CauseRestart:
		return "restart of an association with new addresses"
	case CauseUserAbort:
		return "user-initiated abort"
	case CauseProtocolViolation:
		return "protocol violation"
	case CauseDeleteLastIP:
		return "request to delete last remaining IP address"
	case CauseResourceShortage:
		return "operation refused due to resource shortage"
	case CauseDeleteSourceIP:
		return "request to delete source IP address"
	case CauseIllegalAsconfAck:
		return "association aborted due to illegal ASCONF-ACK"
	case CauseNoAuthorization:
		return "request refused, no authorization"
	case CauseUnsupportedHMAC:
		return "unsupported HMAC identifier"
	}
	return ""
}

// Cause is a view of one error cause. Its slices alias the packet.
type Cause struct {
	Code CauseCode
	// Value is what follows the cause header, without padding.
	Value []byte
	// Raw is the whole cause, header included, without padding.
	Raw []byte
}

// Causes walks a list of error causes without allocating, as [Chunks] walks
// chunks.
type Causes struct{ tlvs }

// NewCauses returns an iterator over a list of error causes. What it gives
// aliases b.
func NewCauses(b []byte) Causes { return Causes{tlvs{rest: b}} }

// Cause returns the cause that the last call of Next, which returned true,
// moved to.
func (it *Causes) Cause() Cause {
	return Cause{Code: CauseCode(it.code()), Value: it.value(), Raw: it.raw}
}

// AppendCause appends a cause with the given code and value, padded. It copies
// value. It serves for the causes that carry no fields, such as
// CauseOutOfResource, with a nil value.
func AppendCause(b []byte, code CauseCode, value []byte) []byte {
	at := len(b)
	b = beginCause(b, code)
	return endTLV(append(b, value...), at)
}

func beginCause(b []byte, code CauseCode) []byte {
	return append(b, uint8(code>>8), uint8(code), 0, 0)
}

// causeValue returns the value of a cause with the given code, which must have
// the given length if that is not negative.
func causeValue(c Cause, code CauseCode, valueLen int) ([]byte, error) {
	if c.Code != code {
		return nil, ErrType
	}
	if valueLen >= 0 && len(c.Value) != valueLen {
		if len(c.Value) < valueLen {
			return nil, ErrTruncated
		}
		return nil, ErrLength
	}
	return c.Value, nil
}
