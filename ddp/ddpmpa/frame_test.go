package ddpmpa

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
)

func TestFrameGolden(t *testing.T) {
	// RFC 5044, Figure 8; RFC 6581, Section 6.
	req := []byte{0x4D, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6D, 0x65}
	rep := []byte{0x4D, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6D, 0x65}
	e := ddp.Enhanced{PeerToPeer: true, RTRWrite: true, IRD: 5, ORD: 6}
	for _, tt := range []struct {
		name string
		f    Frame
		wire []byte
	}{
		{"request", Frame{CRC: true, Revision: 1, Private: []byte{}}, append(bytes.Clone(req), 0x40, 1, 0, 0)},
		{"request with markers", Frame{Markers: true, Revision: 1, Private: []byte("ab")}, append(bytes.Clone(req), 0x80, 1, 0, 2, 'a', 'b')},
		{"rejecting reply", Frame{Reply: true, Rejected: true, CRC: true, Revision: 1, Private: []byte{7}}, append(bytes.Clone(rep), 0x60, 1, 0, 1, 7)},
		{"enhanced request", Frame{CRC: true, Revision: 2, IsEnhanced: true, Enhanced: e, Private: []byte("x")},
			append(bytes.Clone(req), 0x50, 2, 0, 5, 0x80, 5, 0x80, 6, 'x')},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := AppendFrame(nil, &tt.f)
			if !bytes.Equal(got, tt.wire) {
				t.Errorf("encoded % x, want % x", got, tt.wire)
			}
			for n := range got {
				if _, need, ok, err := ParseFrame(got[:n], tt.f.Reply); ok || err != nil || need <= n || need > len(got) {
					t.Errorf("of %d octets: %d more, %v, %v", n, need, ok, err)
				}
			}
			f, n, ok, err := ParseFrame(append(got, 1, 2, 3), tt.f.Reply)
			if !ok || err != nil || n != len(tt.wire) || !bytes.Equal(AppendFrame(nil, &f), tt.wire) || f.Enhanced != tt.f.Enhanced {
				t.Errorf("decoded %+v, %d, %v, %v", f, n, ok, err)
			}
			// Section 7.1.2, rule 8.
			if _, _, _, err := ParseFrame(got, !tt.f.Reply); !errors.Is(err, ErrSameMode) {
				t.Errorf("in the other mode: %v", err)
			}
		})
	}
}

func TestMalformedFrames(t *testing.T) {
	good := AppendFrame(nil, &Frame{CRC: true, Revision: 1})
	with := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want error
	}{
		{"key", with(3, 'x'), ErrFrame},
		{"first octet of something else", []byte("GET /"), ErrFrame},
		{"revision 0", with(17, 0), ErrRevision},
		{"revision 3", with(17, 3), ErrRevision},
		{"513 octets of private data", append(with(18, 2)[:19], 1), ErrFrame},
		{"enhanced without the data", AppendFrame(nil, &Frame{Revision: 2})[:16:16], nil},
	} {
		if tt.want == nil {
			tt.b, tt.want = append(tt.b, bitEnhanced, 2, 0, 3, 1, 2, 3), ErrFrame
		}
		_, _, ok, err := ParseFrame(tt.b, false)
		if ok || !errors.Is(err, tt.want) || !errors.Is(err, FaultFrame) {
			t.Errorf("%s: %v, %v", tt.name, ok, err)
		}
	}
	// Reserved bits are not checked, and S is one in revision 1.
	if f, _, ok, err := ParseFrame(with(16, 0x5F), false); !ok || err != nil || f.IsEnhanced || !f.CRC {
		t.Errorf("reserved bits: %+v, %v, %v", f, ok, err)
	}
}
