package core

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// initInfo is what an INIT or INIT ACK says, its parameters sorted out.
type initInfo struct {
	tag, rwnd     uint32
	out, in       uint16
	tsn           seq.TSN
	addrs         address.List
	features      feature.Set
	refused       feature.Set // that the peer does not recognize
	adaptation    uint32
	hasAdaptation bool
	// primary is the address that the peer would have us send to, unspecified
	// for the one that the packet came from.
	primary netip.Addr
	// lifeMS is the lengthening of the cookie's life that was asked for.
	lifeMS uint32
	// cookie aliases the packet; hasCookie tells that there is one, if only an empty one.
	cookie    []byte
	hasCookie bool
	// unknown are the encoded parameters to report as unrecognized; it aliases
	// the packet, in pieces.
	unknown  [maxUnknownParams]wire.Param
	unknownN int
	hostName wire.Param
	// forward is the Forward-TSN-Supported parameter.
	forward   wire.Param
	auth      auth.Params
	malformed bool
	violation string // if not empty, what to refuse it for
}

const (
	// minRWND is the least receiver window that an end may announce (RFC 9260,
	// Sections 3.3.2 and 3.3.3).
	minRWND = 1500
	// maxReported bounds the bytes of unknown chunks and parameters that are echoed
	// in one report.
	maxReported = 1024
)

// maxUnknownParams bounds how many unrecognized parameters of one INIT are
// reported.
const maxUnknownParams = 16

// parse sorts out x. ack tells that it is an INIT ACK.
func (in *initInfo) parse(x *wire.Init, ack bool) {
	*in = initInfo{tag: x.Tag, rwnd: x.RWND, out: x.OutStreams, in: x.InStreams, tsn: seq.TSN(x.TSN)}
	it := wire.NewParams(x.Params)
	for it.Next() {
		p := it.Param()
		var err error
		switch p.Type {
		case wire.ParamIPv4, wire.ParamIPv6:
			var a netip.Addr
			if a, err = wire.ParseAddr(p); err == nil {
				in.addrs.Add(a)
			}
		case wire.ParamStateCookie:
			if ack {
				in.cookie, err = wire.ParseStateCookie(p)
				in.hasCookie = true
			}
		case wire.ParamCookiePreservative:
			in.lifeMS, err = wire.ParseCookiePreservative(p)
		case wire.ParamHostName:
			in.hostName = p
		case wire.ParamECN:
			in.features |= feature.ECN
		case wire.ParamZeroChecksum:
			var method uint32
			switch method, err = wire.ParseZeroChecksum(p); method {
			case wire.EDMIDDTLS:
				in.features |= feature.ZeroChecksum
			case wire.EDMIDLocal:
				in.features |= feature.ZeroChecksumLocal
			}
		case wire.ParamForwardTSN:
			in.features |= feature.PartialReliability
			in.forward = p
		case wire.ParamSupportedExtensions:
			var list wire.ChunkTypes
			if list, err = wire.ParseSupportedExtensions(p); err == nil {
				in.features |= feature.Listed(list)
			}
		case wire.ParamAdaptation:
			in.adaptation, err = wire.ParseAdaptation(p)
			in.hasAdaptation = err == nil
		case wire.ParamSetPrimary:
			// RFC 5061, Section 4.2.4: "an initial preference of primary address".
			// Advice that is not understood is none.
			if req, bad := wire.ParseAsconfRequest(p); bad == nil {
				in.primary = req.Addr.Unmap()
			}
		case wire.ParamUnrecognized:
			if u, bad := wire.ParseUnrecognized(p); bad == nil {
				in.refused |= feature.OfParam(u)
			}
		case wire.ParamSupportedAddrTypes, wire.ParamPad:
			// Known, and without effect here.
		case wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamErrorCause, wire.ParamSuccess:
			// RFC 5061, Section 4.2: where a parameter is not allowed, "the parameter
			// MUST be ignored".
		case wire.ParamRandom, wire.ParamChunkList, wire.ParamHMACAlgo:
			in.auth.Take(p)
		default:
			// RFC 9260, Section 3.2.1, Table 3.
			if p.Type.Reported() && in.unknownN < maxUnknownParams {
				in.unknown[in.unknownN] = p
				in.unknownN++
			}
			if p.Type.StopsChunk() {
				return
			}
		}
		if err != nil {
			in.malformed = true
			return
		}
	}
	in.malformed = it.Err() != nil
	if in.auth.Vector() != nil {
		in.features |= feature.Auth
	}
}

// check notes what makes the peer unacceptable to an end with these features, and
// what the end does not recognize for lack of them.
func (in *initInfo) check(ours feature.Set) {
	in.features &^= in.refused
	if !ours.Has(feature.PartialReliability) && in.forward.Raw != nil && in.unknownN < maxUnknownParams {
		// RFC 3758, Section 3.3.2.
		in.unknown[in.unknownN] = in.forward
		in.unknownN++
	}
	switch {
	case ours.Has(feature.Auth) && in.auth.Problem != "":
		in.violation = in.auth.Problem
	case ours.Has(feature.Asconf) && !ours.Has(feature.AsconfOpen) && in.features.Has(feature.Asconf) && !in.features.Has(feature.Auth):
		// RFC 5061, Section 6: "under NO circumstance is an implementation
		// allowed to proceed with the association setup".
		in.violation = "ASCONF without AUTH"
	}
}

// appendUnknown appends the parameters to report, each wrapped as the
// Unrecognized Parameter of an INIT ACK if wrap is set, up to
// maxReported of them.
func (in *initInfo) appendUnknown(b []byte, wrap bool) []byte {
	room := maxReported
	for _, p := range in.unknown[:in.unknownN] {
		if room -= wire.Padded(len(p.Raw)); room < 0 {
			break
		}
		if wrap {
			b = wire.AppendUnrecognized(b, p)
		} else {
			b = append(b, p.Raw...)
			b = wire.AppendPadding(b, len(p.Raw))
		}
	}
	return b
}

// refusal appends the causes of the ABORT that in calls for, and reports
// whether it calls for one. An Initiate Tag of 0 is the caller's to check: it
// is not answered so.
func (in *initInfo) refusal(b []byte, ack bool) ([]byte, bool) {
	switch {
	case in.out == 0 || in.in == 0 || in.rwnd < minRWND:
		// RFC 9260, Sections 3.3.2 and 3.3.3.
		return wire.AppendInvalidParam(b), true
	case in.hostName.Raw != nil:
		// RFC 9260, Section 5.1.2, B.
		if len(in.hostName.Raw) <= maxReported {
			b = wire.AppendUnresolvableAddress(b, in.hostName)
		}
		return b, true
	case in.violation != "":
		return wire.AppendProtocolViolation(b, in.violation), true
	case in.malformed:
		return wire.AppendProtocolViolation(b, "malformed parameter"), true
	case ack && in.hasCookie && len(in.cookie) == 0:
		// RFC 9260, Section 3.3.10.7: a mandatory parameter "is set to an invalid value":
		// it "MUST contain all the necessary state and parameter information" (3.3.3.1.1).
		return wire.AppendInvalidParam(b), true
	case ack && !in.hasCookie:
		return wire.AppendMissingParams(b, wire.ParamStateCookie), true
	}
	return b, false
}

// initParams is what goes into an INIT or INIT ACK of ours.
type initParams struct {
	tag, rwnd     uint32
	out, in       uint16
	tsn           seq.TSN
	features      feature.Set
	adaptation    *uint32
	addrs         []netip.AddrPort // listed if there are several
	lifeMS        uint32
	cookie        []byte
	auth          auth.Vector
	unknownParams []byte // encoded
}

// appendParams appends the variable-length part.
func (p *initParams) appendParams(b []byte) []byte {
	if len(p.addrs) > 1 {
		for _, a := range p.addrs {
			b = wire.AppendAddr(b, a.Addr())
		}
	}
	if len(p.cookie) > 0 {
		b = wire.AppendStateCookie(b, p.cookie)
	}
	if p.lifeMS > 0 {
		b = wire.AppendCookiePreservative(b, p.lifeMS)
	}
	if p.adaptation != nil {
		b = wire.AppendAdaptation(b, *p.adaptation)
	}
	b = feature.AppendParams(b, p.features)
	b = p.auth.AppendParams(b)
	return append(b, p.unknownParams...)
}

func (p *initParams) fixed() wire.Init {
	return wire.Init{Tag: p.tag, RWND: p.rwnd, OutStreams: p.out, InStreams: p.in, TSN: uint32(p.tsn)}
}

// minInitParams is the length of the parameters that our INIT is padded to. The
// INIT ACK of a peer like us is not more than maxAmplification times as long as
// the packet with it then, all addresses and extensions that there can be
// included, so that no peer has reason to hold it back.
const minInitParams = 160

// append appends an INIT chunk, padded (RFC 4820, Section 4); ack makes it an
// INIT ACK.
func (p *initParams) append(b []byte, ack bool) []byte {
	var scratch [512]byte
	x := p.fixed()
	x.Params = p.appendParams(scratch[:0])
	if ack {
		return wire.AppendInitAck(b, x)
	}
	if pad := minInitParams - len(x.Params); pad > 0 {
		x.Params = wire.AppendPadParam(x.Params, pad)
	}
	return wire.AppendInit(b, x)
}
