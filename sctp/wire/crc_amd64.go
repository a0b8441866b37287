package wire

import (
	"math/bits"

	"github.com/klauspost/crc32"
	"golang.org/x/sys/cpu"
)

//go:noescape
func fold(p *byte, n int, init uint32, k *[16]uint64) uint32

var (
	hasFold = cpu.X86.HasSSE42 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ
	foldKey = foldConstants()
)

// minFold is the length from which folding pays.
const minFold = 256

// crc32c returns the CRC32c of p. Where the processor multiplies 64 bytes of
// polynomials at once, long packets take a third of the time.
func crc32c(p []byte) uint32 { return UpdateChecksum(0, p) }

// UpdateChecksum returns the CRC32c of what c is that of, followed by p. Begin
// with 0.
func UpdateChecksum(c uint32, p []byte) uint32 {
	if !hasFold || len(p) < minFold {
		return crc32.Update(c, castagnoli, p)
	}
	return ^fold(&p[0], len(p), ^c, &foldKey)
}

// foldConstants returns what moves 16 bytes forward by 256 bytes, and by 64,
// each for the four lanes of a register. A polynomial a of 64 bits whose last
// bit stands for x^0 of the low half, followed by d bits, is a·x^(d+32)/x^32 of
// the CRC register; in the reflected order of CRC32c the product of two numbers
// comes out one bit to the right, hence the shift.
func foldConstants() (k [16]uint64) {
	for i, d := range [2]int{2048, 512} {
		for lane := range 4 {
			k[8*i+2*lane] = uint64(bits.Reverse32(xPower(d+32))) << 1
			k[8*i+2*lane+1] = uint64(bits.Reverse32(xPower(d-32))) << 1
		}
	}
	return k
}

// xPower returns x^n modulo the polynomial of CRC32c, the coefficient of x^31 in
// the highest bit.
func xPower(n int) uint32 {
	r := uint32(1)
	for range n {
		carry := r >> 31
		r <<= 1
		if carry != 0 {
			r ^= 0x1EDC6F41
		}
	}
	return r
}
