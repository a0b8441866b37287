package rdmap

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/weftstack/weft/ddp"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func TestWireGolden(t *testing.T) {
	// RFC 5040, Figures 3 and 4; RFC 7306, Figures 2 and 3.
	for op, want := range map[Opcode]uint8{Write: 0x40, ReadRequest: 0x41, ReadResponse: 0x42, Send: 0x43, SendInv: 0x44,
		SendSE: 0x45, SendSEInv: 0x46, Terminate: 0x47, Immediate: 0x48, ImmediateSE: 0x49, AtomicRequest: 0x4A, AtomicResponse: 0x4B} {
		if got := Control(op); got != want {
			t.Errorf("%v: control octet %#x, want %#x", op, got, want)
		}
		for _, c := range []uint8{want, want | 0x30, want &^ 0x40} { // reserved bits, version 0
			if o, v := ParseControl(c); o != op || v > 1 {
				t.Errorf("%#x: %v, version %d", c, o, v)
			}
		}
	}
	// RFC 5040, Figure 6.
	rr := ReadRequestHeader{SinkSTag: 0x01020304, SinkTO: 0x1112131415161718, Size: 0x21222324, SrcSTag: 0x31323334, SrcTO: 0x4142434445464748}
	wire := unhex("01020304 1112131415161718 21222324 31323334 4142434445464748")
	if got := AppendReadRequest(nil, &rr); !bytes.Equal(got, wire) {
		t.Errorf("read request % x, want % x", got, wire)
	}
	if got, ok := ParseReadRequest(wire); !ok || got != rr {
		t.Errorf("read request %+v", got)
	}
	// RFC 7306, Figure 4.
	ar := AtomicRequestHeader{Op: AtomicCmpSwap, ID: 0x01020304, STag: 0x11121314, TO: 0x2122232425262728, Data: 0x3132333435363738,
		Mask: 0x4142434445464748, Compare: 0x5152535455565758, CompareMask: 0x6162636465666768}
	wire = unhex("00000002 01020304 11121314 2122232425262728 3132333435363738 4142434445464748 5152535455565758 6162636465666768")
	if got := AppendAtomicRequest(nil, &ar); !bytes.Equal(got, wire) || len(wire) != AtomicRequestLen {
		t.Errorf("atomic request % x, want % x", got, wire)
	}
	if got, ok := ParseAtomicRequest(wire); !ok || got != ar {
		t.Errorf("atomic request %+v", got)
	}
	wire[0], wire[3] = 0xFF, 0xF2 // reserved
	if got, ok := ParseAtomicRequest(wire); !ok || got != ar {
		t.Errorf("atomic request with reserved bits %+v", got)
	}
	// Figure 6.
	wire = unhex("01020304 1112131415161718")
	if got := AppendAtomicResponse(nil, 0x01020304, 0x1112131415161718); !bytes.Equal(got, wire) {
		t.Errorf("atomic response % x, want % x", got, wire)
	}
	if id, v, ok := ParseAtomicResponse(wire); !ok || id != 0x01020304 || v != 0x1112131415161718 {
		t.Errorf("atomic response %#x %#x", id, v)
	}
}

func TestTerminateGolden(t *testing.T) {
	// RFC 5040, Figures 7 and 8: layer, type, code, M D R, reserved.
	tests := []struct {
		name string
		t    TerminateHeader
		wire string
	}{
		{"bad QN, as Linux siw should send it", TerminateHeader{Fault: ddp.FaultQN, HasLength: true, SegmentLength: 19, HasDDP: true,
			DDP: ddp.Header{Last: true, Ctrl: 0x43, QN: 7, MSN: 1}},
			"1201C000 0013 4143 00000000 00000007 00000001 00000000"},
		{"tagged", TerminateHeader{Fault: ddp.FaultBounds, HasLength: true, SegmentLength: 15, HasDDP: true,
			DDP: ddp.Header{Tagged: true, Last: true, Ctrl: 0x40, STag: 0xA1A2A3A4, TO: 5}},
			"1101C000 000F C140 A1A2A3A4 0000000000000005"},
		{"read", TerminateHeader{Fault: FaultAccess, HasLength: true, SegmentLength: 46, HasDDP: true,
			DDP: ddp.Header{Last: true, Ctrl: 0x41, QN: 1, MSN: 2}, HasRead: true, Read: ReadRequestHeader{1, 2, 3, 4, 5}},
			"0102E000 002E 4141 00000000 00000001 00000002 00000000 00000001 0000000000000002 00000003 00000004 0000000000000005"},
		{"no headers", TerminateHeader{Fault: FaultInsufficientIRD}, "20060000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wire := unhex(tt.wire)
			if got := AppendTerminate(nil, &tt.t); !bytes.Equal(got, wire) {
				t.Errorf("encoded % x, want % x", got, wire)
			}
			got, ok := ParseTerminate(wire)
			if !ok || got != tt.t {
				t.Errorf("decoded %+v", got)
			}
			reserved := bytes.Clone(wire)
			reserved[2] |= 0x18 // what the other bits tell: see TestReversedTerminate
			reserved[3] = 0xFF
			if got, ok := ParseTerminate(reserved); !ok || got != tt.t {
				t.Errorf("decoded with reserved bits %+v", got)
			}
			for n := range wire {
				if _, ok := ParseTerminate(wire[:n]); ok {
					t.Errorf("%d octets of %d accepted", n, len(wire))
				}
			}
		})
	}
}

// slowAdd is the pseudocode of RFC 7306, Section 5.1.1.
func slowAdd(original, add, mask uint64) (result uint64) {
	carry := uint64(0)
	for bit := range 64 {
		loc := uint64(1) << bit
		sum := carry + (original&loc)>>bit + (add&loc)>>bit
		carry = (sum & 2) >> 1
		if sum&1 != 0 {
			result |= loc
		}
		if mask&loc != 0 {
			carry = 0
		}
	}
	return result
}

func TestAtomicApply(t *testing.T) {
	values := []uint64{0, 1, 0xFF, 0x80, 1<<63 - 1, 1 << 63, 1<<64 - 1, 0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x8080808080808080, 0x7F7F7F7F7F7F7F7F}
	for _, old := range values {
		for _, data := range values {
			for _, mask := range values {
				h := AtomicRequestHeader{Op: AtomicFetchAdd, Data: data, Mask: mask}
				if got, want := h.Apply(old), slowAdd(old, data, mask); got != want {
					t.Fatalf("%#x + %#x, mask %#x = %#x, want %#x", old, data, mask, got, want)
				}
				for _, cmp := range values {
					// Section 5.1.2.
					h := AtomicRequestHeader{Op: AtomicCmpSwap, Data: data, Mask: mask, Compare: cmp, CompareMask: ^mask}
					want := old
					if (cmp^old)&^mask == 0 {
						want = old&^mask | data&mask
					}
					if got := h.Apply(old); got != want {
						t.Fatalf("swap %#x for %#x: %#x, want %#x", old, data, got, want)
					}
				}
			}
		}
	}
}

func TestReversedTerminate(t *testing.T) {
	// What Linux siw sends for a bad QN, and for a bad CRC.
	h := ddp.Header{Last: true, Ctrl: Control(Send), QN: 7, MSN: 1}
	b := append([]byte{0x21, 0x01, 0x03, 0x00, 0, 8}, ddp.AppendHeader(nil, &h)...)
	for _, tt := range []struct {
		name string
		b    []byte
		want TerminateHeader
	}{
		{"queue number", b, TerminateHeader{Fault: ddp.FaultQN, HasLength: true, SegmentLength: 8, HasDDP: true, DDP: h, Reversed: true}},
		{"CRC", []byte{0x02, 0x02, 0, 0}, TerminateHeader{Fault: 0x2002, Reversed: true}},
		{"CRC as it should be", []byte{0x20, 0x02, 0, 0}, TerminateHeader{Fault: 0x2002}},
		{"opcode as it should be", []byte{0x02, 0x06, 0, 0}, TerminateHeader{Fault: FaultOpcode}},
	} {
		if got, ok := ParseTerminate(tt.b); !ok || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, ok, tt.want)
		}
	}
}
