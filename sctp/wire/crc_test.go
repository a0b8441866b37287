package wire

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func TestCRC32cAgreesWithTheStandardLibrary(t *testing.T) {
	overCRC32c(t, testCRC32c)
}

func testCRC32c(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table := crc32.MakeTable(crc32.Castagnoli)
	p := make([]byte, 70000)
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	check := func(p []byte) {
		t.Helper()
		if got, want := crc32c(p), crc32.Checksum(p, table); got != want {
			t.Fatalf("CRC32c of %d bytes = %#x, want %#x", len(p), got, want)
		}
	}
	for n := range 3000 {
		check(p[:n])
		check(p[n%64 : n%64+n])
	}
	for range 1000 {
		from := rng.IntN(len(p))
		check(p[from : from+rng.IntN(len(p)-from+1)])
	}
	clear(p)
	check(p)
}

func BenchmarkCRC32c(b *testing.B) {
	overCRC32c(b, func(b *testing.B) {
		for _, n := range []int{64, 300, 1472, 8972, 65504} {
			b.Run("size="+itoa(n), func(b *testing.B) {
				p := make([]byte, n)
				b.SetBytes(int64(n))
				for b.Loop() {
					crc32c(p)
				}
			})
		}
	})
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}
