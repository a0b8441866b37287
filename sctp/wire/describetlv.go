package wire

import "strconv"

// appendParams appends the parameters of a list as " {…}", or nothing if the
// list is empty.
func appendParams(b, list []byte) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, " {"...)
	n := 0
	it := NewParams(list)
	for ; it.Next(); n++ {
		if n < describeItems {
			b = append(b, sep(n, "", ", ")...)
			b = appendParam(b, it.Param())
		}
	}
	b = appendMore(b, n-describeItems, ", ")
	if it.err != nil {
		b = appendErr(b, it.err)
	}
	return append(b, '}')
}

func appendParam(b []byte, p Param) []byte {
	if s := p.Type.name(); s != "" {
		b = append(b, s...)
	} else {
		b = append(b, "param(0x"...)
		b = appendHex(b, uint64(p.Type), 4)
		b = append(b, ')')
	}
	b, err := appendParamFields(b, p)
	if err != nil {
		b = appendErr(b, err)
	}
	return b
}

func appendParamFields(b []byte, p Param) ([]byte, error) {
	switch p.Type {
	case ParamIPv4, ParamIPv6:
		a, err := ParseAddr(p)
		if err != nil {
			return b, err
		}
		return a.AppendTo(append(b, ' ')), nil
	case ParamHostName:
		name, err := ParseHostName(p)
		if err != nil {
			return b, err
		}
		return appendText(b, name), nil
	case ParamUnrecognized:
		u, err := ParseUnrecognized(p)
		if err != nil {
			return b, err
		}
		b = append(b, " 0x"...)
		return appendHex(b, uint64(u.Type), 4), nil
	case ParamCookiePreservative, ParamTSNReset, ParamSuccess, ParamZeroChecksum:
		x, err := uint32Param(p, p.Type)
		return appendNum(b, " ", x), err
	case ParamAdaptation:
		x, err := ParseAdaptation(p)
		return appendHex32(append(b, " 0x"...), x), err
	case ParamSupportedExtensions, ParamChunkList:
		return appendChunkNames(b, p.Value), nil
	case ParamSupportedAddrTypes, ParamHMACAlgo:
		v, err := uint16sParam(p, p.Type)
		return appendUint16List(b, v), err
	case ParamECN, ParamForwardTSN:
		return b, emptyParam(p, p.Type)
	case ParamOutgoingReset:
		x, err := ParseOutgoingReset(p)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " req=", x.ReqSeq)
		b = appendNum(b, " resp=", x.RespSeq)
		b = appendNum(b, " last=", x.LastTSN)
		return appendStreamList(b, x.Streams), nil
	case ParamIncomingReset:
		x, err := ParseIncomingReset(p)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " req=", x.ReqSeq)
		return appendStreamList(b, x.Streams), nil
	case ParamReConfigResponse:
		x, err := ParseReConfigResponse(p)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " resp=", x.RespSeq)
		b = appendNum(b, " result=", uint32(x.Result))
		if x.HasTSNs {
			b = appendNum(b, " next=", x.SenderNextTSN)
			b = appendNum(b, "/", x.ReceiverNextTSN)
		}
		return b, nil
	case ParamAddOutgoing, ParamAddIncoming:
		x, err := parseAdd(p, p.Type)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " req=", x.ReqSeq)
		return appendNum(b, " streams=", x.Streams), nil
	case ParamAddIP, ParamDeleteIP, ParamSetPrimary:
		x, err := ParseAsconfRequest(p)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " id=", x.ID)
		return x.Addr.AppendTo(append(b, " addr="...)), nil
	case ParamErrorCause:
		x, err := ParseAsconfError(p)
		if err != nil {
			return b, err
		}
		return appendCauses(appendNum(b, " id=", x.ID), x.Causes), nil
	}
	// Opaque bytes: cookies, random numbers, padding, and what this package
	// does not know.
	return appendNum(b, " len=", len(p.Value)), nil
}

// appendCauses appends the causes of a list as " {…}", or nothing if the list
// is empty.
func appendCauses(b, list []byte) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, " {"...)
	n := 0
	it := NewCauses(list)
	for ; it.Next(); n++ {
		if n < describeItems {
			b = append(b, sep(n, "", ", ")...)
			b = appendCause(b, it.Cause())
		}
	}
	b = appendMore(b, n-describeItems, ", ")
	if it.err != nil {
		b = appendErr(b, it.err)
	}
	return append(b, '}')
}

func appendCause(b []byte, c Cause) []byte {
	if s := c.Code.name(); s != "" {
		b = append(b, s...)
	} else {
		b = appendNum(b, "cause(", uint16(c.Code))
		b = append(b, ')')
	}
	b, err := appendCauseFields(b, c)
	if err != nil {
		b = appendErr(b, err)
	}
	return b
}

func appendCauseFields(b []byte, c Cause) ([]byte, error) {
	switch c.Code {
	case CauseInvalidStream:
		sid, err := ParseInvalidStream(c)
		return appendNum(b, " sid=", sid), err
	case CauseMissingParam:
		v, err := ParseMissingParams(c)
		return appendUint16List(b, v), err
	case CauseStaleCookie:
		usec, err := ParseStaleCookie(c)
		return appendNum(b, " usec=", usec), err
	case CauseNoUserData:
		tsn, err := ParseNoUserData(c)
		return appendNum(b, " tsn=", tsn), err
	case CauseUnrecognizedChunk:
		if len(c.Value) == 0 {
			return b, ErrTruncated
		}
		b = append(b, " 0x"...)
		return appendHex(b, uint64(c.Value[0]), 2), nil
	case CauseUnresolvableAddress, CauseUnrecognizedParams, CauseRestart,
		CauseDeleteLastIP, CauseResourceShortage, CauseDeleteSourceIP, CauseNoAuthorization:
		// The types only: what is inside may hold causes again.
		return appendParamTypes(b, c.Value)
	case CauseUserAbort, CauseProtocolViolation:
		if len(c.Value) == 0 {
			return b, nil
		}
		return appendText(b, c.Value), nil
	case CauseOutOfResource, CauseInvalidParam, CauseCookieInShutdown, CauseIllegalAsconfAck:
		return b, emptyCause(c, c.Code)
	case CauseUnsupportedHMAC:
		id, err := ParseUnsupportedHMAC(c)
		return appendNum(b, " id=", id), err
	}
	return appendNum(b, " len=", len(c.Value)), nil
}

func appendParamTypes(b, list []byte) ([]byte, error) {
	n := 0
	it := NewParams(list)
	for ; it.Next(); n++ {
		if n < describeItems {
			b = append(b, sep(n, " 0x", ",0x")...)
			b = appendHex(b, uint64(it.code()), 4)
		}
	}
	return appendMore(b, n-describeItems, ","), it.err
}

// appendText appends at most describeText bytes of s, quoted.
func appendText(b, s []byte) []byte {
	cut := s[:min(len(s), describeText)]
	b = append(b, ' ', '"')
	for _, c := range cut {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ' && c < 0x7f:
			b = append(b, c)
		default:
			b = append(b, '\\', 'x')
			b = appendHex(b, uint64(c), 2)
		}
	}
	b = append(b, '"')
	if len(s) > len(cut) {
		b = append(b, '+')
		b = strconv.AppendInt(b, int64(len(s)-len(cut)), 10)
	}
	return b
}

// appendStreamList appends the streams of a reset request, where none means
// all.
func appendStreamList(b []byte, v Uint16s) []byte {
	b = append(b, " streams"...)
	if v.Len() == 0 {
		return append(b, " all"...)
	}
	return appendUint16List(b, v)
}

func appendUint16List(b []byte, v Uint16s) []byte {
	if v.Len() == 0 {
		return append(b, " none"...)
	}
	for i := range min(v.Len(), describeItems) {
		b = appendNum(b, sep(i, " ", ","), v.At(i))
	}
	return appendMore(b, v.Len()-describeItems, ",")
}

func appendChunkNames(b []byte, v ChunkTypes) []byte {
	for i := range min(v.Len(), describeItems) {
		b = append(b, sep(i, " ", ",")...)
		if s := v.At(i).name(); s != "" {
			b = append(b, s...)
		} else {
			b = append(b, "0x"...)
			b = appendHex(b, uint64(v.At(i)), 2)
		}
	}
	return appendMore(b, v.Len()-describeItems, ",")
}
