package conformance

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp/wire"
)

// tlv is a chunk, parameter or cause as this package takes packets apart, which
// shares no code with what builds them.
type tlv struct {
	typ   uint16
	flags byte
	value []byte
}

// cut takes a list of chunks, or of parameters or causes, apart. Everything is
// padded with at most three bytes, all zero.
func cut(b []byte, chunks bool) (list []tlv, err error) {
	for len(b) > 0 {
		if len(b) < 4 {
			return list, fmt.Errorf("%d bytes at the end", len(b))
		}
		x := tlv{typ: binary.BigEndian.Uint16(b)}
		if chunks {
			x.typ, x.flags = uint16(b[0]), b[1]
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		padded := (n + 3) &^ 3
		if !chunks && n <= len(b) {
			padded = min(padded, len(b)) // the padding of the last one is that of the chunk
		}
		if n < 4 || padded > len(b) {
			return list, fmt.Errorf("type %#x has a length of %d, of %d bytes", x.typ, n, len(b))
		}
		x.value = b[4:n]
		for _, c := range b[n:padded] {
			if c != 0 {
				return list, fmt.Errorf("padding of type %#x is not zero", x.typ)
			}
		}
		list = append(list, x)
		b = b[padded:]
	}
	return list, nil
}

// Where the parameters of the extensions may be.
var allowed = map[wire.ParamType][]wire.ChunkType{
	wire.ParamSupportedExtensions: {wire.ChunkInit, wire.ChunkInitAck}, // RFC 5061, Section 4.2.7
	wire.ParamAdaptation:          {wire.ChunkInit, wire.ChunkInitAck}, // Section 4.2.6
	wire.ParamSetPrimary:          {wire.ChunkInit, wire.ChunkInitAck, wire.ChunkAsconf},
	wire.ParamAddIP:               {wire.ChunkAsconf},
	wire.ParamDeleteIP:            {wire.ChunkAsconf},
	wire.ParamErrorCause:          {wire.ChunkAsconfAck},
	wire.ParamSuccess:             {wire.ChunkAsconfAck},
	wire.ParamRandom:              {wire.ChunkInit, wire.ChunkInitAck}, // RFC 4895, Section 6.1
	wire.ParamChunkList:           {wire.ChunkInit, wire.ChunkInitAck},
	wire.ParamHMACAlgo:            {wire.ChunkInit, wire.ChunkInitAck},
	wire.ParamPad:                 {wire.ChunkInit},     // RFC 4820, Section 4
	wire.ParamOutgoingReset:       {wire.ChunkReConfig}, // RFC 6525, Section 4
	wire.ParamIncomingReset:       {wire.ChunkReConfig},
	wire.ParamTSNReset:            {wire.ChunkReConfig},
	wire.ParamReConfigResponse:    {wire.ChunkReConfig},
	wire.ParamAddOutgoing:         {wire.ChunkReConfig},
	wire.ParamAddIncoming:         {wire.ChunkReConfig},
}

// once are the parameters of an INIT or INIT ACK that come once.
var once = []wire.ParamType{wire.ParamSupportedExtensions, wire.ParamAdaptation, wire.ParamRandom, wire.ParamChunkList, wire.ParamHMACAlgo}

// packetRules checks what holds of every packet that an end sends, whatever the
// script is about.
func packetRules(pkt []byte) error {
	if len(pkt) < wire.HeaderLen {
		return fmt.Errorf("%d bytes", len(pkt))
	}
	chunks, err := cut(pkt[wire.HeaderLen:], true)
	if err != nil {
		return err
	}
	seen := map[wire.ChunkType]int{}
	for _, c := range chunks {
		t := wire.ChunkType(c.typ)
		seen[t]++
		head := map[wire.ChunkType]int{wire.ChunkInit: 16, wire.ChunkInitAck: 16, wire.ChunkAsconf: 4, wire.ChunkAsconfAck: 4,
			wire.ChunkReConfig: 0, wire.ChunkAbort: 0, wire.ChunkError: 0}
		switch t {
		case wire.ChunkAuth, wire.ChunkPad, wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkReConfig, wire.ChunkForwardTSN, wire.ChunkIForwardTSN:
			if c.flags != 0 {
				return fmt.Errorf("flags of %v are %#x", t, c.flags)
			}
		}
		if err := reservedRules(t, c); err != nil {
			return err
		}
		n, ok := head[t]
		if !ok {
			continue
		}
		if len(c.value) < n {
			return fmt.Errorf("%v is too short", t)
		}
		list, err := cut(c.value[n:], false)
		if err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		if t == wire.ChunkAbort || t == wire.ChunkError {
			continue // causes
		}
		if err := paramRules(t, list); err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
	}
	switch {
	case seen[wire.ChunkAuth] > 1: // RFC 4895, Section 5.1
		return fmt.Errorf("AUTH comes %d times", seen[wire.ChunkAuth])
	case seen[wire.ChunkAsconf] > 1: // RFC 5061, Section 5.5, does not arise
		return fmt.Errorf("ASCONF comes %d times", seen[wire.ChunkAsconf])
	}
	return nil
}

func paramRules(in wire.ChunkType, list []tlv) error {
	count := map[wire.ParamType]int{}
	for i, p := range list {
		t := wire.ParamType(p.typ)
		count[t]++
		if where, ok := allowed[t]; ok && !slices.Contains(where, in) {
			return fmt.Errorf("parameter %#x has no place here", p.typ)
		}
		switch {
		case t == wire.ParamHostName:
			return fmt.Errorf("host name") // RFC 5061, Section 4.1.1; RFC 9260, Section 5.1.2
		case in == wire.ChunkAsconf && i == 0 && t != wire.ParamIPv4 && t != wire.ParamIPv6:
			return fmt.Errorf("no address")
		case in == wire.ChunkAsconf && i > 0:
			if err := requestRules(p); err != nil {
				return err
			}
		}
	}
	if in == wire.ChunkReConfig {
		return reconfigRules(list)
	}
	if in == wire.ChunkInit || in == wire.ChunkInitAck {
		for _, t := range once {
			if count[t] > 1 {
				return fmt.Errorf("parameter %#x comes %d times", uint16(t), count[t])
			}
		}
		// RFC 6951, Section 3.2: "For single-homed associations, IP addresses MUST
		// NOT be listed".
		if count[wire.ParamIPv4]+count[wire.ParamIPv6] == 1 {
			return fmt.Errorf("the only address is listed")
		}
	}
	return nil
}

// requestRules checks a request of an ASCONF: the address "MUST NOT contain a
// broadcast or multicast address" (RFC 5061, Sections 4.2.1 and 4.2.2).
func requestRules(p tlv) error {
	if len(p.value) < 4 {
		return fmt.Errorf("request without a correlation ID")
	}
	addrs, err := cut(p.value[4:], false)
	if err != nil || len(addrs) != 1 {
		return fmt.Errorf("request with %d addresses: %w", len(addrs), err)
	}
	ip, ok := netip.AddrFromSlice(addrs[0].value)
	if !ok || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return fmt.Errorf("request with address %v", ip)
	}
	return nil
}

// The rules that every packet of every script is checked by find what they are
// there for.
func TestPacketRules(t *testing.T) {
	header := wire.AppendHeader(nil, wire.Header{SrcPort: 1, DstPort: 2, VTag: 3})
	initWith := func(params ...[]byte) []byte {
		return wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 65536, OutStreams: 1, InStreams: 1, Params: slices.Concat(params...)})
	}
	auth := wire.AppendAuth(nil, wire.Auth{HMACID: 1, HMAC: make([]byte, 20)})
	asconf := func(params []byte) []byte {
		return wire.AppendAsconf(nil, wire.Asconf{Seq: 1, Addr: localAddr, Params: params})
	}
	add := func(a string) []byte {
		return wire.AppendAsconfRequest(nil, wire.AsconfRequest{Type: wire.ParamAddIP, Addr: netip.MustParseAddr(a)})
	}
	ext := wire.AppendSupportedExtensions(nil, wire.ChunkAuth)
	random := wire.AppendRandom(nil, make([]byte, 32))
	addr := wire.AppendAddr(nil, localAddr)
	host := wire.AppendHostName(nil, "example.org")
	dirty := wire.AppendChunk(nil, wire.ChunkCookieEcho, 0, []byte("12345"))
	dirty[len(dirty)-1] = 1
	dirtyExt := slices.Clone(ext)
	dirtyExt[len(ext)-2] = 7
	for _, x := range []struct {
		name   string
		chunks [][]byte
		want   string // "" for a packet that is right
	}{
		{"right", [][]byte{auth, asconf(add("10.0.0.7")), wire.AppendCookieAck(nil)}, ""},
		{"right INIT", [][]byte{initWith(ext, random, addr, addr)}, ""},
		{"padding of a chunk", [][]byte{dirty}, "padding"},
		{"padding of a parameter", [][]byte{initWith(dirtyExt, random)}, "padding"},
		{"four bytes of padding", [][]byte{append(slices.Clone(auth), 0, 0, 0, 0)}, "length of 0"},
		{"not padded", [][]byte{{byte(wire.ChunkPad), 0, 0, 5, 0}}, "length of 5"},
		{"two AUTH", [][]byte{auth, auth}, "AUTH comes"},
		{"flags of AUTH", [][]byte{append([]byte{byte(wire.ChunkAuth), 1}, auth[2:]...)}, "flags"},
		{"two ASCONF", [][]byte{asconf(nil), asconf(nil)}, "ASCONF comes"},
		{"no address", [][]byte{wire.AppendChunk(nil, wire.ChunkAsconf, 0, slices.Concat([]byte{0, 0, 0, 1}, add("10.0.0.7")))}, "no address"},
		{"host name", [][]byte{wire.AppendChunk(nil, wire.ChunkAsconf, 0, slices.Concat([]byte{0, 0, 0, 1}, host))}, "host name"},
		{"multicast", [][]byte{asconf(add("224.0.0.1"))}, "224.0.0.1"},
		{"broadcast", [][]byte{asconf(add("255.255.255.255"))}, "255.255.255.255"},
		{"misplaced request", [][]byte{initWith(add("10.0.0.7"))}, "no place"},
		{"misplaced extensions", [][]byte{asconf(ext)}, "no place"},
		{"misplaced adaptation", [][]byte{wire.AppendReConfig(nil, wire.ReConfig{Params: wire.AppendAdaptation(nil, 1)})}, "no place"},
		{"misplaced response", [][]byte{asconf(wire.AppendAsconfSuccess(nil, 1))}, "no place"},
		{"misplaced padding", [][]byte{wire.AppendInitAck(nil, wire.Init{Params: wire.AppendPadParam(nil, 8)})}, "no place"},
		{"two lists of extensions", [][]byte{initWith(ext, ext)}, "comes 2 times"},
		{"two RANDOM", [][]byte{initWith(random, random)}, "comes 2 times"},
		{"the only address", [][]byte{initWith(addr)}, "only address"},
		{"misplaced reset", [][]byte{initWith(wire.AppendTSNReset(nil, 1))}, "no place"},
	} {
		err := packetRules(slices.Concat(append([][]byte{header}, x.chunks...)...))
		if (x.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}
