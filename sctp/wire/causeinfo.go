package wire

import "encoding/binary"

// ParseInvalidStream returns the stream identifier of an Invalid Stream
// Identifier cause (RFC 9260, Section 3.3.10.1).
func ParseInvalidStream(c Cause) (sid uint16, err error) {
	v, err := causeValue(c, CauseInvalidStream, 4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint16(v), nil
}

// AppendInvalidStream appends an Invalid Stream Identifier cause.
func AppendInvalidStream(b []byte, sid uint16) []byte {
	b = append(b, 0, uint8(CauseInvalidStream), 0, tlvLen+4)
	b = binary.BigEndian.AppendUint16(b, sid)
	return append(b, 0, 0) // reserved
}

// ParseMissingParams returns the parameter types that a Missing Mandatory
// Parameter cause names (RFC 9260, Section 3.3.10.2). The view aliases c. It
// returns ErrLength when their count contradicts the length of the cause.
func ParseMissingParams(c Cause) (Uint16s, error) {
	v, err := causeValue(c, CauseMissingParam, -1)
	if err != nil {
		return Uint16s{}, err
	}
	if len(v) < 4 {
		return Uint16s{}, ErrTruncated
	}
	if uint64(len(v)-4) != 2*uint64(binary.BigEndian.Uint32(v)) {
		return Uint16s{}, ErrLength
	}
	return Uint16s{v[4:]}, nil
}

// maxMissingParams is how many types a Missing Mandatory Parameter cause can
// name; more are left out.
const maxMissingParams = (MaxLength - tlvLen - 4) / 2

// AppendMissingParams appends a Missing Mandatory Parameter cause, padded.
func AppendMissingParams(b []byte, types ...ParamType) []byte {
	types = types[:min(len(types), maxMissingParams)]
	at := len(b)
	b = beginCause(b, CauseMissingParam)
	b = binary.BigEndian.AppendUint32(b, uint32(len(types)))
	for _, t := range types {
		b = binary.BigEndian.AppendUint16(b, uint16(t))
	}
	return endTLV(b, at)
}

// ParseStaleCookie returns by how many microseconds the cookie was too old, or
// 0 if the peer does not tell (RFC 9260, Section 3.3.10.3).
func ParseStaleCookie(c Cause) (usec uint32, err error) { return uint32Cause(c, CauseStaleCookie) }

// AppendStaleCookie appends a Stale Cookie cause.
func AppendStaleCookie(b []byte, usec uint32) []byte {
	return appendUint32Cause(b, CauseStaleCookie, usec)
}

// ParseOutOfResource checks an Out of Resource cause, which carries nothing
// (RFC 9260, Section 3.3.10.4).
func ParseOutOfResource(c Cause) error { return emptyCause(c, CauseOutOfResource) }

// AppendOutOfResource appends an Out of Resource cause.
func AppendOutOfResource(b []byte) []byte { return AppendCause(b, CauseOutOfResource, nil) }

// ParseUnresolvableAddress returns the address or host name parameter that the
// peer could not resolve (RFC 9260, Section 3.3.10.5). It aliases c.
func ParseUnresolvableAddress(c Cause) (Param, error) {
	v, err := causeValue(c, CauseUnresolvableAddress, -1)
	if err != nil {
		return Param{}, err
	}
	return oneParam(v)
}

// AppendUnresolvableAddress appends an Unresolvable Address cause, padded. It
// copies p.Raw.
func AppendUnresolvableAddress(b []byte, p Param) []byte {
	return AppendCause(b, CauseUnresolvableAddress, p.Raw)
}

// ParseUnrecognizedChunk returns the chunk whose type the peer did not know
// (RFC 9260, Section 3.3.10.6). It aliases c. A peer may have cut it short; then
// the error is ErrTruncated.
func ParseUnrecognizedChunk(c Cause) (Chunk, error) {
	v, err := causeValue(c, CauseUnrecognizedChunk, -1)
	if err != nil {
		return Chunk{}, err
	}
	it := NewChunks(v)
	if !it.Next() {
		if it.err != nil {
			return Chunk{}, it.err
		}
		return Chunk{}, ErrTruncated
	}
	return it.Chunk(), nil
}

// AppendUnrecognizedChunk appends an Unrecognized Chunk Type cause, padded. It
// copies c.Raw, which the caller keeps short enough for the path.
func AppendUnrecognizedChunk(b []byte, c Chunk) []byte {
	return AppendCause(b, CauseUnrecognizedChunk, c.Raw)
}

// ParseInvalidParam checks an Invalid Mandatory Parameter cause, which carries
// nothing (RFC 9260, Section 3.3.10.7).
func ParseInvalidParam(c Cause) error { return emptyCause(c, CauseInvalidParam) }

// AppendInvalidParam appends an Invalid Mandatory Parameter cause.
func AppendInvalidParam(b []byte) []byte { return AppendCause(b, CauseInvalidParam, nil) }

// ParseUnrecognizedParams returns the encoded parameters that the peer did not
// know (RFC 9260, Section 3.3.10.8); walk them with [NewParams]. They alias c
// and are not checked.
func ParseUnrecognizedParams(c Cause) ([]byte, error) {
	return causeValue(c, CauseUnrecognizedParams, -1)
}

// AppendUnrecognizedParams appends an Unrecognized Parameters cause, padded. It
// copies params, a list of encoded parameters.
func AppendUnrecognizedParams(b, params []byte) []byte {
	return AppendCause(b, CauseUnrecognizedParams, trimList(params))
}

// ParseNoUserData returns the TSN of the DATA chunk that had no user data (RFC
// 9260, Section 3.3.10.9).
func ParseNoUserData(c Cause) (tsn uint32, err error) { return uint32Cause(c, CauseNoUserData) }

// AppendNoUserData appends a No User Data cause.
func AppendNoUserData(b []byte, tsn uint32) []byte {
	return appendUint32Cause(b, CauseNoUserData, tsn)
}

// ParseCookieInShutdown checks a Cookie Received While Shutting Down cause,
// which carries nothing (RFC 9260, Section 3.3.10.10).
func ParseCookieInShutdown(c Cause) error { return emptyCause(c, CauseCookieInShutdown) }

// AppendCookieInShutdown appends a Cookie Received While Shutting Down cause.
func AppendCookieInShutdown(b []byte) []byte { return AppendCause(b, CauseCookieInShutdown, nil) }

// ParseRestart returns the encoded address parameters of a Restart of an
// Association with New Addresses cause (RFC 9260, Section 3.3.10.11); walk them
// with [NewParams]. They alias c and are not checked.
func ParseRestart(c Cause) ([]byte, error) { return causeValue(c, CauseRestart, -1) }

// AppendRestart appends a Restart of an Association with New Addresses cause,
// padded. It copies addrs, a list of encoded address parameters.
func AppendRestart(b, addrs []byte) []byte { return AppendCause(b, CauseRestart, trimList(addrs)) }

// ParseUserAbort returns the upper layer's reason in a User-Initiated Abort
// cause (RFC 9260, Section 3.3.10.12). It aliases c.
func ParseUserAbort(c Cause) (reason []byte, err error) { return causeValue(c, CauseUserAbort, -1) }

// AppendUserAbort appends a User-Initiated Abort cause, padded. It copies
// reason.
func AppendUserAbort(b, reason []byte) []byte { return AppendCause(b, CauseUserAbort, reason) }

// ParseProtocolViolation returns the additional information in a Protocol
// Violation cause (RFC 9260, Section 3.3.10.13). It aliases c.
func ParseProtocolViolation(c Cause) (info []byte, err error) {
	return causeValue(c, CauseProtocolViolation, -1)
}

// AppendProtocolViolation appends a Protocol Violation cause, padded.
func AppendProtocolViolation(b []byte, info string) []byte {
	at := len(b)
	b = beginCause(b, CauseProtocolViolation)
	return endTLV(append(b, info...), at)
}

// ParseRefused returns the request parameter that a cause of RFC 5061, Sections
// 4.3.1, 4.3.2, 4.3.3 or 4.3.5, refuses; c.Code tells why. It aliases c.
func ParseRefused(c Cause) (Param, error) {
	switch c.Code {
	case CauseDeleteLastIP, CauseResourceShortage, CauseDeleteSourceIP, CauseNoAuthorization:
		return oneParam(c.Value)
	}
	return Param{}, ErrType
}

// AppendRefused appends the cause with the given code, one of
// CauseDeleteLastIP, CauseResourceShortage, CauseDeleteSourceIP and
// CauseNoAuthorization, padded. It copies p.Raw, the request that is refused.
func AppendRefused(b []byte, code CauseCode, p Param) []byte { return AppendCause(b, code, p.Raw) }

// ParseIllegalAsconfAck checks an Association Aborted Due to Illegal ASCONF-ACK
// cause, which carries nothing (RFC 5061, Section 4.3.4).
func ParseIllegalAsconfAck(c Cause) error { return emptyCause(c, CauseIllegalAsconfAck) }

// AppendIllegalAsconfAck appends an Association Aborted Due to Illegal
// ASCONF-ACK cause.
func AppendIllegalAsconfAck(b []byte) []byte { return AppendCause(b, CauseIllegalAsconfAck, nil) }

// ParseUnsupportedHMAC returns the identifier in an Unsupported HMAC Identifier
// cause (RFC 4895, Section 4.1).
func ParseUnsupportedHMAC(c Cause) (id uint16, err error) {
	v, err := causeValue(c, CauseUnsupportedHMAC, 2)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint16(v), nil
}

// AppendUnsupportedHMAC appends an Unsupported HMAC Identifier cause, padded.
func AppendUnsupportedHMAC(b []byte, id uint16) []byte {
	at := len(b)
	b = beginCause(b, CauseUnsupportedHMAC)
	return endTLV(binary.BigEndian.AppendUint16(b, id), at)
}

func emptyCause(c Cause, code CauseCode) error {
	_, err := causeValue(c, code, 0)
	return err
}

func uint32Cause(c Cause, code CauseCode) (uint32, error) {
	v, err := causeValue(c, code, 4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(v), nil
}

func appendUint32Cause(b []byte, code CauseCode, x uint32) []byte {
	b = append(b, uint8(code>>8), uint8(code), 0, tlvLen+4)
	return binary.BigEndian.AppendUint32(b, x)
}
