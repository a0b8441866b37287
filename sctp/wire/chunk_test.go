package wire

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// TestUnknownTypeActions checks RFC 9260, Tables 2 and 3.
func TestUnknownTypeActions(t *testing.T) {
	for _, tt := range []struct {
		bits            uint8
		stops, reported bool
	}{
		{0b00, true, false},
		{0b01, true, true},
		{0b10, false, false},
		{0b11, false, true},
	} {
		c := ChunkType(tt.bits<<6 | 0x3e)
		if c.StopsPacket() != tt.stops || c.Reported() != tt.reported {
			t.Errorf("%v: stops %v, reported %v; want %v, %v", c, c.StopsPacket(), c.Reported(), tt.stops, tt.reported)
		}
		p := ParamType(uint16(tt.bits)<<14 | 0x3ffe)
		if p.StopsChunk() != tt.stops || p.Reported() != tt.reported {
			t.Errorf("%v: stops %v, reported %v; want %v, %v", p, p.StopsChunk(), p.Reported(), tt.stops, tt.reported)
		}
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		got  fmt.Stringer
		want string
	}{
		{ChunkIData, "I-DATA"},
		{ChunkType(0x7e), "chunk(0x7e)"},
		{ChunkType(0x10), "chunk(0x10)"},
		{ParamStateCookie, "state-cookie"},
		{ParamType(0xfffe), "param(0xfffe)"},
		{CauseStaleCookie, "stale cookie"},
		{CauseCode(99), "cause(99)"},
		{ReConfigDenied, "denied"},
		{ReConfigResult(7), "result(7)"},
	} {
		if tt.got.String() != tt.want {
			t.Errorf("String() = %q, want %q", tt.got.String(), tt.want)
		}
	}
	for r := range ReConfigResult(7) {
		if s := r.String(); s == fmt.Sprintf("result(%d)", uint32(r)) {
			t.Errorf("result %d has no name", uint32(r))
		}
	}
}

// TestWalk checks the rules of RFC 9260, Section 3.2, for lengths and padding,
// which are the same for chunks, parameters and causes.
func TestWalk(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		want []int // lengths of the elements given
		err  error
	}{
		{"empty", nil, nil, nil},
		{"one byte", []byte{1}, nil, ErrTruncated},
		{"three bytes", []byte{1, 0, 0}, nil, ErrTruncated},
		{"length 0", []byte{1, 0, 0, 0}, nil, ErrLength},
		{"length 1", []byte{1, 0, 0, 1}, nil, ErrLength},
		{"length 3", []byte{1, 0, 0, 3}, nil, ErrLength},
		{"header only", []byte{1, 0, 0, 4}, []int{4}, nil},
		{"length beyond by 1", []byte{1, 0, 0, 5}, nil, ErrTruncated},
		{"length beyond by far", []byte{1, 0, 0xff, 0xff}, nil, ErrTruncated},
		{"length beyond, into nothing", []byte{1, 0, 0, 8, 1, 2, 3}, nil, ErrTruncated},
		{"padding present", []byte{1, 0, 0, 5, 9, 0, 0, 0}, []int{5}, nil},
		{"padding absent at the end", []byte{1, 0, 0, 5, 9}, []int{5}, nil},
		{"padding cut at the end", []byte{1, 0, 0, 5, 9, 0}, []int{5}, nil},
		{"padding not zero", []byte{1, 0, 0, 5, 9, 0xff, 0xff, 0xff}, []int{5}, nil},
		{"padding counted in the length", []byte{1, 0, 0, 8, 9, 0, 0, 0}, []int{8}, nil},
		{"padding absent in the middle", []byte{1, 0, 0, 5, 9, 1, 0, 0, 4}, []int{5}, ErrTruncated},
		{"padding of four", []byte{1, 0, 0, 4, 0, 0, 0, 0}, []int{4}, ErrLength},
		{"two", []byte{1, 0, 0, 6, 9, 9, 0, 0, 2, 0, 0, 4}, []int{6, 4}, nil},
		{"two, second too short", []byte{1, 0, 0, 4, 2, 0, 0, 2}, []int{4}, ErrLength},
		{"two, second beyond", []byte{1, 0, 0, 4, 2, 0, 0, 12, 0, 0, 0, 0}, []int{4}, ErrTruncated},
		{"two, rest of a header", []byte{1, 0, 0, 4, 2, 0, 0}, []int{4}, ErrTruncated},
		{"overlapping", []byte{1, 0, 0, 8, 2, 0, 0, 8, 3, 0, 0, 4}, []int{8, 4}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check := func(what string, raws [][]byte, values [][]byte, err error) {
				t.Helper()
				if !errors.Is(err, tt.err) {
					t.Errorf("%s: err %v, want %v", what, err, tt.err)
				}
				if len(raws) != len(tt.want) {
					t.Fatalf("%s: %d elements, want %d", what, len(raws), len(tt.want))
				}
				for i, raw := range raws {
					if len(raw) != tt.want[i] || cap(raw) != tt.want[i] {
						t.Errorf("%s %d: length %d, capacity %d; want %d", what, i, len(raw), cap(raw), tt.want[i])
					}
					if !bytes.Equal(values[i], raw[4:]) {
						t.Errorf("%s %d: value %x, want %x", what, i, values[i], raw[4:])
					}
				}
			}
			var raws, values [][]byte
			chunks := NewChunks(tt.in)
			for chunks.Next() {
				c := chunks.Chunk()
				raws, values = append(raws, c.Raw), append(values, c.Value)
			}
			if chunks.Next() {
				t.Error("Next after the end is true")
			}
			check("chunk", raws, values, chunks.Err())

			raws, values = nil, nil
			params := NewParams(tt.in)
			for params.Next() {
				p := params.Param()
				raws, values = append(raws, p.Raw), append(values, p.Value)
			}
			check("param", raws, values, params.Err())

			raws, values = nil, nil
			causes := NewCauses(tt.in)
			for causes.Next() {
				c := causes.Cause()
				raws, values = append(raws, c.Raw), append(values, c.Value)
			}
			check("cause", raws, values, causes.Err())
		})
	}
}

func TestWalkFields(t *testing.T) {
	b := []byte{0xc1, 0x82, 0, 5, 7, 0, 0, 0, 1, 2, 0, 4}
	chunks := NewChunks(b)
	chunks.Next()
	if c := chunks.Chunk(); c.Type != ChunkAsconf || c.Flags != 0x82 {
		t.Errorf("chunk type %v, flags %#x; want ASCONF, 0x82", c.Type, c.Flags)
	}
	if !bytes.Equal(chunks.Rest(), b[8:]) {
		t.Errorf("rest %x, want %x", chunks.Rest(), b[8:])
	}
	params := NewParams(b)
	params.Next()
	if p := params.Param(); p.Type != 0xc182 {
		t.Errorf("param type %v, want 0xc182", p.Type)
	}
	if !bytes.Equal(params.Rest(), b[8:]) {
		t.Errorf("rest %x, want %x", params.Rest(), b[8:])
	}
	causes := NewCauses(b)
	causes.Next()
	if c := causes.Cause(); c.Code != 0xc182 {
		t.Errorf("cause code %v, want 0xc182", c.Code)
	}
	if p, ok := FindParam(b, 0x0102); !ok || len(p.Raw) != 4 {
		t.Errorf("FindParam = %+v, %v; want the second", p, ok)
	}
	if _, ok := FindParam(b, 0x0103); ok {
		t.Error("FindParam finds what is not there")
	}
	if _, ok := FindParam([]byte{0, 1, 0, 3, 0, 1, 0, 4}, 1); ok {
		t.Error("FindParam goes past a malformed parameter")
	}
}

func TestBuildInPlace(t *testing.T) {
	b := []byte("??")
	at := len(b)
	b = BeginChunk(b, ChunkReConfig, 5)
	pat := len(b)
	b = BeginParam(b, ParamPad)
	b = append(b, 1)
	b = EndParam(b, pat)
	b = EndChunk(b, at)
	want := []byte{0x82, 5, 0, 12, 0x80, 5, 0, 5, 1, 0, 0, 0}
	if !bytes.Equal(b[at:], want) {
		t.Errorf("built %x, want %x", b[at:], want)
	}
	d := Data{TSN: 1, PPID: 2, Begin: true, End: true, Payload: []byte("abcde")}
	for _, tt := range []struct {
		name   string
		header func([]byte, Data, int) []byte
		whole  func([]byte, Data) []byte
	}{
		{"DATA", AppendDataHeader, AppendData},
		{"I-DATA", AppendIDataHeader, AppendIData},
	} {
		b := tt.header(nil, d, len(d.Payload))
		b = append(b, d.Payload...)
		b = AppendPadding(b, len(d.Payload))
		if want := tt.whole(nil, d); !bytes.Equal(b, want) {
			t.Errorf("%s built %x, want %x", tt.name, b, want)
		}
	}
	for n := range 9 {
		if got := len(AppendPadding(nil, n)); n+got != Padded(n) || got > 3 {
			t.Errorf("AppendPadding(%d) adds %d bytes", n, got)
		}
	}
}
