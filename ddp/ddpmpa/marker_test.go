package ddpmpa

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestMarkersPointToTheirFPDU counts where markers must be and what they must
// hold from the sizes of FPDUs alone: RFC 5044, Section 4.3. It also counts what
// a CRC covers (Section 4.4).
func TestMarkersPointToTheirFPDU(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	between, within, second := 0, 0, 0
	for range 100 {
		fr := NewFramer(true, true)
		var stream []byte
		for range 40 {
			n := rng.IntN(700)
			switch rng.IntN(8) {
			case 0:
				n = rng.IntN(5000)
			case 1: // up to the next marker, if it fits
				n = max(0, MarkerInterval-len(stream)%MarkerInterval-lengthLen-crcLen)
			}
			start := len(stream)
			u := bytes.Repeat([]byte{0xEE}, n)
			stream = fr.Append(stream, u[:n/2], u[n/2:])
			if sum := crc32.Checksum(stream[start:len(stream)-crcLen], castagnoli); binary.LittleEndian.Uint32(stream[len(stream)-crcLen:]) != sum {
				t.Fatalf("the CRC of octets %d to %d is not that of all of them", start, len(stream)-crcLen)
			}
			length := start // of the ULPDU_Length field
			if start%MarkerInterval == 0 {
				length += markerLen
				between++
			}
			if got := int(binary.BigEndian.Uint16(stream[length:])); got != n {
				t.Fatalf("length field at %d is %d, want %d", length, got, n)
			}
			var bare []byte
			inside := 0
			for at := length; at < len(stream)-crcLen; at++ {
				if at%MarkerInterval != 0 {
					bare = append(bare, stream[at])
					continue
				}
				inside++
				if got := binary.BigEndian.Uint32(stream[at:]); got != uint32(at-length) {
					t.Fatalf("marker at %d is %#x, want %#x", at, got, at-length)
				}
				at += markerLen - 1
			}
			if start%MarkerInterval == 0 && binary.BigEndian.Uint32(stream[start:]) != 0 {
				t.Fatalf("marker between FPDUs at %d is % x, want zero", start, stream[start:length])
			}
			if pad := (4 - (lengthLen+n)%4) % 4; !bytes.Equal(bare[lengthLen:], append(u, make([]byte, pad)...)) {
				t.Fatalf("FPDU at %d: % x, want %d octets of EE and %d of zero", length, bare, n, pad)
			}
			within += min(inside, 1)
			second += max(0, inside-1)
		}
	}
	if between < 20 || within < 100 || second < 100 {
		t.Errorf("%d markers between FPDUs, %d first ones within, %d further ones: too few to test anything", between, within, second)
	}
}

// TestPaddingIsIgnored: RFC 5044, Section 4.1: pad octets are "ignored by the
// receiver (except for CRC checking)".
func TestPaddingIsIgnored(t *testing.T) {
	for n := range 5 {
		want := []byte("12345")[:n]
		for _, crc := range []bool{false, true} {
			b := NewFramer(false, crc).Append(nil, want, nil)
			end := len(b) - crcLen
			for i := lengthLen + n; i < end; i++ {
				if b[i] != 0 {
					t.Errorf("%d octets: pad % x", n, b[lengthLen+n:end])
				}
				b[i] = 0xA5
			}
			if crc {
				binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
			}
			if u, k, err := NewDeframer(false, crc).Next(b); err != nil || k != len(b) || !bytes.Equal(u, want) {
				t.Errorf("CRC %v, %d octets with another pad: %q, %v", crc, n, u, err)
			}
		}
	}
}

// TestMULPDUIsOfTheConnection: RFC 5044, Section 5.1: it is calculated from what
// TCP tells of its segments, with room for the markers that the peer wants.
func TestMULPDUIsOfTheConnection(t *testing.T) {
	for _, markers := range []bool{false, true} {
		ca, _ := tcpPair(t)
		ch := newChannel(ca, &Frame{}, &Frame{Markers: markers}, false)
		if got, want := ch.MULPDU(), MULPDU(emss(ca), markers); got != want || got <= minMULPDU {
			t.Errorf("MULPDU %d, want %d of an EMSS of %d", got, want, emss(ca))
		}
		ch.Kill()
		<-ch.Done()
	}
}
