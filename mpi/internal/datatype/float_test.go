package datatype

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// floatBits draws the bits of a number of a format: any, or one with an exponent near the ends of
// the range, or near that of another.
func floatBits(t *rapid.T, f *FloatFormat, label string) []byte {
	b := make([]byte, f.Size)
	for i := range b {
		b[i] = rapid.Byte().Draw(t, label)
	}
	exp := uint64(rapid.Uint16().Draw(t, label+" exponent"))
	most := uint64(2*f.emax + 1)
	switch rapid.IntRange(0, 7).Draw(t, label+" kind") {
	case 0:
		exp = 0
	case 1:
		exp = most
	case 2:
		exp = most - 1
	case 3, 4:
		exp = uint64(f.emax) + exp%130 - 65
		if f == Half {
			exp %= most
		}
	case 5: // products are subnormal or overflow
		exp = uint64(f.emax)/2 + exp%100 - 50
		if f == Half {
			exp %= most
		}
	}
	exp &= most
	sparse := rapid.IntRange(0, 3).Draw(t, label+" fraction")
	word := func(b []byte, keep uint64) {
		v := binary.NativeEndian.Uint64(b)
		switch sparse {
		case 0:
			v = 0
		case 1:
			v = ^uint64(0)
		case 2:
			v = 1 << (v % 64)
		}
		binary.NativeEndian.PutUint64(b, v&keep)
	}
	neg := uint64(b[0] & 1)
	switch f {
	case Half:
		frac := uint64(binary.NativeEndian.Uint16(b)) & 0x3ff
		binary.NativeEndian.PutUint16(b, uint16(neg<<15|exp<<10|frac))
	case Quad:
		word(b, ^uint64(0))
		word(b[8:], 1<<48-1)
		h := binary.NativeEndian.Uint64(b[8:])
		binary.NativeEndian.PutUint64(b[8:], h|exp<<48|neg<<63)
	case Extended:
		word(b, ^uint64(0))
		m := binary.LittleEndian.Uint64(b) | 1<<63
		if exp == 0 {
			m &^= 1 << 63
		}
		binary.LittleEndian.PutUint64(b, m)
		binary.LittleEndian.PutUint64(b[8:], exp|neg<<15)
	}
	return b
}

// exact returns the value of a finite number.
func (x Float) exact() *big.Float {
	z := new(big.Float).SetPrec(200).SetUint64(x.hi)
	z.SetMantExp(z, 64)
	z.Add(z, new(big.Float).SetUint64(x.lo))
	z.SetMantExp(z, int(x.exp)-127)
	if x.neg {
		z.Neg(z)
	}
	if x.kind == floatZero {
		z = new(big.Float).SetPrec(200)
		if x.neg {
			z.Neg(z)
		}
	}
	return z
}

// nearest rounds an exact value to a format by math/big, and returns its bits.
func nearest(f *FloatFormat, v *big.Float) []byte {
	b := make([]byte, f.Size)
	if v.Sign() == 0 {
		f.Store(b, Float{neg: v.Signbit()})
		return b
	}
	prec := int(f.prec)
	if exp := v.MantExp(nil) - 1; exp < int(1-f.emax) { // subnormal
		prec -= int(1-f.emax) - exp
	}
	r := new(big.Float)
	switch {
	case prec >= 1:
		r.SetPrec(uint(prec)).Set(v)
	default: // half of the smallest number or less, or between that and the smallest
		least := new(big.Float).SetMantExp(big.NewFloat(1), int(2-f.emax)-int(f.prec))
		half := new(big.Float).SetMantExp(least, -1)
		if new(big.Float).Abs(v).Cmp(half) > 0 {
			r.Set(least)
		} else {
			r.SetPrec(1)
		}
		if v.Signbit() {
			r.Neg(r)
		}
	}
	if r.Sign() != 0 && r.MantExp(nil)-1 > int(f.emax) {
		f.Store(b, Float{kind: floatInf, neg: v.Signbit()})
		return b
	}
	// The bits, from the value.
	x := Float{neg: v.Signbit()}
	if r.Sign() != 0 {
		m := new(big.Float)
		x.kind, x.exp = floatFinite, int32(r.MantExp(m)-1)
		i, _ := m.SetMantExp(m.Abs(m), 128).Int(nil)
		x.lo = new(big.Int).And(i, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
		x.hi = new(big.Int).Rsh(i, 64).Uint64()
	}
	f.Store(b, x)
	return b
}

// TestFloatArithmetic compares sums and products with math/big, in all formats, with
// subnormals, overflow, infinities and NaN.
func TestFloatArithmetic(t *testing.T) {
	for name, f := range map[string]*FloatFormat{"half": Half, "extended": Extended, "quad": Quad} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x, y := f.Load(floatBits(t, f, "x")), f.Load(floatBits(t, f, "y"))
				got := make([]byte, f.Size)
				for i, z := range []Float{x.Add(y), x.Mul(y)} {
					f.Store(got, z)
					g := f.Load(got)
					if x.kind >= floatInf || y.kind >= floatInf {
						want := special(i == 0, x, y)
						if g.kind != want.kind || want.kind != floatNaN && g.neg != want.neg && want.kind == floatInf {
							t.Fatalf("operation %d of %+v and %+v is %+v, want %+v", i, x, y, g, want)
						}
						continue
					}
					sum := new(big.Float).SetPrec(0)
					if i == 0 {
						sum.SetPrec(2*16384+300).Add(x.exact(), y.exact())
					} else {
						sum.SetPrec(400).Mul(x.exact(), y.exact())
					}
					if want := nearest(f, sum); string(got) != string(want) {
						t.Fatalf("operation %d of %+v and %+v is %x, want %x", i, x, y, got, want)
					}
				}
				if less := x.Less(y); x.kind < floatInf && y.kind < floatInf && less != (x.exact().Cmp(y.exact()) < 0) {
					t.Fatalf("%+v < %+v is %v", x, y, less)
				}
			})
		})
	}
}

// TestNormalLongDoubles compares the short way for normal numbers with that for all.
func TestNormalLongDoubles(t *testing.T) {
	short := 0
	check := func(tb interface{ Fatalf(string, ...any) }, a, b []byte) {
		got, want := make([]byte, 16), make([]byte, 16)
		one := func(name string, z Float, ok bool, whole func(dst, a, b []byte)) {
			Extended.Store(want, z)
			if ok {
				short++
			}
			if ok && string(got) != string(want) {
				tb.Fatalf("%s of %x and %x is %x, want %x", name, a, b, got, want)
			}
			in := slices.Clone(a)
			if whole(in, in, b); string(in) != string(want) {
				tb.Fatalf("%s of %x and %x in place is %x, want %x", name, a, b, in, want)
			}
		}
		x, y := Extended.Load(a), Extended.Load(b)
		one("sum", x.Add(y), sumNormal(got, a, b), Extended.Sum)
		one("product", x.Mul(y), productNormal(got, a, b), Extended.Product)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, floatBits(t, Extended, "a"), floatBits(t, Extended, "b"))
	})
	significands := []uint64{1 << 63, 1<<63 | 1, 1<<63 | 2, 3<<62 | 1, math.MaxUint64 - 1, math.MaxUint64}
	number := func(exp uint16, m uint64) []byte {
		b := make([]byte, 16)
		binary.LittleEndian.PutUint64(b, m)
		binary.LittleEndian.PutUint16(b[8:], exp)
		return b
	}
	for d := range uint16(132) {
		for _, x := range significands {
			for _, y := range significands {
				check(t, number(16383, x), number(16383-d, y))
				check(t, number(16383-d, x), number(16383|1<<15, y))
			}
		}
	}
	if short == 0 {
		t.Error("no numbers went the short way")
	}
}

// special is the sum or the product of numbers of which one is infinite or no number, computed in
// float64, where such numbers behave the same.
func special(add bool, x, y Float) Float {
	v := func(x Float) float64 {
		m := map[floatKind]float64{floatZero: 0, floatFinite: 1, floatInf: math.Inf(1), floatNaN: math.NaN()}[x.kind]
		if x.neg {
			m = -m
		}
		return m
	}
	z := v(x) * v(y)
	if add {
		z = v(x) + v(y)
	}
	out := Float{kind: floatFinite, neg: z < 0}
	if math.IsNaN(z) {
		out.kind = floatNaN
	} else if math.IsInf(z, 0) {
		out.kind = floatInf
	}
	return out
}

// TestFloatBits checks encodings by their bits.
func TestFloatBits(t *testing.T) {
	ext := func(se uint16, m uint64) []byte {
		b := make([]byte, 16)
		binary.LittleEndian.PutUint64(b, m)
		binary.LittleEndian.PutUint16(b[8:], se)
		return b
	}
	one := Extended.Load(ext(16383, 1<<63))
	tiny := Extended.Load(ext(0, 1))
	most := Extended.Load(ext(32766, math.MaxUint64))
	for _, tt := range []struct {
		name string
		got  Float
		want []byte
	}{
		{"1+1", one.Add(one), ext(16384, 1<<63)},
		{"1-1", one.Add(one.Neg()), ext(0, 0)},
		{"smallest+smallest", tiny.Add(tiny), ext(0, 2)},
		{"smallest·smallest", tiny.Mul(tiny), ext(0, 0)},
		{"-smallest·smallest", tiny.Neg().Mul(tiny), ext(0x8000, 0)},
		{"largest subnormal+smallest", Extended.Load(ext(0, 1<<63-1)).Add(tiny), ext(1, 1<<63)},
		{"largest+largest", most.Add(most), ext(32767, 1<<63)},
		{"largest+half a unit of it", most.Add(Extended.Load(ext(32766-64, 1<<63))), ext(32767, 1<<63)},
		{"largest+less", most.Add(Extended.Load(ext(32766-65, math.MaxUint64))), ext(32766, math.MaxUint64)},
		{"∞-∞", Extended.Load(ext(32767, 1<<63)).Add(Extended.Load(ext(0xffff, 1<<63))), ext(0xffff, 3<<62)},
		{"signaling NaN + 1", Extended.Load(ext(32767, 1<<63|5)).Add(one), ext(32767, 3<<62|5)},
		{"pseudo-denormal", Extended.Load(ext(0, 1<<63|7)), ext(1, 1<<63|7)},
		{"unnormal", Extended.Load(ext(16383, 1<<62)), ext(0xffff, 3<<62)},
		{"1+2^-64: ties to even", one.Add(Extended.Load(ext(16383-64, 1<<63))), ext(16383, 1<<63)},
		{"1+2^-64+: up", one.Add(Extended.Load(ext(16383-64, 1<<63|1))), ext(16383, 1<<63|1)},
	} {
		got := make([]byte, 16)
		Extended.Store(got, tt.got)
		if string(got) != string(tt.want) {
			t.Errorf("%s = %x, want %x", tt.name, got, tt.want)
		}
	}
	h := make([]byte, 2)
	Half.Store(h, one)
	if v := binary.NativeEndian.Uint16(h); v != 0x3c00 {
		t.Errorf("1 in half precision = %#04x, want 0x3c00", v)
	}
	q := make([]byte, 16)
	Quad.Store(q, one.Neg())
	if v := Quad.Load(q); v != one.Neg() || binary.NativeEndian.Uint64(q[8:]) != 0xbfff<<48 && !bigEndianHost {
		t.Errorf("-1 in quadruple precision = %x", q)
	}
}
