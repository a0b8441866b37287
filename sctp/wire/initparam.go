package wire

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// ParseAddr reads an IPv4 Address or IPv6 Address parameter (RFC 9260, Sections
// 3.3.2.1.1 and 3.3.2.1.2).
func ParseAddr(p Param) (netip.Addr, error) {
	switch p.Type {
	case ParamIPv4:
		v, err := fixedParam(p, ParamIPv4, 4)
		if err != nil {
			return netip.Addr{}, err
		}
		return netip.AddrFrom4([4]byte(v)), nil
	case ParamIPv6:
		v, err := fixedParam(p, ParamIPv6, 16)
		if err != nil {
			return netip.Addr{}, err
		}
		return netip.AddrFrom16([16]byte(v)), nil
	}
	return netip.Addr{}, ErrType
}

// AppendAddr appends the address parameter for a. An IPv4-mapped IPv6 address
// goes as an IPv4 Address: RFC 9260, Section 3.3.2.1.2, forbids the mapped
// form. The zero Addr appends nothing.
func AppendAddr(b []byte, a netip.Addr) []byte {
	a = a.Unmap()
	switch {
	case a.Is4():
		v := a.As4()
		b = append(b, 0, uint8(ParamIPv4), 0, tlvLen+4)
		return append(b, v[:]...)
	case a.Is6():
		v := a.As16()
		b = append(b, 0, uint8(ParamIPv6), 0, tlvLen+16)
		return append(b, v[:]...)
	}
	return b
}

// ParseStateCookie returns the cookie of an INIT ACK (RFC 9260, Section
// 3.3.3.1.1), which aliases p.
func ParseStateCookie(p Param) ([]byte, error) { return bytesParam(p, ParamStateCookie) }

// AppendStateCookie appends a State Cookie parameter. It copies cookie.
func AppendStateCookie(b, cookie []byte) []byte { return AppendParam(b, ParamStateCookie, cookie) }

// ParseUnrecognized returns the parameter of the INIT that the peer did not
// know (RFC 9260, Section 3.3.3.1.2), which aliases p.
func ParseUnrecognized(p Param) (Param, error) {
	v, err := bytesParam(p, ParamUnrecognized)
	if err != nil {
		return Param{}, err
	}
	return oneParam(v)
}

// oneParam returns the parameter that v consists of.
func oneParam(v []byte) (Param, error) {
	it := NewParams(v)
	if !it.Next() {
		if it.err != nil {
			return Param{}, it.err
		}
		return Param{}, ErrTruncated
	}
	return it.Param(), nil
}

// AppendUnrecognized appends an Unrecognized Parameter that holds p.Raw, which
// it copies.
func AppendUnrecognized(b []byte, p Param) []byte { return AppendParam(b, ParamUnrecognized, p.Raw) }

// ParseCookiePreservative returns by how many milliseconds the sender of the
// INIT asks to lengthen the life of the cookie (RFC 9260, Section 3.3.2.1.3).
func ParseCookiePreservative(p Param) (uint32, error) {
	return uint32Param(p, ParamCookiePreservative)
}

// AppendCookiePreservative appends a Cookie Preservative parameter.
func AppendCookiePreservative(b []byte, ms uint32) []byte {
	return appendUint32Param(b, ParamCookiePreservative, ms)
}

// ParseHostName returns the name in a Host Name Address parameter, without its
// terminating zero; it aliases p. RFC 9260, Section 3.3.2.1.4, deprecates the
// parameter: a receiver answers it with an ABORT that names an unresolvable
// address.
func ParseHostName(p Param) ([]byte, error) {
	v, err := bytesParam(p, ParamHostName)
	if err != nil {
		return nil, err
	}
	// At least one null terminator is part of the name's length.
	name, _, ok := bytes.Cut(v, zeros[:1])
	if !ok {
		return nil, ErrValue
	}
	return name, nil
}

// AppendHostName appends a Host Name Address parameter. It exists for tests:
// RFC 9260, Section 3.3.2.1.4, says that it must not be sent.
func AppendHostName(b []byte, name string) []byte {
	at := len(b)
	b = BeginParam(b, ParamHostName)
	b = append(b, name...)
	return EndParam(append(b, 0), at)
}

// ParseSupportedAddrTypes returns the address parameter types that the sender
// of the INIT supports (RFC 9260, Section 3.3.2.1.5). The view aliases p.
func ParseSupportedAddrTypes(p Param) (Uint16s, error) {
	return uint16sParam(p, ParamSupportedAddrTypes)
}

// AppendSupportedAddrTypes appends a Supported Address Types parameter.
func AppendSupportedAddrTypes(b []byte, types ...ParamType) []byte {
	at := len(b)
	b = BeginParam(b, ParamSupportedAddrTypes)
	for _, t := range types {
		b = binary.BigEndian.AppendUint16(b, uint16(t))
	}
	return EndParam(b, at)
}

// uint16sParam returns the value of a parameter of type t as 16-bit numbers.
func uint16sParam(p Param, t ParamType) (Uint16s, error) {
	v, err := bytesParam(p, t)
	if err != nil {
		return Uint16s{}, err
	}
	if len(v)%2 != 0 {
		return Uint16s{}, ErrLength
	}
	return Uint16s{v}, nil
}

// ParseECN checks an ECN Capable parameter, which carries nothing.
func ParseECN(p Param) error { return emptyParam(p, ParamECN) }

// AppendECN appends an ECN Capable parameter.
func AppendECN(b []byte) []byte { return AppendParam(b, ParamECN, nil) }

// ParseForwardTSNSupported checks a Forward-TSN-Supported parameter, which
// carries nothing (RFC 3758, Section 3.1).
func ParseForwardTSNSupported(p Param) error { return emptyParam(p, ParamForwardTSN) }

// AppendForwardTSNSupported appends a Forward-TSN-Supported parameter.
func AppendForwardTSNSupported(b []byte) []byte { return AppendParam(b, ParamForwardTSN, nil) }

// ChunkTypes is a list of chunk types in a packet. A parsed one aliases the
// packet.
type ChunkTypes []byte

// Len returns how many types there are.
func (v ChunkTypes) Len() int { return len(v) }

// At returns type i, which must be in [0, Len()).
func (v ChunkTypes) At(i int) ChunkType { return ChunkType(v[i]) }

// Contains reports whether t is in the list.
func (v ChunkTypes) Contains(t ChunkType) bool { return bytes.IndexByte(v, uint8(t)) >= 0 }

// ParseSupportedExtensions returns the chunk types of the extensions that the
// peer supports (RFC 5061, Section 4.2.7). The list aliases p.
func ParseSupportedExtensions(p Param) (ChunkTypes, error) {
	v, err := bytesParam(p, ParamSupportedExtensions)
	return ChunkTypes(v), err
}

// AppendSupportedExtensions appends a Supported Extensions parameter.
func AppendSupportedExtensions(b []byte, types ...ChunkType) []byte {
	return appendChunkTypes(b, ParamSupportedExtensions, types)
}

func appendChunkTypes(b []byte, p ParamType, types []ChunkType) []byte {
	at := len(b)
	b = BeginParam(b, p)
	for _, t := range types {
		b = append(b, uint8(t))
	}
	return EndParam(b, at)
}

// ParseAdaptation returns the adaptation code point of an Adaptation Layer
// Indication parameter (RFC 5061, Section 4.2.6).
func ParseAdaptation(p Param) (uint32, error) { return uint32Param(p, ParamAdaptation) }

// AppendAdaptation appends an Adaptation Layer Indication parameter.
func AppendAdaptation(b []byte, code uint32) []byte {
	return appendUint32Param(b, ParamAdaptation, code)
}

// EDMIDDTLS is the error detection method identifier of SCTP over DTLS (RFC
// 9653, Section 4).
const EDMIDDTLS = 1

// EDMIDLocal is the error detection method identifier of packets that do not
// leave the host: a private one, "WEFT", out of the unassigned.
const EDMIDLocal = 0x57454654

// ParseZeroChecksum returns the error detection method identifier of a Zero
// Checksum Acceptable parameter (RFC 9653, Section 4).
func ParseZeroChecksum(p Param) (uint32, error) { return uint32Param(p, ParamZeroChecksum) }

// AppendZeroChecksum appends a Zero Checksum Acceptable parameter.
func AppendZeroChecksum(b []byte, edmid uint32) []byte {
	return appendUint32Param(b, ParamZeroChecksum, edmid)
}
