package fuzz

import (
	"slices"

	"github.com/weftstack/weft/sctp/wire"
)

// recode makes one function of a parser and an appender.
func recode[V, X any](parse func(V) (X, error), app func([]byte, X) []byte) func(V) ([]byte, error) {
	return func(v V) ([]byte, error) {
		x, err := parse(v)
		if err != nil {
			return nil, err
		}
		return app(nil, x), nil
	}
}

// recodeEmpty does so for what carries nothing.
func recodeEmpty[V any](parse func(V) error, app func([]byte) []byte) func(V) ([]byte, error) {
	return func(v V) ([]byte, error) {
		if err := parse(v); err != nil {
			return nil, err
		}
		return app(nil), nil
	}
}

var chunkCodecs = map[wire.ChunkType]func(wire.Chunk) ([]byte, error){
	wire.ChunkData:    recode(wire.ParseData, wire.AppendData),
	wire.ChunkIData:   recode(wire.ParseIData, wire.AppendIData),
	wire.ChunkInit:    recode(wire.ParseInit, wire.AppendInit),
	wire.ChunkInitAck: recode(wire.ParseInitAck, wire.AppendInitAck),
	wire.ChunkSack: recode(wire.ParseSack, func(b []byte, x wire.Sack) []byte {
		return wire.AppendSack(b, x.CumTSN, x.RWND, x.Gaps.AppendTo(nil), x.Dups.AppendTo(nil))
	}),
	wire.ChunkHeartbeat:        recode(wire.ParseHeartbeat, wire.AppendHeartbeat),
	wire.ChunkHeartbeatAck:     recode(wire.ParseHeartbeatAck, wire.AppendHeartbeatAck),
	wire.ChunkAbort:            recode(wire.ParseAbort, wire.AppendAbort),
	wire.ChunkError:            recode(wire.ParseOpError, wire.AppendOpError),
	wire.ChunkShutdown:         recode(wire.ParseShutdown, wire.AppendShutdown),
	wire.ChunkShutdownAck:      recodeEmpty(wire.ParseShutdownAck, wire.AppendShutdownAck),
	wire.ChunkShutdownComplete: recode(wire.ParseShutdownComplete, wire.AppendShutdownComplete),
	wire.ChunkCookieEcho:       recode(wire.ParseCookieEcho, wire.AppendCookieEcho),
	wire.ChunkCookieAck:        recodeEmpty(wire.ParseCookieAck, wire.AppendCookieAck),
	wire.ChunkECNE:             recode(wire.ParseECNE, wire.AppendECNE),
	wire.ChunkCWR:              recode(wire.ParseCWR, wire.AppendCWR),
	wire.ChunkAuth:             recode(wire.ParseAuth, wire.AppendAuth),
	wire.ChunkForwardTSN: recode(wire.ParseForwardTSN, func(b []byte, x wire.ForwardTSN) []byte {
		return wire.AppendForwardTSN(b, x.CumTSN, x.Skips.AppendTo(nil))
	}),
	wire.ChunkIForwardTSN: recode(wire.ParseIForwardTSN, func(b []byte, x wire.IForwardTSN) []byte {
		return wire.AppendIForwardTSN(b, x.CumTSN, x.Skips.AppendTo(nil))
	}),
	wire.ChunkReConfig:  recode(wire.ParseReConfig, wire.AppendReConfig),
	wire.ChunkAsconf:    recode(wire.ParseAsconf, wire.AppendAsconf),
	wire.ChunkAsconfAck: recode(wire.ParseAsconfAck, wire.AppendAsconfAck),
	wire.ChunkPad: func(c wire.Chunk) ([]byte, error) {
		if err := wire.ParsePad(c); err != nil {
			return nil, err
		}
		return wire.AppendPad(nil, len(c.Raw)), nil
	},
}

type paramCodec struct {
	types  []wire.ParamType
	recode func(wire.Param) ([]byte, error)
}

func (c paramCodec) takes(t wire.ParamType) bool { return slices.Contains(c.types, t) }

func param(recode func(wire.Param) ([]byte, error), types ...wire.ParamType) paramCodec {
	return paramCodec{types, recode}
}

func chunkTypes(v wire.ChunkTypes) []wire.ChunkType {
	var types []wire.ChunkType
	for i := range v.Len() {
		types = append(types, v.At(i))
	}
	return types
}

func paramTypes(v wire.Uint16s) []wire.ParamType {
	var types []wire.ParamType
	for i := range v.Len() {
		types = append(types, wire.ParamType(v.At(i)))
	}
	return types
}

var paramCodecs = []paramCodec{
	param(recode(wire.ParseAddr, wire.AppendAddr), wire.ParamIPv4, wire.ParamIPv6),
	param(recode(wire.ParseStateCookie, wire.AppendStateCookie), wire.ParamStateCookie),
	param(recode(wire.ParseUnrecognized, wire.AppendUnrecognized), wire.ParamUnrecognized),
	param(recode(wire.ParseCookiePreservative, wire.AppendCookiePreservative), wire.ParamCookiePreservative),
	param(recode(wire.ParseHostName, func(b, name []byte) []byte {
		return wire.AppendHostName(b, string(name))
	}), wire.ParamHostName),
	param(recode(wire.ParseSupportedAddrTypes, func(b []byte, v wire.Uint16s) []byte {
		return wire.AppendSupportedAddrTypes(b, paramTypes(v)...)
	}), wire.ParamSupportedAddrTypes),
	param(recode(wire.ParseOutgoingReset, func(b []byte, x wire.OutgoingReset) []byte {
		return wire.AppendOutgoingReset(b, x, x.Streams.AppendTo(nil))
	}), wire.ParamOutgoingReset),
	param(recode(wire.ParseIncomingReset, func(b []byte, x wire.IncomingReset) []byte {
		return wire.AppendIncomingReset(b, x.ReqSeq, x.Streams.AppendTo(nil))
	}), wire.ParamIncomingReset),
	param(recode(wire.ParseTSNReset, wire.AppendTSNReset), wire.ParamTSNReset),
	param(recode(wire.ParseReConfigResponse, wire.AppendReConfigResponse), wire.ParamReConfigResponse),
	param(recode(wire.ParseAddOutgoing, wire.AppendAddOutgoing), wire.ParamAddOutgoing),
	param(recode(wire.ParseAddIncoming, wire.AppendAddIncoming), wire.ParamAddIncoming),
	param(recodeEmpty(wire.ParseECN, wire.AppendECN), wire.ParamECN),
	param(recode(wire.ParseZeroChecksum, wire.AppendZeroChecksum), wire.ParamZeroChecksum),
	param(recode(wire.ParseRandom, wire.AppendRandom), wire.ParamRandom),
	param(recode(wire.ParseChunkList, func(b []byte, v wire.ChunkTypes) []byte {
		return wire.AppendChunkList(b, chunkTypes(v)...)
	}), wire.ParamChunkList),
	param(recode(wire.ParseHMACAlgo, func(b []byte, v wire.Uint16s) []byte {
		return wire.AppendHMACAlgo(b, v.AppendTo(nil)...)
	}), wire.ParamHMACAlgo),
	param(func(p wire.Param) ([]byte, error) {
		if err := wire.ParsePadParam(p); err != nil {
			return nil, err
		}
		return wire.AppendPadParam(nil, len(p.Raw)), nil
	}, wire.ParamPad),
	param(recode(wire.ParseSupportedExtensions, func(b []byte, v wire.ChunkTypes) []byte {
		return wire.AppendSupportedExtensions(b, chunkTypes(v)...)
	}), wire.ParamSupportedExtensions),
	param(recodeEmpty(wire.ParseForwardTSNSupported, wire.AppendForwardTSNSupported), wire.ParamForwardTSN),
	param(recode(wire.ParseAsconfRequest, wire.AppendAsconfRequest),
		wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary),
	param(recode(wire.ParseAsconfError, wire.AppendAsconfError), wire.ParamErrorCause),
	param(recode(wire.ParseAsconfSuccess, wire.AppendAsconfSuccess), wire.ParamSuccess),
	param(recode(wire.ParseAdaptation, wire.AppendAdaptation), wire.ParamAdaptation),
}

type causeCodec struct {
	codes  []wire.CauseCode
	recode func(wire.Cause) ([]byte, error)
}

func (c causeCodec) takes(code wire.CauseCode) bool { return slices.Contains(c.codes, code) }

func cause(recode func(wire.Cause) ([]byte, error), codes ...wire.CauseCode) causeCodec {
	return causeCodec{codes, recode}
}

var causeCodecs = []causeCodec{
	cause(recode(wire.ParseInvalidStream, wire.AppendInvalidStream), wire.CauseInvalidStream),
	cause(recode(wire.ParseMissingParams, func(b []byte, v wire.Uint16s) []byte {
		return wire.AppendMissingParams(b, paramTypes(v)...)
	}), wire.CauseMissingParam),
	cause(recode(wire.ParseStaleCookie, wire.AppendStaleCookie), wire.CauseStaleCookie),
	cause(recodeEmpty(wire.ParseOutOfResource, wire.AppendOutOfResource), wire.CauseOutOfResource),
	cause(recode(wire.ParseUnresolvableAddress, wire.AppendUnresolvableAddress), wire.CauseUnresolvableAddress),
	cause(recode(wire.ParseUnrecognizedChunk, wire.AppendUnrecognizedChunk), wire.CauseUnrecognizedChunk),
	cause(recodeEmpty(wire.ParseInvalidParam, wire.AppendInvalidParam), wire.CauseInvalidParam),
	cause(recode(wire.ParseUnrecognizedParams, wire.AppendUnrecognizedParams), wire.CauseUnrecognizedParams),
	cause(recode(wire.ParseNoUserData, wire.AppendNoUserData), wire.CauseNoUserData),
	cause(recodeEmpty(wire.ParseCookieInShutdown, wire.AppendCookieInShutdown), wire.CauseCookieInShutdown),
	cause(recode(wire.ParseRestart, wire.AppendRestart), wire.CauseRestart),
	cause(recode(wire.ParseUserAbort, wire.AppendUserAbort), wire.CauseUserAbort),
	cause(recode(wire.ParseProtocolViolation, func(b, info []byte) []byte {
		return wire.AppendProtocolViolation(b, string(info))
	}), wire.CauseProtocolViolation),
	cause(func(c wire.Cause) ([]byte, error) {
		p, err := wire.ParseRefused(c)
		if err != nil {
			return nil, err
		}
		return wire.AppendRefused(nil, c.Code, p), nil
	}, wire.CauseDeleteLastIP, wire.CauseResourceShortage, wire.CauseDeleteSourceIP, wire.CauseNoAuthorization),
	cause(recodeEmpty(wire.ParseIllegalAsconfAck, wire.AppendIllegalAsconfAck), wire.CauseIllegalAsconfAck),
	cause(recode(wire.ParseUnsupportedHMAC, wire.AppendUnsupportedHMAC), wire.CauseUnsupportedHMAC),
}
