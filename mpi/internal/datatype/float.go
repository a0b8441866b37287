package datatype

import (
	"encoding/binary"
	"math/bits"
)

// A FloatFormat is a format of floating-point numbers that Go has no type for.
type FloatFormat struct {
	Size     int   // bytes in memory
	prec     uint  // bits of the significand, with the integer bit
	emax     int32 // largest exponent; the smallest of normal numbers is 1-emax
	extended bool  // x87: the integer bit is stored, 10 of 16 bytes are used
}

// The formats. Single and double precision are Go's float32 and float64.
var (
	Half     = &FloatFormat{Size: 2, prec: 11, emax: 15}                     // IEEE binary16
	Extended = &FloatFormat{Size: 16, prec: 64, emax: 16383, extended: true} // long double of x86-64
	Quad     = &FloatFormat{Size: 16, prec: 113, emax: 16383}                // IEEE binary128
)

// A Float is a floating-point number of any of the formats. The zero value is +0.
type Float struct {
	kind   floatKind
	neg    bool
	exp    int32  // of a finite number: hi:lo / 2^127 · 2^exp
	hi, lo uint64 // significand, its highest bit is 1; of a NaN its payload below that
}

type floatKind uint8

const (
	floatZero floatKind = iota
	floatFinite
	floatInf
	floatNaN
)

// invalid is the NaN of an invalid operation, as x86 makes it.
var invalid = Float{kind: floatNaN, neg: true, hi: 3 << 62}

// Load reads a number. Encodings of x87 with a wrong integer bit are not valid: NaN.
func (f *FloatFormat) Load(b []byte) Float {
	var x Float
	var biased uint32
	switch {
	case f.extended:
		x.hi = binary.LittleEndian.Uint64(b)
		se := binary.LittleEndian.Uint16(b[8:])
		x.neg, biased = se>>15 != 0, uint32(se&0x7fff)
		if biased > 0 && x.hi>>63 == 0 {
			return invalid
		}
		x.hi, x.lo = x.hi<<1, 0 // the fraction
		if biased == 0 && binary.LittleEndian.Uint64(b)>>63 != 0 {
			biased = 1 // pseudo-denormal
		}
	case f.Size == 2:
		v := binary.NativeEndian.Uint16(b)
		x.neg, biased, x.hi = v>>15 != 0, uint32(v>>10&0x1f), uint64(v)<<54
	default:
		var hi, lo uint64
		if bigEndianHost {
			hi, lo = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		} else {
			lo, hi = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		}
		x.neg, biased = hi>>63 != 0, uint32(hi>>48&0x7fff)
		x.hi, x.lo = hi<<16|lo>>48, lo<<16
	}
	// hi:lo is the fraction.
	switch {
	case biased == uint32(2*f.emax+1):
		if x.hi|x.lo == 0 {
			x.kind = floatInf
			return x
		}
		x.kind = floatNaN
	case biased == 0:
		if x.hi|x.lo == 0 {
			return x
		}
		x.kind = floatFinite // subnormal: no integer bit
		x.exp = -f.emax
		x.normalize()
		return x
	default:
		x.kind, x.exp = floatFinite, int32(biased)-f.emax
	}
	x.hi, x.lo = x.hi>>1|1<<63, x.lo>>1|x.hi<<63
	return x
}

// normalize shifts the highest bit of a significand to its place.
func (x *Float) normalize() {
	if x.hi == 0 {
		x.hi, x.lo = x.lo, 0
		x.exp -= 64
	}
	n := bits.LeadingZeros64(x.hi)
	x.hi, x.lo = x.hi<<n|x.lo>>(64-n), x.lo<<n
	x.exp -= int32(n)
}

// Store rounds x to the nearest number, ties to even, and writes it.
func (f *FloatFormat) Store(b []byte, x Float) {
	var biased uint32
	var hi, lo uint64 // the significand in the lowest bits
	most := uint32(2*f.emax + 1)
	switch x.kind {
	case floatInf:
		biased = most
	case floatNaN:
		biased = most
		hi, lo = shiftRight(x.hi|1<<62, x.lo, 128-f.prec)
	case floatFinite:
		biased, hi, lo = f.round(x)
	}
	if biased == most && x.kind != floatNaN {
		hi, lo = shiftRight(1<<63, 0, 128-f.prec)
	}
	sign := uint64(0)
	if x.neg {
		sign = 1
	}
	switch {
	case f.extended:
		binary.LittleEndian.PutUint64(b, lo)
		binary.LittleEndian.PutUint64(b[8:], sign<<15|uint64(biased))
	case f.Size == 2:
		binary.NativeEndian.PutUint16(b, uint16(sign<<15)|uint16(biased<<10)|uint16(lo&0x3ff))
	default:
		hi = hi&(1<<48-1) | uint64(biased)<<48 | sign<<63
		if bigEndianHost {
			binary.BigEndian.PutUint64(b, hi)
			binary.BigEndian.PutUint64(b[8:], lo)
		} else {
			binary.LittleEndian.PutUint64(b, lo)
			binary.LittleEndian.PutUint64(b[8:], hi)
		}
	}
}

// round returns the biased exponent and the significand of a finite number, rounded.
func (f *FloatFormat) round(x Float) (biased uint32, hi, lo uint64) {
	emin := 1 - f.emax
	drop, exp := int(128-f.prec), x.exp
	if exp < emin {
		drop += int(emin - exp)
		exp = emin
	}
	if drop > 128 { // less than half of the smallest number
		return 0, 0, 0
	}
	hi, lo = shiftRight(x.hi, x.lo, uint(drop))
	half, rest := bitAt(x.hi, x.lo, drop-1), anyBelow(x.hi, x.lo, drop-1)
	if half && (rest || lo&1 != 0) {
		var carry uint64
		lo, carry = bits.Add64(lo, 1, 0)
		hi += carry
	}
	if bitAt(hi, lo, int(f.prec)) { // rounded up to the next power of two
		hi, lo = shiftRight(hi, lo, 1)
		exp++
	}
	switch {
	case exp > f.emax:
		return uint32(2*f.emax + 1), 0, 0
	case !bitAt(hi, lo, int(f.prec)-1):
		return 0, hi, lo // subnormal
	}
	return uint32(exp + f.emax), hi, lo
}

// shiftRight returns hi:lo >> n, for n up to 128.
func shiftRight(hi, lo uint64, n uint) (uint64, uint64) {
	if n >= 64 {
		return 0, hi >> (n - 64)
	}
	return hi >> n, lo>>n | hi<<(64-n)
}

// shiftRightJam is shiftRight that sets the lowest bit if a 1 is lost.
func shiftRightJam(hi, lo uint64, n uint) (uint64, uint64) {
	n = min(n, 128)
	h, l := shiftRight(hi, lo, n)
	if anyBelow(hi, lo, int(n)) {
		l |= 1
	}
	return h, l
}

// bitAt reports whether bit i of hi:lo is 1, for i from 0 to 127.
func bitAt(hi, lo uint64, i int) bool {
	if i >= 64 {
		return hi>>(i-64)&1 != 0
	}
	return lo>>i&1 != 0
}

// anyBelow reports whether one of the lowest i bits of hi:lo is 1.
func anyBelow(hi, lo uint64, i int) bool {
	if i > 64 {
		return lo != 0 || hi<<(128-i) != 0
	}
	return lo<<(64-i) != 0
}

// nan returns the quiet NaN that an operation on x and y, of which one is a NaN, results in.
func nan(x, y Float) Float {
	if x.kind != floatNaN {
		x = y
	}
	x.hi |= 1 << 62
	return x
}

// Add returns x+y, with enough bits to be rounded correctly to any of the formats, if x and y
// have been loaded.
func (x Float) Add(y Float) Float {
	switch {
	case x.kind == floatNaN || y.kind == floatNaN:
		return nan(x, y)
	case x.kind == floatInf && y.kind == floatInf && x.neg != y.neg:
		return invalid
	case x.kind == floatInf || y.kind == floatZero && x.kind != floatZero:
		return x
	case x.kind == floatZero && y.kind == floatZero:
		x.neg = x.neg && y.neg
		return x
	case y.kind == floatInf || x.kind == floatZero:
		return y
	}
	if x.magnitudeLess(y) {
		x, y = y, x
	}
	// One bit of room for the carry: the lowest bits of loaded numbers are 0.
	xh, xl := shiftRight(x.hi, x.lo, 1)
	yh, yl := shiftRightJam(y.hi, y.lo, uint(x.exp-y.exp)+1)
	z := Float{kind: floatFinite, neg: x.neg, exp: x.exp + 1}
	var c uint64
	if x.neg == y.neg {
		z.lo, c = bits.Add64(xl, yl, 0)
		z.hi, _ = bits.Add64(xh, yh, c)
	} else {
		z.lo, c = bits.Sub64(xl, yl, 0)
		z.hi, _ = bits.Sub64(xh, yh, c)
		if z.hi|z.lo == 0 {
			return Float{} // +0 when rounding to nearest
		}
	}
	z.normalize()
	return z
}

// Neg returns -x.
func (x Float) Neg() Float {
	x.neg = !x.neg
	return x
}

// Mul returns x·y, as Add.
func (x Float) Mul(y Float) Float {
	neg := x.neg != y.neg
	switch {
	case x.kind == floatNaN || y.kind == floatNaN:
		return nan(x, y)
	case x.kind == floatInf && y.kind == floatZero, x.kind == floatZero && y.kind == floatInf:
		return invalid
	case x.kind == floatInf || y.kind == floatInf:
		return Float{kind: floatInf, neg: neg}
	case x.kind == floatZero || y.kind == floatZero:
		return Float{neg: neg}
	}
	// 256 bits, highest first: p3 p2 p1 p0.
	p3, p2 := bits.Mul64(x.hi, y.hi)
	p1, p0 := bits.Mul64(x.lo, y.lo)
	var c uint64
	for _, m := range [2][2]uint64{{x.hi, y.lo}, {x.lo, y.hi}} {
		h, l := bits.Mul64(m[0], m[1])
		p1, c = bits.Add64(p1, l, 0)
		p2, c = bits.Add64(p2, h, c)
		p3 += c
	}
	z := Float{kind: floatFinite, neg: neg, exp: x.exp + y.exp + 1, hi: p3, lo: p2}
	if p3>>63 == 0 {
		z.hi, z.lo = p3<<1|p2>>63, p2<<1|p1>>63
		p1 <<= 1
		z.exp--
	}
	if p1|p0 != 0 {
		z.lo |= 1
	}
	return z
}

// magnitudeLess reports whether |x| < |y|, both finite and not 0.
func (x Float) magnitudeLess(y Float) bool {
	if x.exp != y.exp {
		return x.exp < y.exp
	}
	return x.hi < y.hi || x.hi == y.hi && x.lo < y.lo
}

// IsNaN reports whether x is not a number.
func (x Float) IsNaN() bool { return x.kind == floatNaN }

// Signbit reports whether the sign of x is negative, also of 0.
func (x Float) Signbit() bool { return x.neg }

// Less reports whether x < y: false if one is not a number.
func (x Float) Less(y Float) bool {
	switch {
	case x.kind == floatNaN || y.kind == floatNaN:
		return false
	case x.kind == floatZero && y.kind == floatZero:
		return false
	case x.neg != y.neg && x.kind != floatZero && y.kind != floatZero:
		return x.neg
	case x.kind == floatZero:
		return !y.neg
	case y.kind == floatZero:
		return x.neg
	}
	if x.neg {
		x, y = y, x
	}
	if x.kind != y.kind || x.kind == floatInf {
		return x.kind < y.kind
	}
	return x.magnitudeLess(y)
}
