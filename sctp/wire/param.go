package wire

import (
	"encoding/binary"
	"fmt"
)

// ParamHeaderLen is the length of a parameter's type and length fields.
const ParamHeaderLen = tlvLen

// ParamType tells what a parameter is (RFC 9260, Section 3.2.1, and the IANA
// registry "SCTP Chunk Parameter Types").
type ParamType uint16

// The parameter types of RFC 9260 and of the extensions that this package
// knows.
const (
	ParamHeartbeatInfo       ParamType = 1      // RFC 9260, Section 3.3.5
	ParamIPv4                ParamType = 5      // RFC 9260, Section 3.3.2.1.1
	ParamIPv6                ParamType = 6      // RFC 9260, Section 3.3.2.1.2
	ParamStateCookie         ParamType = 7      // RFC 9260, Section 3.3.3.1.1
	ParamUnrecognized        ParamType = 8      // RFC 9260, Section 3.3.3.1.2
	ParamCookiePreservative  ParamType = 9      // RFC 9260, Section 3.3.2.1.3
	ParamHostName            ParamType = 11     // RFC 9260, Section 3.3.2.1.4, deprecated
	ParamSupportedAddrTypes  ParamType = 12     // RFC 9260, Section 3.3.2.1.5
	ParamOutgoingReset       ParamType = 13     // RFC 6525, Section 4.1
	ParamIncomingReset       ParamType = 14     // RFC 6525, Section 4.2
	ParamTSNReset            ParamType = 15     // RFC 6525, Section 4.3
	ParamReConfigResponse    ParamType = 16     // RFC 6525, Section 4.4
	ParamAddOutgoing         ParamType = 17     // RFC 6525, Section 4.5
	ParamAddIncoming         ParamType = 18     // RFC 6525, Section 4.6
	ParamECN                 ParamType = 0x8000 // RFC 9260, Table 5
	ParamZeroChecksum        ParamType = 0x8001 // RFC 9653, Section 4
	ParamRandom              ParamType = 0x8002 // RFC 4895, Section 3.1
	ParamChunkList           ParamType = 0x8003 // RFC 4895, Section 3.2
	ParamHMACAlgo            ParamType = 0x8004 // RFC 4895, Section 3.3
	ParamPad                 ParamType = 0x8005 // RFC 4820, Section 4
	ParamSupportedExtensions ParamType = 0x8008 // RFC 5061, Section 4.2.7
	ParamForwardTSN          ParamType = 0xC000 // RFC 3758, Section 3.1
	ParamAddIP               ParamType = 0xC001 // RFC 5061, Section 4.2.1
	ParamDeleteIP            ParamType = 0xC002 // RFC 5061, Section 4.2.2
	ParamErrorCause          ParamType = 0xC003 // RFC 5061, Section 4.2.3
	ParamSetPrimary          ParamType = 0xC004 // RFC 5061, Section 4.2.4
	ParamSuccess             ParamType = 0xC005 // RFC 5061, Section 4.2.5
	ParamAdaptation          ParamType = 0xC006 // RFC 5061, Section 4.2.6
)

// StopsChunk reports whether a receiver that does not know the type ignores the
// rest of the chunk's parameters: the highest bit is clear (RFC 9260, Section
// 3.2.1).
func (t ParamType) StopsChunk() bool { return t&0x8000 == 0 }

// Reported reports whether a receiver that does not know the type tells the
// sender: the second highest bit is set (RFC 9260, Section 3.2.1 and 3.2.2).
func (t ParamType) Reported() bool { return t&0x4000 != 0 }

// Known reports whether this package can parse parameters of type t.
func (t ParamType) Known() bool { return t.name() != "" }

// String returns a short lower-case name, like "state-cookie".
func (t ParamType) String() string {
	if s := t.name(); s != "" {
		return s
	}
	return fmt.Sprintf("param(%#04x)", uint16(t))
}

func (t ParamType) name() string {
	switch t {
	case ParamHeartbeatInfo:
		return "heartbeat-info"
	case ParamIPv4:
		return "ipv4"
	case ParamIPv6:
		return "ipv6"
	case ParamStateCookie:
		return "state-cookie"
	case ParamUnrecognized:
		return "unrecognized"
	case ParamCookiePreservative:
		return "cookie-preservative"
	case ParamHostName:
		return "host-name"
	case ParamSupportedAddrTypes:
		return "supported-addr-types"
	case ParamOutgoingReset:
		return "outgoing-reset"
	case ParamIncomingReset:
		return "incoming-reset"
	case ParamTSNReset:
		return "tsn-reset"
	case ParamReConfigResponse:
		return "response"
	case ParamAddOutgoing:
		return "add-outgoing"
	case ParamAddIncoming:
		return "add-incoming"
	case ParamECN:
		return "ecn"
	case ParamZeroChecksum:
		return "zero-checksum"
	case ParamRandom:
		return "random"
	case ParamChunkList:
		return "chunk-list"
	case ParamHMACAlgo:
		return "hmac-algo"
	case ParamPad:
		return "pad"
	case ParamSupportedExtensions:
		return "supported-extensions"
	case ParamForwardTSN:
		return "forward-tsn"
	case ParamAddIP:
		return "add-ip"
	case ParamDeleteIP:
		return "delete-ip"
	case ParamErrorCause:
		return "error-cause"
	case ParamSetPrimary:
		return "set-primary"
	case ParamSuccess:
		return "success"
	case ParamAdaptation:
		return "adaptation"
	}
	return ""
}

// Param is a view of one parameter. Its slices alias the packet.
type Param struct {
	Type ParamType
	// Value is what follows the parameter header, without padding.
	Value []byte
	// Raw is the whole parameter, header included, without padding.
	Raw []byte
}

// Params walks a list of parameters without allocating, as [Chunks] walks
// chunks.
type Params struct{ tlvs }

// NewParams returns an iterator over a list of parameters. What it gives
// aliases b.
func NewParams(b []byte) Params { return Params{tlvs{rest: b}} }

// Param returns the parameter that the last call of Next, which returned true,
// moved to.
func (it *Params) Param() Param {
	return Param{Type: ParamType(it.code()), Value: it.value(), Raw: it.raw}
}

// Rest returns the bytes behind the current parameter and its padding.
func (it *Params) Rest() []byte { return it.rest }

// FindParam returns the first parameter of type t in a list. It stops at a
// malformed one.
func FindParam(list []byte, t ParamType) (Param, bool) {
	for it := NewParams(list); it.Next(); {
		if ParamType(it.code()) == t {
			return it.Param(), true
		}
	}
	return Param{}, false
}

// AppendParam appends a parameter with the given type and value, padded. It
// copies value.
func AppendParam(b []byte, t ParamType, value []byte) []byte {
	at := len(b)
	b = BeginParam(b, t)
	return EndParam(append(b, value...), at)
}

// BeginParam appends a parameter header whose length is filled in by EndParam;
// it works as BeginChunk does.
func BeginParam(b []byte, t ParamType) []byte {
	return append(b, uint8(t>>8), uint8(t), 0, 0)
}

// EndParam sets the length of the parameter that starts at b[at] and runs to
// the end of b, and appends the padding, which the length does not count.
func EndParam(b []byte, at int) []byte { return endTLV(b, at) }

// bytesParam returns the value of a parameter of type t.
func bytesParam(p Param, t ParamType) ([]byte, error) {
	if p.Type != t {
		return nil, ErrType
	}
	return p.Value, nil
}

// emptyParam checks a parameter of type t whose length must be 4.
func emptyParam(p Param, t ParamType) error {
	if p.Type != t {
		return ErrType
	}
	if len(p.Value) != 0 {
		return ErrLength
	}
	return nil
}

// fixedParam returns the value of a parameter of type t, which must have the
// given length.
func fixedParam(p Param, t ParamType, valueLen int) ([]byte, error) {
	if p.Type != t {
		return nil, ErrType
	}
	if len(p.Value) < valueLen {
		return nil, ErrTruncated
	}
	if len(p.Value) != valueLen {
		return nil, ErrLength
	}
	return p.Value, nil
}

// uint32Param reads a parameter of type t whose value is one 32-bit number.
func uint32Param(p Param, t ParamType) (uint32, error) {
	v, err := fixedParam(p, t, 4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(v), nil
}

func appendUint32Param(b []byte, t ParamType, x uint32) []byte {
	b = append(b, uint8(t>>8), uint8(t), 0, tlvLen+4)
	return binary.BigEndian.AppendUint32(b, x)
}
