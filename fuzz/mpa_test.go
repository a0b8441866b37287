package fuzz

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/ddp/ddpmpa"
)

// FuzzMPADeframe feeds a stream to two deframers, whole and in pieces, which
// must say the same; what they accept must frame to the same octets but for
// padding, reserved bits and, without CRCs, the CRC field.
func FuzzMPADeframe(f *testing.F) {
	for _, markers := range []bool{false, true} {
		fr := ddpmpa.NewFramer(markers, true)
		b := fr.Append(nil, []byte("segment"), nil)
		b = fr.Append(b, make([]byte, 700), nil)
		f.Add(b, markers, true, uint16(100))
		f.Add(b, markers, false, uint16(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, markers, crc bool, step uint16) {
		whole, pieces := ddpmpa.NewDeframer(markers, crc), ddpmpa.NewDeframer(markers, crc)
		again := ddpmpa.NewFramer(markers, crc)
		r, end := 0, 0
		for {
			u, n, err := whole.Next(b[r:])
			var pu []byte
			var pn int
			var perr error
			for {
				pu, pn, perr = pieces.Next(b[r:end])
				if pn > 0 || perr != nil || end == len(b) {
					break
				}
				end = min(len(b), end+1+int(step))
			}
			if n != pn || err != perr || !bytes.Equal(u, pu) {
				t.Fatalf("whole: %d octets, %v; in pieces: %d, %v", n, err, pn, perr)
			}
			if err != nil || n == 0 {
				if err == nil && len(b)-r >= ddpmpa.MaxFPDU {
					t.Fatalf("%d octets hold no FPDU", len(b)-r)
				}
				return
			}
			if n > ddpmpa.MaxFPDU {
				t.Fatalf("FPDU of %d octets", n)
			}
			if w := again.Append(nil, u, nil); len(w) != n {
				t.Fatalf("an FPDU of %d octets has %d", n, len(w))
			}
			r += n
		}
	})
}

// FuzzMPAFrame checks that startup frames come out as they went in, reserved
// bits aside.
func FuzzMPAFrame(f *testing.F) {
	f.Add(ddpmpa.AppendFrame(nil, &ddpmpa.Frame{CRC: true, Revision: 1, Private: []byte("x")}), false)
	f.Add(ddpmpa.AppendFrame(nil, &ddpmpa.Frame{Reply: true, Revision: 2, IsEnhanced: true, Markers: true}), true)
	f.Fuzz(func(t *testing.T, b []byte, reply bool) {
		fr, n, ok, err := ddpmpa.ParseFrame(b, reply)
		switch {
		case err != nil:
			return
		case !ok:
			if n <= len(b) || n > ddpmpa.FrameHeaderLen+ddpmpa.MaxPrivate {
				t.Fatalf("wants %d octets, has %d", n, len(b))
			}
			return
		}
		w := ddpmpa.AppendFrame(nil, &fr)
		if len(w) != n || !bytes.Equal(w[17:20], b[17:20]) {
			t.Fatalf("% x became % x", b[:n], w)
		}
	})
}
