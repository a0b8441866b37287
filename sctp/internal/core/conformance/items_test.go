package conformance

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weftstack/weft/sctp/wire"
)

// chunkNames are the chunk types that parameters may name.
var chunkNames = map[string]wire.ChunkType{"DATA": wire.ChunkData, "INIT": wire.ChunkInit, "AUTH": wire.ChunkAuth, "I-DATA": wire.ChunkIData,
	"FORWARD-TSN": wire.ChunkForwardTSN, "I-FORWARD-TSN": wire.ChunkIForwardTSN, "RE-CONFIG": wire.ChunkReConfig,
	"COOKIE-ECHO": wire.ChunkCookieEcho, "COOKIE-ACK": wire.ChunkCookieAck, "SACK": wire.ChunkSack, "ABORT": wire.ChunkAbort,
	"ASCONF": wire.ChunkAsconf, "ASCONF-ACK": wire.ChunkAsconfAck}

// items encodes the parameters or causes in braces.
func (a *args) items() ([]byte, error) {
	var b []byte
	for _, s := range a.list {
		var err error
		if b, err = a.item(b, s); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	return b, nil
}

func (a *args) item(b []byte, s string) ([]byte, error) {
	f, err := splitFields(s)
	if err != nil || len(f.words) == 0 {
		return b, fmt.Errorf("no name: %w", err)
	}
	x := &args{fields: f, r: a.r}
	at := len(b)
	word := func(i int) string {
		if i < len(f.words) {
			return f.words[i]
		}
		return ""
	}
	num := func(i int) uint32 {
		v, err := a.r.number(word(i))
		if err != nil && x.err == nil {
			x.err = err
		}
		return v
	}
	opt := func(i int) int {
		if word(i) == "" {
			return 0
		}
		return int(num(i))
	}
	streams := func() (list []uint16) {
		for _, v := range x.nums("streams") {
			list = append(list, uint16(v))
		}
		return list
	}
	switch f.words[0] {
	// Parameters of INIT and INIT ACK.
	case "ipv4", "ipv6":
		ip, err := netip.ParseAddr(word(1))
		if err != nil {
			return b, err
		}
		if word(0) == "ipv6" && ip.Is4In6() {
			v := ip.As16()
			b = wire.AppendParam(b, wire.ParamIPv6, v[:])
			break
		}
		b = wire.AppendAddr(b, ip)
	case "cookie":
		b = wire.AppendStateCookie(b, []byte(peerCookie))
	case "preservative":
		b = wire.AppendCookiePreservative(b, num(1))
	case "host":
		b = wire.AppendHostName(b, word(1))
	case "addrtypes":
		b = wire.AppendSupportedAddrTypes(b, wire.ParamIPv4, wire.ParamIPv6)
	case "ecn":
		b = wire.AppendECN(b)
	case "fwd":
		b = wire.AppendForwardTSNSupported(b)
	case "ext":
		var types []wire.ChunkType
		for _, n := range f.words[1:] {
			t, ok := chunkNames[n]
			if !ok {
				return b, fmt.Errorf("no chunk %s", n)
			}
			types = append(types, t)
		}
		b = wire.AppendSupportedExtensions(b, types...)
	case "adaptation":
		b = wire.AppendAdaptation(b, num(1))
	case "pad":
		b = wire.AppendPadParam(b, int(num(1)))
	case "random":
		b = wire.AppendRandom(b, fill(0, int(num(1))))
	case "chunks":
		types := []wire.ChunkType{}
		for _, n := range f.words[1:] {
			types = append(types, chunkNames[n])
		}
		b = wire.AppendChunkList(b, types...)
	case "hmac":
		var ids []uint16
		for i := range f.words[1:] {
			ids = append(ids, uint16(num(1+i)))
		}
		b = wire.AppendHMACAlgo(b, ids...)
	case "zerochecksum":
		b = wire.AppendZeroChecksum(b, num(1))
	case "param": // type, length of the value
		b = wire.AppendParam(b, wire.ParamType(num(1)), fill(0, opt(2)))
	case "unrecognized":
		b = wire.AppendUnrecognized(b, wire.Param{Raw: wire.AppendParam(nil, wire.ParamType(num(1)), nil)})
	case "addrs": // so many IPv4 addresses
		for i := range num(1) {
			b = wire.AppendAddr(b, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
		}
	case "params": // so many of a type, of a length each
		for range num(1) {
			b = wire.AppendParam(b, wire.ParamType(num(2)), fill(0, opt(3)))
		}
	case "hex":
		raw, err := hex.DecodeString(word(1))
		if err != nil {
			return b, err
		}
		b = append(b, raw...)
	// Parameters of RE-CONFIG.
	case "outreset":
		b = wire.AppendOutgoingReset(b, wire.OutgoingReset{ReqSeq: x.num("req", 0), RespSeq: x.num("resp", a.r.tsn-1),
			LastTSN: x.num("last", peerTSN-1)}, streams())
	case "inreset":
		b = wire.AppendIncomingReset(b, x.num("req", 0), streams())
	case "tsnreset":
		b = wire.AppendTSNReset(b, x.num("req", 0))
	case "addout":
		b = wire.AppendAddOutgoing(b, wire.AddStreams{ReqSeq: x.num("req", 0), Streams: uint16(x.num("n", 1))})
	case "addin":
		b = wire.AppendAddIncoming(b, wire.AddStreams{ReqSeq: x.num("req", 0), Streams: uint16(x.num("n", 1))})
	case "response":
		resp := wire.ReConfigResponse{RespSeq: x.num("resp", 0), Result: wire.ReConfigResult(x.num("result", 1))}
		if _, ok := f.get("next"); ok {
			resp.HasTSNs, resp.SenderNextTSN, resp.ReceiverNextTSN = true, x.num("next", 0), x.num("mine", 0)
		}
		b = wire.AppendReConfigResponse(b, resp)
	// Parameters of ASCONF.
	case "addip", "delip", "setprimary":
		t := map[string]wire.ParamType{"addip": wire.ParamAddIP, "delip": wire.ParamDeleteIP, "setprimary": wire.ParamSetPrimary}[word(0)]
		b = wire.AppendAsconfRequest(b, wire.AsconfRequest{Type: t, ID: x.num("id", 1), Addr: netip.MustParseAddr(word(1))})
	case "success": // of a request
		b = wire.AppendAsconfSuccess(b, num(1))
	case "refused": // of a request, with a cause
		b = wire.AppendAsconfError(b, wire.AsconfError{ID: num(1), Causes: wire.AppendCause(nil, wire.CauseCode(num(2)), fill(0, opt(3)))})
	// Causes.
	case "stale":
		b = wire.AppendStaleCookie(b, num(1))
	case "nodata":
		b = wire.AppendNoUserData(b, num(1))
	case "invalidstream":
		b = wire.AppendInvalidStream(b, uint16(num(1)))
	case "violation":
		b = wire.AppendProtocolViolation(b, strings.Join(f.words[1:], " "))
	case "userabort":
		b = wire.AppendUserAbort(b, []byte(strings.Join(f.words[1:], " ")))
	case "unrecognizedchunk":
		b = wire.AppendUnrecognizedChunk(b, wire.Chunk{Raw: []byte{byte(num(1)), 0, 0, 4}})
	case "cause": // code, length of the value
		b = wire.AppendCause(b, wire.CauseCode(num(1)), fill(0, opt(2)))
	case "causes":
		for range num(1) {
			b = wire.AppendCause(b, wire.CauseCode(num(2)), nil)
		}
	case "causelength": // code, a length field that lies
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(num(1))), uint16(num(2)))
	default:
		return b, fmt.Errorf("unknown item")
	}
	if _, ok := f.get("_pad"); ok { // padding bytes of this value
		v := byte(x.num("_pad", 0))
		for i := at + int(binary.BigEndian.Uint16(b[at+2:])); i < len(b); i++ {
			b[i] = v
		}
	}
	return b, x.err
}
