package datatype

import (
	"encoding/binary"
	"math/bits"
)

// Sum stores the number in a plus that in b to dst, which may be either.
func (f *FloatFormat) Sum(dst, a, b []byte) {
	if !f.extended || !sumNormal(dst, a, b) {
		f.Store(dst, f.Load(a).Add(f.Load(b)))
	}
}

// Product stores the number in a times that in b to dst, which may be either.
func (f *FloatFormat) Product(dst, a, b []byte) {
	if !f.extended || !productNormal(dst, a, b) {
		f.Store(dst, f.Load(a).Mul(f.Load(b)))
	}
}

// A normal is a normal long double of x86-64.
type normal struct {
	sign uint16 // bit 15
	exp  int    // biased
	m    uint64 // significand
}

func loadNormal(b []byte) (x normal, ok bool) {
	se := binary.LittleEndian.Uint16(b[8:])
	x = normal{se & 0x8000, int(se & 0x7fff), binary.LittleEndian.Uint64(b)}
	return x, x.exp > 0 && x.exp < 0x7fff && x.m>>63 != 0
}

// storeNormal rounds the significand hi:lo and stores the number, if it is normal.
func storeNormal(b []byte, sign uint16, exp int, hi, lo uint64) bool {
	const half = 1 << 63
	if lo > half || lo == half && hi&1 != 0 {
		if hi++; hi == 0 {
			hi, exp = 1<<63, exp+1
		}
	}
	if exp <= 0 || exp >= 0x7fff {
		return false
	}
	binary.LittleEndian.PutUint64(b, hi)
	binary.LittleEndian.PutUint64(b[8:], uint64(sign)|uint64(exp))
	return true
}

// sumNormal is Sum of normal numbers with a normal sum. It reports false for others.
func sumNormal(dst, a, b []byte) bool {
	x, ok1 := loadNormal(a)
	y, ok2 := loadNormal(b)
	if !ok1 || !ok2 {
		return false
	}
	if x.exp < y.exp || x.exp == y.exp && x.m < y.m {
		x, y = y, x
	}
	var yh, yl uint64
	switch d := uint(x.exp - y.exp); {
	case d < 64:
		yh, yl = y.m>>d, y.m<<(64-d)
	case d < 128:
		yl = y.m >> (d - 64)
		if y.m<<(128-d) != 0 {
			yl |= 1
		}
	default:
		yl = 1
	}
	if x.sign == y.sign {
		hi, carry := bits.Add64(x.m, yh, 0)
		if carry != 0 { // the numbers overlap, and the lowest bit of yl is 0
			hi, yl = hi>>1|1<<63, hi<<63|yl>>1
			x.exp++
		}
		return storeNormal(dst, x.sign, x.exp, hi, yl)
	}
	lo, borrow := bits.Sub64(0, yl, 0)
	hi, _ := bits.Sub64(x.m, yh, borrow)
	if hi == 0 {
		if lo == 0 {
			return false
		}
		hi, lo = lo, 0
		x.exp -= 64
	}
	n := bits.LeadingZeros64(hi)
	return storeNormal(dst, x.sign, x.exp-n, hi<<n|lo>>(64-n), lo<<n)
}

// productNormal is Product of normal numbers with a normal product. It reports false for others.
func productNormal(dst, a, b []byte) bool {
	x, ok1 := loadNormal(a)
	y, ok2 := loadNormal(b)
	if !ok1 || !ok2 {
		return false
	}
	exp := x.exp + y.exp - 16383
	hi, lo := bits.Mul64(x.m, y.m)
	if hi>>63 == 0 {
		hi, lo = hi<<1|lo>>63, lo<<1
	} else {
		exp++
	}
	return storeNormal(dst, x.sign^y.sign, exp, hi, lo)
}
