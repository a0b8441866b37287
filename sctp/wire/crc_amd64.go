package wire

import (
	"math/bits"

	"github.com/klauspost/crc32"
	"golang.org/x/sys/cpu"
)

//go:noescape
func fold(p *byte, n int, init uint32, k *[16]uint64) uint32

//go:noescape
func fold32(p *byte, n int, init uint32, k *[8]uint64) uint32

//go:noescape
func foldCopy(dst, src *byte, n int, init uint32, k *[16]uint64) uint32

//go:noescape
func foldCopy32(dst, src *byte, n int, init uint32, k *[8]uint64) uint32

//go:noescape
func words(p *byte, n int, init uint32) uint32

//go:noescape
func vpclmulqdq() bool

var (
	hasWords  = cpu.X86.HasSSE42
	hasFold   = cpu.X86.HasSSE42 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ
	hasFold32 = cpu.X86.HasSSE42 && cpu.X86.HasAVX2 && vpclmulqdq()
	foldKey   = [16]uint64(foldConstants(4, 256, 64))
	foldKey32 = [8]uint64(foldConstants(2, 128, 32))
)

// The lengths from which folding pays, and up to which the CRC instruction, with eight
// bytes at a time, is as fast as several of them in parallel.
const (
	minFold   = 256
	minFold32 = 128
	maxWords  = 128
)

// crc32c returns the CRC32c of p. Where the processor multiplies 64 bytes of
// polynomials at once, long packets take a third of the time; with 32, 0.55 of it.
func crc32c(p []byte) uint32 { return UpdateChecksum(0, p) }

// UpdateChecksum returns the CRC32c of what c is that of, followed by p. Begin
// with 0.
func UpdateChecksum(c uint32, p []byte) uint32 {
	switch {
	case hasFold && len(p) >= minFold:
		return ^fold(&p[0], len(p), ^c, &foldKey)
	case hasFold32 && len(p) >= minFold32:
		return ^fold32(&p[0], len(p), ^c, &foldKey32)
	case hasWords && len(p) <= maxWords && len(p) > 0:
		return ^words(&p[0], len(p), ^c)
	}
	return crc32.Update(c, castagnoli, p)
}

// CopyChecksum copies src to dst, which is no shorter and does not overlap it, and
// returns the CRC32c of what c is that of, followed by src. It reads src once, where
// the processor can.
func CopyChecksum(c uint32, dst, src []byte) uint32 {
	n := len(src)
	dst = dst[:n]
	switch {
	case hasFold && n >= minFold:
		copy(dst[n&^63:], src[n&^63:])
		return ^foldCopy(&dst[0], &src[0], n, ^c, &foldKey)
	case hasFold32 && n >= minFold32:
		copy(dst[n&^31:], src[n&^31:])
		return ^foldCopy32(&dst[0], &src[0], n, ^c, &foldKey32)
	}
	copy(dst, src)
	return UpdateChecksum(c, dst)
}

// foldConstants returns what moves 16 bytes forward by each of the given numbers of
// bytes, for every lane of a register. A polynomial a of 64 bits whose last
// bit stands for x^0 of the low half, followed by d bits, is a·x^(d+32)/x^32 of
// the CRC register; in the reflected order of CRC32c the product of two numbers
// comes out one bit to the right, hence the shift.
func foldConstants(lanes int, by ...int) (k []uint64) {
	for _, bytes := range by {
		d := 8 * bytes
		for range lanes {
			k = append(k, uint64(bits.Reverse32(xPower(d+32)))<<1, uint64(bits.Reverse32(xPower(d-32)))<<1)
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
