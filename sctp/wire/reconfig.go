package wire

import (
	"encoding/binary"
	"fmt"
)

// ReConfig is a RE-CONFIG chunk (RFC 6525, Section 3.1).
type ReConfig struct {
	// Params is one or two encoded parameters; walk them with [NewParams]. A
	// parsed one aliases the packet.
	Params []byte
}

// ParseReConfig reads a RE-CONFIG chunk. Params aliases c and is not checked;
// see [ReConfig.Allowed].
func ParseReConfig(c Chunk) (ReConfig, error) {
	if c.Type != ChunkReConfig {
		return ReConfig{}, ErrType
	}
	if len(c.Value) == 0 {
		return ReConfig{}, ErrTruncated
	}
	return ReConfig{Params: c.Value}, nil
}

// Allowed reports whether the parameters are one of the combinations that RFC
// 6525, Section 3.1, lists, in either order. It is false too if the list is
// malformed.
func (x ReConfig) Allowed() bool {
	var types [2]ParamType
	n := 0
	it := NewParams(x.Params)
	for ; it.Next(); n++ {
		if n == len(types) {
			return false
		}
		types[n] = ParamType(it.code())
	}
	if it.err != nil || n == 0 {
		return false
	}
	if n == 1 {
		return types[0] >= ParamOutgoingReset && types[0] <= ParamAddIncoming
	}
	hi := max(types[0], types[1])
	switch min(types[0], types[1]) {
	case ParamOutgoingReset:
		return hi == ParamIncomingReset || hi == ParamReConfigResponse
	case ParamAddOutgoing:
		return hi == ParamAddIncoming
	case ParamReConfigResponse:
		return hi == ParamReConfigResponse
	}
	return false
}

// AppendReConfig appends a RE-CONFIG chunk, padded. It copies x.Params.
func AppendReConfig(b []byte, x ReConfig) []byte {
	return AppendChunk(b, ChunkReConfig, 0, trimList(x.Params))
}

// OutgoingReset is an Outgoing SSN Reset Request parameter (RFC 6525, Section
// 4.1): the sender wants to reset streams that it sends on.
type OutgoingReset struct {
	// ReqSeq is the re-configuration request sequence number.
	ReqSeq uint32
	// RespSeq is the request sequence number of the Incoming SSN Reset Request
	// that this one answers, or the next expected one minus 1.
	RespSeq uint32
	// LastTSN is the last TSN that the sender assigned.
	LastTSN uint32
	// Streams lists the streams; none means all.
	Streams Uint16s
}

// ParseOutgoingReset reads an Outgoing SSN Reset Request. Streams aliases p.
func ParseOutgoingReset(p Param) (OutgoingReset, error) {
	v, err := resetParam(p, ParamOutgoingReset, 12)
	if err != nil {
		return OutgoingReset{}, err
	}
	return OutgoingReset{
		ReqSeq:  binary.BigEndian.Uint32(v[0:]),
		RespSeq: binary.BigEndian.Uint32(v[4:]),
		LastTSN: binary.BigEndian.Uint32(v[8:]),
		Streams: Uint16s{v[12:]},
	}, nil
}

// resetParam returns the value of a parameter of type t that has a fixed part
// and then stream numbers.
func resetParam(p Param, t ParamType, fixed int) ([]byte, error) {
	if p.Type != t {
		return nil, ErrType
	}
	if len(p.Value) < fixed {
		return nil, ErrTruncated
	}
	if (len(p.Value)-fixed)%2 != 0 {
		return nil, ErrLength
	}
	return p.Value, nil
}

// maxResetStreams is how many stream numbers a reset request can name so that
// it still fits into a RE-CONFIG chunk. A request for more names none, which
// means all of them.
const maxResetStreams = (MaxLength - 2*tlvLen - 12) / 2

// AppendOutgoingReset appends an Outgoing SSN Reset Request for the given
// streams, padded; none means all. x.Streams is not used.
func AppendOutgoingReset(b []byte, x OutgoingReset, streams []uint16) []byte {
	at := len(b)
	b = BeginParam(b, ParamOutgoingReset)
	b = binary.BigEndian.AppendUint32(b, x.ReqSeq)
	b = binary.BigEndian.AppendUint32(b, x.RespSeq)
	b = binary.BigEndian.AppendUint32(b, x.LastTSN)
	return EndParam(appendStreams(b, streams), at)
}

func appendStreams(b []byte, streams []uint16) []byte {
	if len(streams) > maxResetStreams {
		return b
	}
	return appendUint16s(b, streams)
}

// IncomingReset is an Incoming SSN Reset Request parameter (RFC 6525, Section
// 4.2): the sender wants the peer to reset streams that the peer sends on.
type IncomingReset struct {
	// ReqSeq is the re-configuration request sequence number.
	ReqSeq uint32
	// Streams lists the streams; none means all.
	Streams Uint16s
}

// ParseIncomingReset reads an Incoming SSN Reset Request. Streams aliases p.
func ParseIncomingReset(p Param) (IncomingReset, error) {
	v, err := resetParam(p, ParamIncomingReset, 4)
	if err != nil {
		return IncomingReset{}, err
	}
	return IncomingReset{ReqSeq: binary.BigEndian.Uint32(v), Streams: Uint16s{v[4:]}}, nil
}

// AppendIncomingReset appends an Incoming SSN Reset Request for the given
// streams, padded; none means all.
func AppendIncomingReset(b []byte, reqSeq uint32, streams []uint16) []byte {
	at := len(b)
	b = BeginParam(b, ParamIncomingReset)
	b = binary.BigEndian.AppendUint32(b, reqSeq)
	return EndParam(appendStreams(b, streams), at)
}

// ParseTSNReset returns the request sequence number of an SSN/TSN Reset Request
// parameter (RFC 6525, Section 4.3).
func ParseTSNReset(p Param) (reqSeq uint32, err error) { return uint32Param(p, ParamTSNReset) }

// AppendTSNReset appends an SSN/TSN Reset Request parameter.
func AppendTSNReset(b []byte, reqSeq uint32) []byte {
	return appendUint32Param(b, ParamTSNReset, reqSeq)
}

// ReConfigResult is the outcome that a Re-configuration Response tells (RFC
// 6525, Section 4.4).
type ReConfigResult uint32

// The results of RFC 6525, Table 3.
const (
	ReConfigNothingToDo    ReConfigResult = 0
	ReConfigPerformed      ReConfigResult = 1
	ReConfigDenied         ReConfigResult = 2
	ReConfigWrongSSN       ReConfigResult = 3
	ReConfigAlreadyRunning ReConfigResult = 4
	ReConfigBadSequence    ReConfigResult = 5
	ReConfigInProgress     ReConfigResult = 6
)

// String returns a short lower-case description.
func (r ReConfigResult) String() string {
	switch r {
	case ReConfigNothingToDo:
		return "nothing to do"
	case ReConfigPerformed:
		return "performed"
	case ReConfigDenied:
		return "denied"
	case ReConfigWrongSSN:
		return "wrong SSN"
	case ReConfigAlreadyRunning:
		return "request already in progress"
	case ReConfigBadSequence:
		return "bad sequence number"
	case ReConfigInProgress:
		return "in progress"
	}
	return fmt.Sprintf("result(%d)", uint32(r))
}

// ReConfigResponse is a Re-configuration Response parameter (RFC 6525, Section
// 4.4).
type ReConfigResponse struct {
	// RespSeq is the sequence number of the request that this answers.
	RespSeq uint32
	Result  ReConfigResult
	// HasTSNs tells whether the next two fields are present, as they are in the
	// answer to an SSN/TSN Reset Request.
	HasTSNs bool
	// SenderNextTSN is the TSN of the next DATA chunk of the sender of the
	// response; ReceiverNextTSN is the one that its receiver must use next.
	SenderNextTSN, ReceiverNextTSN uint32
}

// ParseReConfigResponse reads a Re-configuration Response.
func ParseReConfigResponse(p Param) (ReConfigResponse, error) {
	if p.Type != ParamReConfigResponse {
		return ReConfigResponse{}, ErrType
	}
	v := p.Value
	if len(v) < 8 {
		return ReConfigResponse{}, ErrTruncated
	}
	x := ReConfigResponse{
		RespSeq: binary.BigEndian.Uint32(v[0:]),
		Result:  ReConfigResult(binary.BigEndian.Uint32(v[4:])),
	}
	switch len(v) {
	case 8:
		return x, nil
	case 16:
		x.HasTSNs = true
		x.SenderNextTSN = binary.BigEndian.Uint32(v[8:])
		x.ReceiverNextTSN = binary.BigEndian.Uint32(v[12:])
		return x, nil
	}
	return ReConfigResponse{}, ErrLength
}

// AppendReConfigResponse appends a Re-configuration Response.
func AppendReConfigResponse(b []byte, x ReConfigResponse) []byte {
	at := len(b)
	b = BeginParam(b, ParamReConfigResponse)
	b = binary.BigEndian.AppendUint32(b, x.RespSeq)
	b = binary.BigEndian.AppendUint32(b, uint32(x.Result))
	if x.HasTSNs {
		b = binary.BigEndian.AppendUint32(b, x.SenderNextTSN)
		b = binary.BigEndian.AppendUint32(b, x.ReceiverNextTSN)
	}
	return EndParam(b, at)
}

// AddStreams is an Add Outgoing Streams Request or Add Incoming Streams Request
// parameter (RFC 6525, Sections 4.5 and 4.6).
type AddStreams struct {
	// ReqSeq is the re-configuration request sequence number.
	ReqSeq uint32
	// Streams is how many streams the sender asks to add.
	Streams uint16
}

// ParseAddOutgoing reads an Add Outgoing Streams Request.
func ParseAddOutgoing(p Param) (AddStreams, error) { return parseAdd(p, ParamAddOutgoing) }

// ParseAddIncoming reads an Add Incoming Streams Request.
func ParseAddIncoming(p Param) (AddStreams, error) { return parseAdd(p, ParamAddIncoming) }

func parseAdd(p Param, t ParamType) (AddStreams, error) {
	v, err := fixedParam(p, t, 8)
	if err != nil {
		return AddStreams{}, err
	}
	return AddStreams{ReqSeq: binary.BigEndian.Uint32(v), Streams: binary.BigEndian.Uint16(v[4:])}, nil
}

// AppendAddOutgoing appends an Add Outgoing Streams Request.
func AppendAddOutgoing(b []byte, x AddStreams) []byte { return appendAdd(b, ParamAddOutgoing, x) }

// AppendAddIncoming appends an Add Incoming Streams Request.
func AppendAddIncoming(b []byte, x AddStreams) []byte { return appendAdd(b, ParamAddIncoming, x) }

func appendAdd(b []byte, t ParamType, x AddStreams) []byte {
	at := len(b)
	b = BeginParam(b, t)
	b = binary.BigEndian.AppendUint32(b, x.ReqSeq)
	b = binary.BigEndian.AppendUint16(b, x.Streams)
	return EndParam(append(b, 0, 0), at) // reserved
}
