package wire

import (
	"encoding/binary"
	"net/netip"
)

// Asconf is an ASCONF chunk (RFC 5061, Section 4.1.1).
type Asconf struct {
	// Seq is the sequence number.
	Seq uint32
	// Addr is an address of the sender, by which the receiver may find the
	// association; an unspecified address names none. It is the zero address in
	// a parsed chunk that has a host name in its place.
	Addr netip.Addr
	// Params is the encoded requests; walk them with [NewParams]. A parsed one
	// aliases the packet.
	Params []byte
}

// ParseAsconf reads an ASCONF chunk. Params aliases c and is not checked.
func ParseAsconf(c Chunk) (Asconf, error) {
	if c.Type != ChunkAsconf {
		return Asconf{}, ErrType
	}
	if len(c.Value) < 4 {
		return Asconf{}, ErrTruncated
	}
	x := Asconf{Seq: binary.BigEndian.Uint32(c.Value)}
	it := NewParams(c.Value[4:])
	if !it.Next() {
		if it.err != nil {
			return Asconf{}, it.err
		}
		return Asconf{}, ErrTruncated
	}
	x.Params = it.rest
	p := it.Param()
	if p.Type == ParamHostName {
		// Section 4.1.1: "The host name address MUST NOT be sent and MUST be ignored
		// if received in any ASCONF message."
		return x, nil
	}
	var err error
	if x.Addr, err = ParseAddr(p); err != nil {
		return Asconf{}, err
	}
	return x, nil
}

// AppendAsconf appends an ASCONF chunk, padded. It copies x.Params. The zero
// x.Addr is sent as 0.0.0.0.
func AppendAsconf(b []byte, x Asconf) []byte {
	at := len(b)
	b = BeginChunk(b, ChunkAsconf, 0)
	b = binary.BigEndian.AppendUint32(b, x.Seq)
	b = appendAddrOrAny(b, x.Addr)
	return EndChunk(append(b, trimList(x.Params)...), at)
}

func appendAddrOrAny(b []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		a = netip.IPv4Unspecified()
	}
	return AppendAddr(b, a)
}

// AsconfAck is an ASCONF-ACK chunk (RFC 5061, Section 4.1.2).
type AsconfAck struct {
	// Seq is the sequence number of the ASCONF that this chunk acknowledges.
	Seq uint32
	// Params is the encoded responses, none or more; walk them with
	// [NewParams]. A parsed one aliases the packet.
	Params []byte
}

// ParseAsconfAck reads an ASCONF-ACK chunk. Params aliases c and is not
// checked.
func ParseAsconfAck(c Chunk) (AsconfAck, error) {
	if c.Type != ChunkAsconfAck {
		return AsconfAck{}, ErrType
	}
	if len(c.Value) < 4 {
		return AsconfAck{}, ErrTruncated
	}
	return AsconfAck{Seq: binary.BigEndian.Uint32(c.Value), Params: c.Value[4:]}, nil
}

// AppendAsconfAck appends an ASCONF-ACK chunk, padded. It copies x.Params.
func AppendAsconfAck(b []byte, x AsconfAck) []byte {
	at := len(b)
	b = BeginChunk(b, ChunkAsconfAck, 0)
	b = binary.BigEndian.AppendUint32(b, x.Seq)
	return EndChunk(append(b, trimList(x.Params)...), at)
}

// AsconfRequest is an Add IP Address, Delete IP Address or Set Primary IP
// Address parameter (RFC 5061, Sections 4.2.1, 4.2.2 and 4.2.4).
type AsconfRequest struct {
	// Type is ParamAddIP, ParamDeleteIP or ParamSetPrimary.
	Type ParamType
	// ID is the correlation ID, which the response repeats.
	ID uint32
	// Addr is the address that the request is about. An unspecified one stands
	// for the source address of the packet, and in a delete request for all
	// others.
	Addr netip.Addr
}

// ParseAsconfRequest reads an Add IP Address, Delete IP Address or Set Primary
// IP Address parameter.
func ParseAsconfRequest(p Param) (AsconfRequest, error) {
	switch p.Type {
	case ParamAddIP, ParamDeleteIP, ParamSetPrimary:
	default:
		return AsconfRequest{}, ErrType
	}
	if len(p.Value) < 4 {
		return AsconfRequest{}, ErrTruncated
	}
	a, err := oneParam(p.Value[4:])
	if err != nil {
		return AsconfRequest{}, err
	}
	x := AsconfRequest{Type: p.Type, ID: binary.BigEndian.Uint32(p.Value)}
	if x.Addr, err = ParseAddr(a); err != nil {
		return AsconfRequest{}, err
	}
	return x, nil
}

// AppendAsconfRequest appends the parameter that x.Type names. The zero x.Addr
// is sent as 0.0.0.0.
func AppendAsconfRequest(b []byte, x AsconfRequest) []byte {
	at := len(b)
	b = BeginParam(b, x.Type)
	b = binary.BigEndian.AppendUint32(b, x.ID)
	return EndParam(appendAddrOrAny(b, x.Addr), at)
}

// AsconfError is an Error Cause Indication parameter (RFC 5061, Section 4.2.3).
type AsconfError struct {
	// ID is the correlation ID of the request.
	ID uint32
	// Causes is the encoded error causes; walk them with [NewCauses]. A parsed
	// one aliases the packet.
	Causes []byte
}

// ParseAsconfError reads an Error Cause Indication parameter. Causes aliases p
// and is not checked.
func ParseAsconfError(p Param) (AsconfError, error) {
	if p.Type != ParamErrorCause {
		return AsconfError{}, ErrType
	}
	if len(p.Value) < 4 {
		return AsconfError{}, ErrTruncated
	}
	return AsconfError{ID: binary.BigEndian.Uint32(p.Value), Causes: p.Value[4:]}, nil
}

// AppendAsconfError appends an Error Cause Indication parameter, padded. It
// copies x.Causes.
func AppendAsconfError(b []byte, x AsconfError) []byte {
	at := len(b)
	b = BeginParam(b, ParamErrorCause)
	b = binary.BigEndian.AppendUint32(b, x.ID)
	return EndParam(append(b, trimList(x.Causes)...), at)
}

// ParseAsconfSuccess returns the correlation ID of a Success Indication
// parameter (RFC 5061, Section 4.2.5).
func ParseAsconfSuccess(p Param) (id uint32, err error) { return uint32Param(p, ParamSuccess) }

// AppendAsconfSuccess appends a Success Indication parameter.
func AppendAsconfSuccess(b []byte, id uint32) []byte { return appendUint32Param(b, ParamSuccess, id) }
