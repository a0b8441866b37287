package ddpmpa

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// golden returns the segment inside the FPDUs of RFC 5044, Figures 5 and 6.
func golden(msn uint32) []byte {
	return append(ddp.AppendHeader(nil, &ddp.Header{Last: true, Ctrl: 0x43, MSN: msn}), make([]byte, 24)...)
}

func TestFPDUGolden(t *testing.T) {
	fr := NewFramer(true, true)
	got := fr.Append(nil, golden(1), nil)
	want := append(append([]byte{0, 0, 0, 0, 0, 0x2a}, golden(1)...), 0x52, 0x23, 0x99, 0x83)
	if !bytes.Equal(got, want) {
		t.Errorf("Figure 5: % x, want % x", got, want)
	}
	// Figure 6 starts at 0x1ec: the marker before and an FPDU of 488 octets.
	fr = NewFramer(true, true)
	first := fr.Append(nil, make([]byte, 0x1ec-4-6), nil)
	if len(first) != 0x1ec {
		t.Fatalf("the first FPDU has %#x octets", len(first))
	}
	got = fr.Append(nil, golden(2)[:18], golden(2)[18:])
	want = append([]byte{0, 0x2a}, golden(2)[:18]...)
	want = append(append(want, 0, 0, 0, 0x14), golden(2)[18:]...)
	want = append(want, 0x84, 0x92, 0x58, 0x98)
	if !bytes.Equal(got, want) {
		t.Errorf("Figure 6: % x, want % x", got, want)
	}
	d := NewDeframer(true, true)
	b := append(first, got...)
	_, n, err := d.Next(b)
	seg, m, err2 := d.Next(b[n:])
	if err != nil || err2 != nil || n+m != len(b) || !bytes.Equal(seg, golden(2)) {
		t.Errorf("deframed %d and %d octets, % x, %v, %v", n, m, seg, err, err2)
	}
}

func TestMULPDUFormula(t *testing.T) {
	// RFC 5044, Section 4.5.
	for _, tt := range []struct {
		emss         int
		plain, marks int
	}{{1460, 1454, 1442}, {1459, 1450, 1438}, {8960, 8954, 8882}, {100, 128, 128}, {0, 128, 128}, {64776, 64768, 64262}, {65483, 64768, 64768}, {1 << 20, 64768, 64768}} {
		if p, m := MULPDU(tt.emss, false), MULPDU(tt.emss, true); p != tt.plain || m != tt.marks {
			t.Errorf("EMSS %d: %d and %d, want %d and %d", tt.emss, p, m, tt.plain, tt.marks)
		}
	}
	f := framing{markers: true}
	worst := 0
	for f.pos = 0; f.pos < MarkerInterval; f.pos += 4 {
		n, _ := f.size(MaxULPDU)
		worst = max(worst, n)
	}
	if worst > MaxFPDU {
		t.Errorf("an FPDU can have %d octets, over MaxFPDU", worst)
	}
}

// TestFramingRandomly frames random ULPDUs and has them deframed from pieces of
// random sizes.
func TestFramingRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 200 {
		markers, crc := i&1 != 0, i&2 != 0
		fr, d := NewFramer(markers, crc), NewDeframer(markers, crc)
		var stream []byte
		var want [][]byte
		for range 1 + rng.IntN(30) {
			n := rng.IntN(1200)
			if rng.IntN(20) == 0 {
				n = rng.IntN(MaxULPDU + 1)
			}
			u := make([]byte, n)
			for k := range u {
				u[k] = byte(rng.Uint32())
			}
			cut := rng.IntN(n + 1)
			stream = fr.Append(stream, u[:cut], u[cut:])
			want = append(want, u)
		}
		if markers {
			for at := 0; at+4 <= len(stream); at += MarkerInterval {
				if stream[at] != 0 || stream[at+1] != 0 || stream[at+3]&3 != 0 {
					t.Fatalf("marker at %d is % x", at, stream[at:at+4])
				}
			}
		}
		r, w, k := 0, 0, 0
		for k < len(want) {
			u, n, err := d.Next(stream[r:w])
			if err != nil {
				t.Fatalf("markers %v, CRC %v, ULPDU %d: %v", markers, crc, k, err)
			}
			if n == 0 {
				if w == len(stream) {
					t.Fatal("the last FPDU is not complete")
				}
				w = min(len(stream), w+1+rng.IntN(3000))
				continue
			}
			if !bytes.Equal(u, want[k]) {
				t.Fatalf("markers %v, ULPDU %d of %d octets differs", markers, k, len(want[k]))
			}
			r += n
			k++
		}
		if r != len(stream) {
			t.Fatalf("%d octets left", len(stream)-r)
		}
	}
}

func TestInvalidFPDUs(t *testing.T) {
	// RFC 5044, Section 8, codes 2 and 3.
	for _, markers := range []bool{false, true} {
		good := NewFramer(markers, true).Append(nil, bytes.Repeat([]byte("data"), 300), nil)
		for i := range good {
			b := bytes.Clone(good)
			b[i] ^= 0x10
			d := NewDeframer(markers, true)
			u, n, err := d.Next(append(b, make([]byte, MaxFPDU)...))
			if u != nil || n != 0 || err != FaultCRC {
				t.Fatalf("markers %v, octet %d flipped: %v", markers, i, err)
			}
			if _, _, err := d.Next(good); err != FaultCRC {
				t.Fatalf("after the error: %v", err)
			}
		}
	}
	good := NewFramer(true, false).Append(nil, bytes.Repeat([]byte("data"), 300), nil)
	for _, at := range []int{0, 512, 1024} {
		for off, want := range map[int]error{0: nil, 1: nil, 2: FaultMarker, 3: FaultMarker} {
			b := bytes.Clone(good)
			b[at+off] ^= 0x04
			if _, _, err := NewDeframer(true, false).Next(b); !errors.Is(err, want) {
				t.Errorf("marker at %d, octet %d: %v, want %v", at, off, err, want)
			}
		}
		b := bytes.Clone(good)
		b[at+3] |= 3 // reserved
		if _, _, err := NewDeframer(true, false).Next(b); err != nil {
			t.Errorf("marker at %d with reserved bits: %v", at, err)
		}
	}
	// Without CRCs the field "MUST NOT be checked".
	b := NewFramer(false, false).Append(nil, []byte("data"), nil)
	b[len(b)-1] = 99
	if u, _, err := NewDeframer(false, false).Next(b); err != nil || string(u) != "data" {
		t.Errorf("CRC field not in use: %q, %v", u, err)
	}
}

func TestFramingDoesNotAllocate(t *testing.T) {
	for _, markers := range []bool{false, true} {
		fr, d := NewFramer(markers, true), NewDeframer(markers, true)
		u := make([]byte, 1400)
		var b []byte
		n := testing.AllocsPerRun(100, func() {
			b = fr.Append(b[:0], u[:14], u[14:])
			if _, n, err := d.Next(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
		})
		if n > 0 {
			t.Errorf("markers %v: %v allocations", markers, n)
		}
	}
}

func BenchmarkFraming(bm *testing.B) {
	fr, d := NewFramer(false, true), NewDeframer(false, true)
	u := make([]byte, 65000)
	var b []byte
	bm.SetBytes(int64(len(u)))
	bm.ReportAllocs()
	for bm.Loop() {
		b = fr.Append(b[:0], u[:14], u[14:])
		d.Next(b)
	}
}
