package wire

import (
	"bytes"
	"encoding/binary"
	stdcrc32 "hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/crc32"
)

// bitwise is CRC32c as RFC 9260, Appendix A, defines it, bit by bit: polynomial
// 0x1EDC6F41, bits reflected, start and end inverted.
func bitwise(b []byte) uint32 {
	crc := ^uint32(0)
	for _, x := range b {
		crc ^= uint32(x)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ 0x82f63b78 // 0x1EDC6F41 reflected
			} else {
				crc >>= 1
			}
		}
	}
	return ^crc
}

// TestCRC32cVectors checks the polynomial against the vectors of RFC 3720,
// Appendix B.4, and the usual check value.
func TestCRC32cVectors(t *testing.T) {
	zero, ones, up := make([]byte, 32), make([]byte, 32), make([]byte, 32)
	for i := range up {
		ones[i], up[i] = 0xff, byte(i)
	}
	for _, tt := range []struct {
		name string
		in   []byte
		want uint32
	}{
		{"check", []byte("123456789"), 0xe3069283},
		{"zeros", zero, 0x8a9136aa},
		{"ones", ones, 0x62a8ab43},
		{"increasing", up, 0x46dd794e},
	} {
		if got := bitwise(tt.in); got != tt.want {
			t.Errorf("%s: bit by bit %#08x, want %#08x", tt.name, got, tt.want)
		}
		if got := crc32.Update(0, castagnoli, tt.in); got != tt.want {
			t.Errorf("%s: accelerated %#08x, want %#08x", tt.name, got, tt.want)
		}
	}
}

// TestChecksumAgrees compares Checksum with the standard library and with the
// definition, at every length that an accelerated routine may treat apart.
func TestChecksumAgrees(t *testing.T) {
	const seed = 9260
	rnd := rand.New(rand.NewPCG(seed, 0))
	table := stdcrc32.MakeTable(stdcrc32.Castagnoli)
	buf := make([]byte, 70000)
	for i := range buf {
		buf[i] = byte(rnd.Uint32())
	}
	lengths := []int{1472, 4096, 9000, 16384, 65507, 65535}
	for n := HeaderLen; n < 1100; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		pkt := buf[rnd.IntN(64):][:n]
		plain := append([]byte(nil), pkt...)
		clear(plain[8:12])
		want := stdcrc32.Checksum(plain, table)
		if got := Checksum(pkt); got != want {
			t.Fatalf("length %d, seed %d: Checksum %#08x, hash/crc32 %#08x", n, seed, got, want)
		}
		if n < 2000 {
			if got := bitwise(plain); got != want {
				t.Fatalf("length %d, seed %d: bit by bit %#08x, hash/crc32 %#08x", n, seed, got, want)
			}
		}
	}
}

// TestSetChecksum checks that the checksum lands least significant byte first,
// and that any flipped bit is found.
func TestSetChecksum(t *testing.T) {
	pkt := AppendHeader(nil, Header{SrcPort: 5001, DstPort: 5002, VTag: 0x12345678, Checksum: 0xffffffff})
	pkt = AppendCookieAck(pkt)
	if VerifyChecksum(pkt) {
		t.Fatal("a wrong checksum passes")
	}
	SetChecksum(pkt)
	plain := append([]byte(nil), pkt...)
	clear(plain[8:12])
	if got, want := binary.LittleEndian.Uint32(pkt[8:]), bitwise(plain); got != want {
		t.Errorf("checksum in the packet %#08x, want %#08x", got, want)
	}
	if h, err := ParseHeader(pkt); err != nil || h.Checksum != Checksum(pkt) {
		t.Errorf("Header.Checksum = %#08x, %v; want %#08x", h.Checksum, err, Checksum(pkt))
	}
	if !VerifyChecksum(pkt) {
		t.Error("the checksum just set does not pass")
	}
	for bit := range 8 * len(pkt) {
		pkt[bit/8] ^= 1 << (bit % 8)
		if VerifyChecksum(pkt) {
			t.Errorf("bit %d flipped: the checksum still passes", bit)
		}
		pkt[bit/8] ^= 1 << (bit % 8)
	}
}

func TestChecksumOfShortPacket(t *testing.T) {
	for n := range HeaderLen {
		pkt := make([]byte, n)
		SetChecksum(pkt)
		if VerifyChecksum(pkt) {
			t.Errorf("%d bytes: the checksum of less than a header passes", n)
		}
		if got := Checksum(pkt); got != 0 {
			t.Errorf("%d bytes: Checksum %#x, want 0", n, got)
		}
	}
}

func TestVerifyInPlaceAgrees(t *testing.T) {
	for n := range 2000 {
		pkt := bytes.Repeat([]byte{byte(n), byte(n >> 3), 7}, n/3+1)[:n]
		if n >= HeaderLen {
			SetChecksum(pkt)
		}
		was := bytes.Clone(pkt)
		if got, want := VerifyInPlace(pkt), VerifyChecksum(pkt); got != want || got != (n >= HeaderLen) {
			t.Fatalf("%d bytes: VerifyInPlace = %v, VerifyChecksum = %v", n, got, want)
		}
		if !bytes.Equal(pkt, was) {
			t.Fatalf("%d bytes: packet changed", n)
		}
		if n > HeaderLen {
			pkt[n-1] ^= 1
			if VerifyInPlace(pkt) {
				t.Fatalf("%d bytes: a wrong checksum passed", n)
			}
		}
	}
}
