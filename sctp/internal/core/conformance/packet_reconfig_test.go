package conformance

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp/wire"
)

// combinations are those of parameters that a RE-CONFIG chunk may hold, in either
// order (RFC 6525, Section 3.1).
var combinations = [][]wire.ParamType{
	{wire.ParamOutgoingReset}, {wire.ParamIncomingReset}, {wire.ParamOutgoingReset, wire.ParamIncomingReset}, {wire.ParamTSNReset},
	{wire.ParamAddOutgoing}, {wire.ParamAddIncoming}, {wire.ParamAddOutgoing, wire.ParamAddIncoming}, {wire.ParamReConfigResponse},
	{wire.ParamOutgoingReset, wire.ParamReConfigResponse}, {wire.ParamReConfigResponse, wire.ParamReConfigResponse}}

// reconfigRules checks the parameters of a RE-CONFIG chunk (RFC 6525, Sections 3.1
// and 4.1 to 4.6).
func reconfigRules(list []tlv) error {
	var types []wire.ParamType
	for _, p := range list {
		t, n := wire.ParamType(p.typ), len(p.value)
		types = append(types, t)
		ok := false
		switch t {
		case wire.ParamOutgoingReset:
			ok = n >= 12 && n%2 == 0
		case wire.ParamIncomingReset:
			ok = n >= 4 && n%2 == 0
		case wire.ParamTSNReset:
			ok = n == 4
		case wire.ParamReConfigResponse:
			ok = n == 8 || n == 16
		case wire.ParamAddOutgoing, wire.ParamAddIncoming:
			ok = n == 8
			if ok && binary.BigEndian.Uint16(p.value[6:]) != 0 {
				return fmt.Errorf("reserved bits of parameter %d are set", p.typ)
			}
		}
		if !ok {
			return fmt.Errorf("parameter %d has %d bytes", p.typ, n)
		}
	}
	slices.Sort(types)
	for _, c := range combinations {
		if slices.Equal(c, types) {
			return nil
		}
	}
	return fmt.Errorf("combination %v", types)
}

// reservedRules checks the reserved bits of the chunks with user data and of those
// that skip some (RFC 9260, Section 3.3.1; RFC 8260, Sections 2.1 and 2.3.1).
func reservedRules(t wire.ChunkType, c tlv) error {
	bad := false
	switch t {
	case wire.ChunkData:
		bad = c.flags&0xf0 != 0
	case wire.ChunkIData:
		bad = c.flags&0xf0 != 0 || len(c.value) < 8 || binary.BigEndian.Uint16(c.value[6:]) != 0
	case wire.ChunkIForwardTSN:
		for v := c.value; len(v) >= 12; v = v[8:] {
			bad = bad || binary.BigEndian.Uint16(v[6:])&^1 != 0
		}
	}
	if bad {
		return fmt.Errorf("reserved bits of %v are set", t)
	}
	return nil
}

// What an end may not send in a RE-CONFIG chunk is found in whatever script it
// does.
func TestReconfigRules(t *testing.T) {
	header := wire.AppendHeader(nil, wire.Header{SrcPort: 1, DstPort: 2, VTag: 3})
	out := wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: 1}, []uint16{1, 2})
	in := wire.AppendIncomingReset(nil, 2, []uint16{1, 2})
	add := wire.AppendAddOutgoing(nil, wire.AddStreams{ReqSeq: 1, Streams: 1})
	response := wire.AppendReConfigResponse(nil, wire.ReConfigResponse{RespSeq: 1, Result: 1})
	reserved := slices.Clone(add)
	reserved[len(add)-1] = 1
	for _, x := range []struct {
		name   string
		params []byte
		want   string
	}{
		{"right", slices.Concat(out, in), ""},
		{"right answer", slices.Concat(response, response), ""},
		{"nothing", nil, "combination"},
		{"answer to an incoming request", slices.Concat(response, in), "combination"},
		{"three", slices.Concat(response, response, response), "combination"},
		{"SSN/TSN reset with something", slices.Concat(wire.AppendTSNReset(nil, 1), add), "combination"},
		{"odd list", wire.AppendParam(nil, wire.ParamOutgoingReset, make([]byte, 13)), "13 bytes"},
		{"odd list of incoming", wire.AppendParam(nil, wire.ParamIncomingReset, make([]byte, 5)), "5 bytes"},
		{"long reset", wire.AppendParam(nil, wire.ParamTSNReset, make([]byte, 8)), "8 bytes"},
		{"one TSN", wire.AppendParam(nil, wire.ParamReConfigResponse, make([]byte, 12)), "12 bytes"},
		{"short addition", wire.AppendParam(nil, wire.ParamAddIncoming, make([]byte, 4)), "4 bytes"},
		{"reserved bits", reserved, "reserved"},
		{"another parameter", wire.AppendPadParam(nil, 8), "no place"},
	} {
		err := packetRules(append(slices.Clone(header), wire.AppendReConfig(nil, wire.ReConfig{Params: x.params})...))
		if (x.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}

// Reserved bits that are set are found in whatever script they are.
func TestReservedBitsRules(t *testing.T) {
	header := wire.AppendHeader(nil, wire.Header{SrcPort: 1, DstPort: 2, VTag: 3})
	data := wire.AppendData(nil, wire.Data{TSN: 1, Begin: true, End: true, Payload: []byte("abcd")})
	idata := wire.AppendIData(nil, wire.Data{TSN: 1, Begin: true, End: true, Payload: []byte("abcd")})
	forward := wire.AppendIForwardTSN(nil, 5, []wire.ISkip{{SID: 1, MID: 1}, {SID: 2, Unordered: true, MID: 7}})
	for _, x := range []struct {
		name  string
		chunk []byte
		at    int // where 0x80 is set
	}{{"flags of DATA", data, 1}, {"flags of I-DATA", idata, 1}, {"bits of I-DATA", idata, 10}, {"flags of I-FORWARD-TSN", forward, 1},
		{"bits of I-FORWARD-TSN", forward, 10}, {"bits of the second entry", forward, 18}} {
		pkt := append(slices.Clone(header), x.chunk...)
		if err := packetRules(pkt); err != nil {
			t.Errorf("%s: %v before anything is wrong", x.name, err)
		}
		pkt[len(header)+x.at] |= 0x80
		if err := packetRules(pkt); err == nil {
			t.Errorf("%s: nothing is wrong", x.name)
		}
	}
}
