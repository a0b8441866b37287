package cookie

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// Init is what an INIT or INIT ACK says, its parameters sorted out.
type Init struct {
	Tag, RWND     uint32
	Out, In       uint16
	TSN           seq.TSN
	Addrs         address.List
	Features      feature.Set
	refused       feature.Set // that the peer does not recognize
	Adaptation    uint32
	HasAdaptation bool
	// Primary is the address that the peer would have us send to, unspecified
	// for the one that the packet came from.
	Primary netip.Addr
	// LifeMS is the lengthening of the cookie's life that was asked for.
	LifeMS uint32
	// Cookie aliases the packet; hasCookie tells that there is one, if only an empty one.
	Cookie    []byte
	hasCookie bool
	// unknown are the encoded parameters to report as unrecognized; it aliases
	// the packet, in pieces.
	unknown  [maxUnknownParams]wire.Param
	unknownN int
	hostName wire.Param
	// forward is the Forward-TSN-Supported parameter.
	forward   wire.Param
	Auth      auth.Params
	Malformed bool
	violation string // if not empty, what to refuse it for
}

const (
	// MinRWND is the least receiver window that an end may announce (RFC 9260,
	// Sections 3.3.2 and 3.3.3).
	MinRWND = 1500
	// MaxReported bounds the bytes of unknown chunks and parameters that are echoed
	// in one report.
	MaxReported = 1024
)

// maxUnknownParams bounds how many unrecognized parameters of one INIT are
// reported.
const maxUnknownParams = 16

// Parse sorts out x. ack tells that it is an INIT ACK.
func (in *Init) Parse(x *wire.Init, ack bool) {
	*in = Init{Tag: x.Tag, RWND: x.RWND, Out: x.OutStreams, In: x.InStreams, TSN: seq.TSN(x.TSN)}
	it := wire.NewParams(x.Params)
	for it.Next() {
		p := it.Param()
		var err error
		switch p.Type {
		case wire.ParamIPv4, wire.ParamIPv6:
			var a netip.Addr
			if a, err = wire.ParseAddr(p); err == nil {
				in.Addrs.Add(a)
			}
		case wire.ParamStateCookie:
			if ack {
				in.Cookie, err = wire.ParseStateCookie(p)
				in.hasCookie = true
			}
		case wire.ParamCookiePreservative:
			in.LifeMS, err = wire.ParseCookiePreservative(p)
		case wire.ParamHostName:
			in.hostName = p
		case wire.ParamECN:
			in.Features |= feature.ECN
		case wire.ParamZeroChecksum:
			var method uint32
			switch method, err = wire.ParseZeroChecksum(p); method {
			case wire.EDMIDDTLS:
				in.Features |= feature.ZeroChecksum
			case wire.EDMIDLocal:
				in.Features |= feature.ZeroChecksumLocal
			}
		case wire.ParamForwardTSN:
			in.Features |= feature.PartialReliability
			in.forward = p
		case wire.ParamSupportedExtensions:
			var list wire.ChunkTypes
			if list, err = wire.ParseSupportedExtensions(p); err == nil {
				in.Features |= feature.Listed(list)
			}
		case wire.ParamAdaptation:
			in.Adaptation, err = wire.ParseAdaptation(p)
			in.HasAdaptation = err == nil
		case wire.ParamSetPrimary:
			// RFC 5061, Section 4.2.4: "an initial preference of primary address".
			// Advice that is not understood is none.
			if req, bad := wire.ParseAsconfRequest(p); bad == nil {
				in.Primary = req.Addr.Unmap()
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
			in.Auth.Take(p)
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
			in.Malformed = true
			return
		}
	}
	in.Malformed = it.Err() != nil
	if in.Auth.Vector() != nil {
		in.Features |= feature.Auth
	}
}

// Check notes what makes the peer unacceptable to an end with these features, and
// what the end does not recognize for lack of them.
func (in *Init) Check(ours feature.Set) {
	in.Features &^= in.refused
	if !ours.Has(feature.PartialReliability) && in.forward.Raw != nil && in.unknownN < maxUnknownParams {
		// RFC 3758, Section 3.3.2.
		in.unknown[in.unknownN] = in.forward
		in.unknownN++
	}
	switch {
	case ours.Has(feature.Auth) && in.Auth.Problem != "":
		in.violation = in.Auth.Problem
	case ours.Has(feature.Asconf) && !ours.Has(feature.AsconfOpen) && in.Features.Has(feature.Asconf) &&
		!in.Features.Has(feature.Auth):
		// RFC 5061, Section 6: "under NO circumstance is an implementation
		// allowed to proceed with the association setup".
		in.violation = "ASCONF without AUTH"
	}
}

// AppendUnknown appends the parameters to report, each wrapped as the
// Unrecognized Parameter of an INIT ACK if wrap is set, up to
// MaxReported of them.
func (in *Init) AppendUnknown(b []byte, wrap bool) []byte {
	room := MaxReported
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

// Refusal appends the causes of the ABORT that in calls for, and reports
// whether it calls for one. An Initiate Tag of 0 is the caller's to check: it
// is not answered so.
func (in *Init) Refusal(b []byte, ack bool) ([]byte, bool) {
	switch {
	case in.Out == 0 || in.In == 0 || in.RWND < MinRWND:
		// RFC 9260, Sections 3.3.2 and 3.3.3.
		return wire.AppendInvalidParam(b), true
	case in.hostName.Raw != nil:
		// RFC 9260, Section 5.1.2, B.
		if len(in.hostName.Raw) <= MaxReported {
			b = wire.AppendUnresolvableAddress(b, in.hostName)
		}
		return b, true
	case in.violation != "":
		return wire.AppendProtocolViolation(b, in.violation), true
	case in.Malformed:
		return wire.AppendProtocolViolation(b, "malformed parameter"), true
	case ack && in.hasCookie && len(in.Cookie) == 0:
		// RFC 9260, Section 3.3.10.7: a mandatory parameter "is set to an invalid value":
		// it "MUST contain all the necessary state and parameter information" (3.3.3.1.1).
		return wire.AppendInvalidParam(b), true
	case ack && !in.hasCookie:
		return wire.AppendMissingParams(b, wire.ParamStateCookie), true
	}
	return b, false
}

// InitParams is what goes into an INIT or INIT ACK of ours.
type InitParams struct {
	Tag, RWND     uint32
	Out, In       uint16
	TSN           seq.TSN
	Features      feature.Set
	Adaptation    *uint32
	Addrs         []netip.AddrPort // listed if there are several
	LifeMS        uint32
	Cookie        []byte
	Auth          auth.Vector
	UnknownParams []byte // encoded
}

// appendParams appends the variable-length part.
func (p *InitParams) appendParams(b []byte) []byte {
	if len(p.Addrs) > 1 {
		for _, a := range p.Addrs {
			b = wire.AppendAddr(b, a.Addr())
		}
	}
	if len(p.Cookie) > 0 {
		b = wire.AppendStateCookie(b, p.Cookie)
	}
	if p.LifeMS > 0 {
		b = wire.AppendCookiePreservative(b, p.LifeMS)
	}
	if p.Adaptation != nil {
		b = wire.AppendAdaptation(b, *p.Adaptation)
	}
	b = feature.AppendParams(b, p.Features)
	b = p.Auth.AppendParams(b)
	return append(b, p.UnknownParams...)
}

func (p *InitParams) fixed() wire.Init {
	return wire.Init{Tag: p.Tag, RWND: p.RWND, OutStreams: p.Out, InStreams: p.In, TSN: uint32(p.TSN)}
}

// minInitParams is the length of the parameters that our INIT is padded to. The
// INIT ACK of a peer like us is not more than three times as long as
// the packet with it then, all addresses and extensions that there can be
// included, so that no peer has reason to hold it back.
const minInitParams = 160

// Append appends an INIT chunk, padded (RFC 4820, Section 4); ack makes it an
// INIT ACK.
func (p *InitParams) Append(b []byte, ack bool) []byte {
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
