package ddp

import (
	"bytes"
	"testing"
)

func TestHeaderGolden(t *testing.T) {
	tests := []struct {
		name string
		h    Header
		wire []byte
	}{
		// RFC 5041, Figure 4: T, L, DV, RsvdULP, STag, TO.
		{"tagged last", Header{Tagged: true, Last: true, Ctrl: 0x40, STag: 0x01020304, TO: 0x05060708090A0B0C},
			[]byte{0xC1, 0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"tagged", Header{Tagged: true, Ctrl: 0x42, STag: 0xFFFFFFFF, TO: 1},
			[]byte{0x81, 0x42, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1}},
		// Figure 5: T, L, DV, RsvdULP[0:7], RsvdULP[8:39], QN, MSN, MO. The
		// second is the header inside the FPDU of RFC 5044, Figure 5.
		{"untagged", Header{Ctrl: 0x44, Word: 0x11223344, QN: 1, MSN: 2, MO: 3},
			[]byte{0x01, 0x44, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}},
		{"untagged last", Header{Last: true, Ctrl: 0x43, MSN: 1},
			[]byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := AppendHeader([]byte{9}, &tt.h)
			if !bytes.Equal(got[1:], tt.wire) || tt.h.Len() != len(tt.wire) {
				t.Errorf("encoded % x, want % x", got[1:], tt.wire)
			}
			h, p, f := ParseHeader(append(bytes.Clone(tt.wire), 0xAA))
			if h != tt.h || !bytes.Equal(p, []byte{0xAA}) || f != 0 {
				t.Errorf("decoded %+v, payload % x, fault %v", h, p, f)
			}
			// Section 4.1: reserved bits are "not checked on receive".
			w := bytes.Clone(tt.wire)
			w[0] |= 0x3C
			if h, _, f := ParseHeader(w); h != tt.h || f != 0 {
				t.Errorf("with reserved bits: %+v, fault %v", h, f)
			}
			for n := range len(tt.wire) {
				if _, _, f := ParseHeader(tt.wire[:n]); f != FaultLocal {
					t.Errorf("%d octets: fault %v", n, f)
				}
			}
			for _, v := range []byte{0, 2, 3} {
				w := bytes.Clone(tt.wire)
				w[0] = w[0]&^3 | v
				want := FaultUntaggedVersion
				if tt.h.Tagged {
					want = FaultTaggedVersion
				}
				if h, _, f := ParseHeader(w); f != want || h != tt.h {
					t.Errorf("version %d: fault %v, want %v", v, f, want)
				}
			}
		})
	}
}

func TestFaultNumbers(t *testing.T) {
	// RFC 6580, Section 3.2.
	for f, want := range map[Fault][3]uint8{
		FaultLocal: {1, 0, 0}, FaultSTag: {1, 1, 0}, FaultBounds: {1, 1, 1}, FaultNotAssociated: {1, 1, 2},
		FaultWrap: {1, 1, 3}, FaultTaggedVersion: {1, 1, 4}, FaultQN: {1, 2, 1}, FaultNoBuffer: {1, 2, 2},
		FaultMSN: {1, 2, 3}, FaultMO: {1, 2, 4}, FaultTooLong: {1, 2, 5}, FaultUntaggedVersion: {1, 2, 6},
	} {
		if got := [3]uint8{f.Layer(), f.Type(), f.Code()}; got != want || NewFault(want[0], want[1], want[2]) != f {
			t.Errorf("%v = %v, want %v", f, got, want)
		}
		if _, ok := faultNames[f]; !ok {
			t.Errorf("%v has no name", f)
		}
	}
	if f := NewFault(0, 0, 0); f == 0 || f.Layer() != 0 || f.Type() != 0 {
		t.Errorf("RDMAP local catastrophic error = %#x", uint16(f))
	}
}
