package wire

import (
	"bytes"
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

// CopyChecksum copies all of it, and nothing else, and has the checksum of what it
// copied after what was before.
func TestCopyChecksum(t *testing.T) { overCRC32c(t, testCopyChecksum) }

func testCopyChecksum(t *testing.T) {
	const seed, guard = 3, 0xa5
	rng := rand.New(rand.NewPCG(seed, 0))
	table := crc32.MakeTable(crc32.Castagnoli)
	src, dst := make([]byte, 70000), make([]byte, 70200)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	check := func(from, n, to int) {
		t.Helper()
		for i := range dst[:to+n+100] {
			dst[i] = guard
		}
		c := rng.Uint32()
		p := src[from : from+n]
		if got, want := CopyChecksum(c, dst[to:to+n+1], p), crc32.Update(c, table, p); got != want {
			t.Fatalf("seed %d: CRC32c of %d bytes = %#x, want %#x", seed, n, got, want)
		}
		if !bytes.Equal(dst[to:to+n], p) {
			t.Fatalf("seed %d: %d bytes from %d to %d are not the same", seed, n, from, to)
		}
		for i, x := range dst[:to+n+100] {
			if (i < to || i >= to+n) && x != guard {
				t.Fatalf("seed %d: of %d bytes from %d to %d one is at %d", seed, n, from, to, i-to)
			}
		}
	}
	for n := range 1600 {
		check(n%61, n, n%67)
	}
	for range 300 {
		from := rng.IntN(len(src))
		check(from, rng.IntN(len(src)-from+1), rng.IntN(100))
	}
	if c := CopyChecksum(1, nil, nil); c != 1 {
		t.Errorf("of nothing: %#x", c)
	}
}

func BenchmarkCopyChecksum(b *testing.B) {
	overCRC32c(b, func(b *testing.B) {
		for _, n := range []int{1424, 65504} {
			src, dst := make([]byte, n), make([]byte, n)
			b.Run("how=once/size="+itoa(n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					CopyChecksum(0, dst, src)
				}
			})
			b.Run("how=twice/size="+itoa(n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					copy(dst, src)
					UpdateChecksum(0, dst)
				}
			})
		}
	})
}

func BenchmarkCRC32c(b *testing.B) {
	overCRC32c(b, func(b *testing.B) {
		for _, n := range []int{32, 64, 112, 128, 300, 1472, 8972, 65504} {
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
