package op

import (
	"encoding/binary"
	"math/bits"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// softOps and softComplexOps are the operators on numbers in formats that Go has no type for.
var softOps, softComplexOps = func() (real, complex map[*datatype.FloatFormat]Table) {
	real, complex = make(map[*datatype.FloatFormat]Table), make(map[*datatype.FloatFormat]Table)
	for _, f := range []*datatype.FloatFormat{datatype.Half, datatype.Extended, datatype.Quad} {
		var r, c Table
		for _, code := range []Code{CodeSum, CodeProd, CodeMin, CodeMax} {
			r[code] = &soft{f: f, code: code}
		}
		c[CodeSum], c[CodeProd] = &soft{f: f, code: CodeSum}, &softComplexProd{soft{f: f, code: CodeProd}}
		real[f], complex[f] = r, c
	}
	return real, complex
}()

// soft is an operator on numbers of a format.
type soft struct {
	builtin
	f    *datatype.FloatFormat
	code Code
}

func (o *soft) Code() Code   { return o.code }
func (o *soft) Name() string { return o.code.String() }
func (o *soft) Combine(dst, a, b []byte) {
	for f, i := o.f, 0; i < len(dst); i += f.Size {
		switch o.code {
		case CodeSum:
			f.Sum(dst[i:], a[i:], b[i:])
		case CodeProd:
			f.Product(dst[i:], a[i:], b[i:])
		case CodeMin:
			f.Store(dst[i:], softMin(f.Load(a[i:]), f.Load(b[i:])))
		case CodeMax:
			f.Store(dst[i:], softMin(f.Load(a[i:]).Neg(), f.Load(b[i:]).Neg()).Neg())
		}
	}
}

// softMin is Go's min: a NaN wins, -0 is less than +0.
func softMin(x, y datatype.Float) datatype.Float {
	if x.IsNaN() || !y.IsNaN() && (x.Less(y) || !y.Less(x) && x.Signbit()) {
		return x
	}
	return y
}

// softComplexProd is the product of complex numbers.
type softComplexProd struct{ soft }

func (o *softComplexProd) Combine(dst, a, b []byte) {
	f := o.f
	// A product and a sum are each rounded, as in C.
	var tmp [16]byte
	rounded := func(x datatype.Float) datatype.Float {
		f.Store(tmp[:], x)
		return f.Load(tmp[:])
	}
	for i := 0; i < len(dst); i += 2 * f.Size {
		j := i + f.Size
		ar, ai, br, bi := f.Load(a[i:]), f.Load(a[j:]), f.Load(b[i:]), f.Load(b[j:])
		re := rounded(ar.Mul(br)).Add(rounded(ai.Mul(bi)).Neg())
		im := rounded(ar.Mul(bi)).Add(rounded(ai.Mul(br)))
		f.Store(dst[i:], re)
		f.Store(dst[j:], im)
	}
}

// int128Ops are the operators on integers of 128 bits.
var int128Ops = func() (ops Table) {
	for code := CodeSum; code <= CodeBxor; code++ {
		ops[code] = &int128{code: code}
	}
	return ops
}()

// int128 is an operator on integers of 128 bits with a sign, or on truth values as long.
type int128 struct {
	builtin
	code Code
}

func (o *int128) Code() Code   { return o.code }
func (o *int128) Name() string { return o.code.String() }
func (o *int128) Combine(dst, a, b []byte) {
	for i := 0; i < len(dst); i += 16 {
		xh, xl := loadInt128(a[i:])
		yh, yl := loadInt128(b[i:])
		h, l := o.combine(xh, xl, yh, yl)
		storeInt128(dst[i:], h, l)
	}
}

func (o *int128) combine(xh, xl, yh, yl uint64) (h, l uint64) {
	less := int64(xh) < int64(yh) || xh == yh && xl < yl
	x, y := xh|xl != 0, yh|yl != 0
	truth := false
	switch o.code {
	case CodeSum:
		var c uint64
		l, c = bits.Add64(xl, yl, 0)
		return xh + yh + c, l
	case CodeProd:
		h, l = bits.Mul64(xl, yl)
		return h + xh*yl + xl*yh, l
	case CodeMin, CodeMax:
		if less == (o.code == CodeMin) {
			return xh, xl
		}
		return yh, yl
	case CodeBand:
		return xh & yh, xl & yl
	case CodeBor:
		return xh | yh, xl | yl
	case CodeBxor:
		return xh ^ yh, xl ^ yl
	case CodeLand:
		truth = x && y
	case CodeLor:
		truth = x || y
	case CodeLxor:
		truth = x != y
	}
	if truth {
		return 0, 1
	}
	return 0, 0
}

func loadInt128(b []byte) (h, l uint64) {
	x, y := binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])
	if littleEndian {
		return y, x
	}
	return x, y
}

func storeInt128(b []byte, h, l uint64) {
	if littleEndian {
		h, l = l, h
	}
	binary.NativeEndian.PutUint64(b, h)
	binary.NativeEndian.PutUint64(b[8:], l)
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
