package wire

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestInitValid(t *testing.T) {
	ok := Init{Tag: 1, RWND: 1500, OutStreams: 1, InStreams: 1}
	for _, tt := range []struct {
		name string
		mod  func(*Init)
		want bool
	}{
		{"smallest", func(*Init) {}, true},
		{"tag 0", func(x *Init) { x.Tag = 0 }, false},
		{"no outbound streams", func(x *Init) { x.OutStreams = 0 }, false},
		{"window too small", func(x *Init) { x.RWND = 1499 }, false},
		{"no inbound streams", func(x *Init) { x.InStreams = 0 }, false},
	} {
		x := ok
		tt.mod(&x)
		if got := x.Valid(); got != tt.want {
			t.Errorf("%s: Valid = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestReConfigAllowed checks every pair of parameters against the ten
// combinations of RFC 6525, Section 3.1.
func TestReConfigAllowed(t *testing.T) {
	const none = ParamType(0)
	allowed := map[[2]ParamType]bool{
		{ParamOutgoingReset, none}:                         true, // 1
		{ParamIncomingReset, none}:                         true, // 2
		{ParamOutgoingReset, ParamIncomingReset}:           true, // 3
		{ParamTSNReset, none}:                              true, // 4
		{ParamAddOutgoing, none}:                           true, // 5
		{ParamAddIncoming, none}:                           true, // 6
		{ParamAddOutgoing, ParamAddIncoming}:               true, // 7
		{ParamReConfigResponse, none}:                      true, // 8
		{ParamReConfigResponse, ParamOutgoingReset}:        true, // 9
		{ParamReConfigResponse, ParamReConfigResponse}:     true, // 10
		{ParamIncomingReset, ParamOutgoingReset}:           true, // 3, other order
		{ParamAddIncoming, ParamAddOutgoing}:               true, // 7, other order
		{ParamOutgoingReset, ParamReConfigResponse}:        true, // 9, other order
		{ParamHeartbeatInfo, none}:                         false,
		{ParamOutgoingReset, ParamOutgoingReset}:           false,
		{ParamReConfigResponse, ParamSupportedAddrTypes}:   false,
		{ParamReConfigResponse, ParamSupportedExtensions}:  false,
		{ParamSupportedAddrTypes, ParamReConfigResponse}:   false,
		{ParamSupportedExtensions, ParamReConfigResponse}:  false,
		{ParamSupportedAddrTypes, ParamSupportedAddrTypes}: false,
	}
	types := []ParamType{
		none, ParamHeartbeatInfo, ParamSupportedAddrTypes, ParamOutgoingReset, ParamIncomingReset, ParamTSNReset,
		ParamReConfigResponse, ParamAddOutgoing, ParamAddIncoming, ParamSupportedExtensions,
	}
	for _, first := range types[1:] {
		for _, second := range types {
			list := AppendParam(nil, first, []byte{1, 2})
			if second != none {
				list = AppendParam(list, second, nil)
			}
			x := ReConfig{list}
			if got, want := x.Allowed(), allowed[[2]ParamType{first, second}]; got != want {
				t.Errorf("%v, %v: Allowed = %v, want %v", first, second, got, want)
			}
		}
	}
	three := AppendTSNReset(AppendTSNReset(AppendTSNReset(nil, 1), 2), 3)
	cut := AppendTSNReset(nil, 1)[:7]
	for name, list := range map[string][]byte{"none": nil, "three": three, "cut": cut} {
		if (ReConfig{list}).Allowed() {
			t.Errorf("%s: Allowed = true", name)
		}
	}
}

func TestAddresses(t *testing.T) {
	if b := AppendAddr(nil, netip.Addr{}); len(b) != 0 {
		t.Errorf("the zero address appends %x", b)
	}
	// RFC 9260, Section 3.3.2.1.2: an IPv4-mapped IPv6 address must go as IPv4.
	p, err := oneParam(AppendAddr(nil, addr("::ffff:192.0.2.1")))
	if err != nil || p.Type != ParamIPv4 {
		t.Errorf("a mapped address goes as %v, %v; want ipv4", p.Type, err)
	}
	p, err = oneParam(AppendAddr(nil, addr("fe80::1%eth0")))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := ParseAddr(p); err != nil || a != addr("fe80::1") {
		t.Errorf("an address with a zone comes back as %v, %v; want it without", a, err)
	}
	x, err := ParseAsconf(oneChunk(t, AppendAsconf(nil, Asconf{Seq: 3})))
	if err != nil || !x.Addr.IsUnspecified() || x.Seq != 3 || len(x.Params) != 0 {
		t.Errorf("ASCONF without an address: %+v, %v; want 0.0.0.0", x, err)
	}
}

func TestListViews(t *testing.T) {
	s := u16s(3, 0xffff, 7)
	if !s.Contains(7) || s.Contains(8) || s.At(1) != 0xffff {
		t.Errorf("Uint16s: contains 7 %v, 8 %v, At(1) %d", s.Contains(7), s.Contains(8), s.At(1))
	}
	if got, want := s.AppendTo([]uint16{1}), []uint16{1, 3, 0xffff, 7}; !reflect.DeepEqual(got, want) {
		t.Errorf("Uint16s.AppendTo = %v, want %v", got, want)
	}
	c := ChunkTypes{0xc1, 0x40}
	if c.Len() != 2 || c.At(0) != ChunkAsconf || !c.Contains(ChunkIData) || c.Contains(ChunkData) {
		t.Errorf("ChunkTypes: %d, %v", c.Len(), c.At(0))
	}

	gaps := []GapBlock{{2, 3}, {9, 65535}}
	dups := []uint32{4, 1<<32 - 1}
	x, err := ParseSack(oneChunk(t, AppendSack(nil, 1, 2, gaps, dups)))
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Gaps.AppendTo(nil); !reflect.DeepEqual(got, gaps) {
		t.Errorf("gap blocks %v, want %v", got, gaps)
	}
	if got := x.Dups.AppendTo(nil); !reflect.DeepEqual(got, dups) {
		t.Errorf("duplicates %v, want %v", got, dups)
	}
	skips := []Skip{{1, 2}, {65535, 0}}
	f, err := ParseForwardTSN(oneChunk(t, AppendForwardTSN(nil, 9, skips)))
	if got := f.Skips.AppendTo(nil); err != nil || !reflect.DeepEqual(got, skips) {
		t.Errorf("skips %v, %v; want %v", got, err, skips)
	}
	iskips := []ISkip{{1, true, 2}, {1, false, 1<<32 - 1}}
	i, err := ParseIForwardTSN(oneChunk(t, AppendIForwardTSN(nil, 9, iskips)))
	if got := i.Skips.AppendTo(nil); err != nil || !reflect.DeepEqual(got, iskips) {
		t.Errorf("skips %v, %v; want %v", got, err, iskips)
	}
}

// TestReservedBitsIgnored sets bits that RFC 9260, 8260 and 6525 say must be
// ignored on receipt.
func TestReservedBitsIgnored(t *testing.T) {
	it := NewChunks([]byte{0, 0xf3, 0, 17, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4, 9})
	it.Next()
	want := Data{TSN: 1, SID: 2, SSN: 3, PPID: 4, Begin: true, End: true, Payload: []byte{9}}
	if d, err := ParseData(it.Chunk()); err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("DATA with reserved flags: %+v, %v; want %+v", d, err, want)
	}
	it = NewChunks([]byte{64, 0xf3, 0, 21, 0, 0, 0, 1, 0, 2, 0xff, 0xff, 0, 0, 0, 3, 0, 0, 0, 4, 9})
	it.Next()
	want = Data{TSN: 1, SID: 2, MID: 3, PPID: 4, Begin: true, End: true, Payload: []byte{9}}
	if d, err := ParseIData(it.Chunk()); err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("I-DATA with reserved bits: %+v, %v; want %+v", d, err, want)
	}
	it = NewChunks([]byte{194, 0xff, 0, 16, 0, 0, 0, 1, 0, 2, 0xff, 0xfe, 0, 0, 0, 3})
	it.Next()
	if x, err := ParseIForwardTSN(it.Chunk()); err != nil || x.Skips.At(0) != (ISkip{2, false, 3}) {
		t.Errorf("I-FORWARD-TSN with reserved bits: %+v, %v", x.Skips.At(0), err)
	}
	for _, b := range [][]byte{{8, 0xff, 0, 4}, {11, 0xff, 0, 4}} {
		it = NewChunks(b)
		it.Next()
		if err := parseEmpty(it.Chunk(), ChunkType(b[0])); err != nil {
			t.Errorf("%v with flags: %v", ChunkType(b[0]), err)
		}
	}
	p, _ := oneParam([]byte{0, 17, 0, 12, 0, 0, 0, 1, 0, 2, 0xff, 0xff})
	if x, err := ParseAddOutgoing(p); err != nil || x != (AddStreams{1, 2}) {
		t.Errorf("add-outgoing with reserved bits: %+v, %v", x, err)
	}
}

// TestTrimList checks that the length of a chunk leaves out the padding of its
// last parameter only (RFC 9260, Section 3.2).
func TestTrimList(t *testing.T) {
	list := AppendParam(AppendParam(nil, ParamRandom, []byte{1}), ParamRandom, []byte{2, 3})
	if got := len(trimList(list)); got != 8+6 {
		t.Errorf("two parameters: %d bytes, want 14", got)
	}
	for name, in := range map[string][]byte{
		"empty": {}, "malformed": {0, 1, 0, 3}, "trimmed": {0, 1, 0, 5, 9}, "garbage behind": {0, 1, 0, 4, 9},
	} {
		if got := trimList(in); len(got) != len(in) {
			t.Errorf("%s: %x, want %x", name, got, in)
		}
	}
	c := oneChunk(t, AppendInit(nil, Init{Params: list}))
	if len(c.Raw) != 20+8+6 {
		t.Errorf("INIT: length %d, want 34", len(c.Raw))
	}
}
