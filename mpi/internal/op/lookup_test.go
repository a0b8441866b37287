package op

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

func named(t testing.TB, name string) *datatype.Named {
	t.Helper()
	for _, n := range datatype.Predefined() {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

// TestFor checks which operators take which predefined datatypes.
func TestFor(t *testing.T) {
	arith := []Code{CodeSum, CodeProd}
	order := []Code{CodeMin, CodeMax}
	logic := []Code{CodeLand, CodeLor, CodeLxor}
	bit := []Code{CodeBand, CodeBor, CodeBxor}
	want := map[datatype.Group][]Code{
		datatype.GroupOther:          nil,
		datatype.GroupCInteger:       slices.Concat(arith, order, logic, bit),
		datatype.GroupFortranInteger: slices.Concat(arith, order, bit),
		datatype.GroupFloat:          slices.Concat(arith, order),
		datatype.GroupLogical:        logic,
		datatype.GroupComplex:        arith,
		datatype.GroupByte:           bit,
		datatype.GroupMultiLanguage:  slices.Concat(arith, order, logic, bit),
		datatype.GroupPair:           {CodeMinLoc, CodeMaxLoc},
	}
	for _, n := range datatype.Predefined() {
		for code := range Codes {
			group := n.Group
			if n.Name == "MPI_CHAR" { // as other implementations take it
				group = datatype.GroupCInteger
			}
			ok := slices.Contains(want[group], code) || code == CodeReplace || code == CodeNoOp
			red, err := For(code, n.Type)
			switch {
			case ok && (err != nil || red.Code() != code || red.Name() != code.String()):
				t.Errorf("%v of %s: %v, %v", code, n.Name, red, err)
			case !ok && !errors.Is(err, mpierr.ErrOp):
				t.Errorf("%v of %s: %v, %v, want %v", code, n.Name, red, err, mpierr.ErrOp)
			case !ok && !(strings.Contains(err.Error(), n.Name) && strings.Contains(err.Error(), code.String())):
				t.Errorf("%v of %s: %v names not both", code, n.Name, err)
			}
		}
	}
	num, err := datatype.Of[float64]()
	if err != nil {
		t.Fatal(err)
	}
	if red, err := For(CodeSum, num); err != nil || red != (Sum[float64]{}) {
		t.Errorf("sum of Go's float64: %v, %v", red, err)
	}
	two, _ := datatype.Contiguous(2, num)
	for _, tt := range []struct {
		code Code
		t    *datatype.Type
		want error
	}{
		{CodeBand, num, mpierr.ErrOp}, {CodeSum, two, mpierr.ErrOp}, {CodeSum, nil, mpierr.ErrDatatype},
		{Codes, num, mpierr.ErrOp}, {255, named(t, "MPI_INT").Type, mpierr.ErrOp},
	} {
		if _, err := For(tt.code, tt.t); !errors.Is(err, tt.want) {
			t.Errorf("%v of %v: %v, want %v", tt.code, tt.t, err, tt.want)
		}
	}
}

// encode returns a small integer as one value of a predefined datatype.
func encode(n *datatype.Named, v int) []byte {
	if n.Group == datatype.GroupComplex {
		re := encodeFloat(n.Format, n.Size()/2, v)
		return append(re, make([]byte, n.Size()/2)...)
	}
	if n.Group == datatype.GroupFloat {
		return encodeFloat(n.Format, n.Size(), v)
	}
	b := make([]byte, 16)
	storeInt128(b, uint64(int64(v)>>63), uint64(v))
	if !littleEndian {
		return b[16-n.Size():]
	}
	return b[:n.Size()]
}

func encodeFloat(f *datatype.FloatFormat, size, v int) []byte {
	b := make([]byte, size)
	switch {
	case f != nil:
		f.Store(b, number(v))
	case size == 4:
		binary.NativeEndian.PutUint32(b, math.Float32bits(float32(v)))
	default:
		binary.NativeEndian.PutUint64(b, math.Float64bits(float64(v)))
	}
	return b
}

// number returns an integer as a long double.
func number(v int) datatype.Float {
	b := make([]byte, 16)
	if v == 0 {
		return datatype.Extended.Load(b)
	}
	m := uint64(max(v, -v))
	n := bits.LeadingZeros64(m)
	binary.LittleEndian.PutUint64(b, m<<n)
	se := uint16(16383 + 63 - n)
	if v < 0 {
		se |= 1 << 15
	}
	binary.LittleEndian.PutUint16(b[8:], se)
	return datatype.Extended.Load(b)
}

// TestCombine computes with small numbers in all predefined datatypes, at odd addresses.
func TestCombine(t *testing.T) {
	results := map[Code]func(x, y int) int{
		CodeSum:  func(x, y int) int { return x + y },
		CodeProd: func(x, y int) int { return x * y },
		CodeMin:  func(x, y int) int { return min(x, y) },
		CodeMax:  func(x, y int) int { return max(x, y) },
		CodeBand: func(x, y int) int { return x & y },
		CodeBor:  func(x, y int) int { return x | y },
		CodeBxor: func(x, y int) int { return x ^ y },
		CodeLand: func(x, y int) int { return min(x*x, 1) * min(y*y, 1) },
		CodeLor:  func(x, y int) int { return min(x*x+y*y, 1) },
		CodeLxor: func(x, y int) int { return min(x*x, 1) ^ min(y*y, 1) },
	}
	for _, n := range datatype.Predefined() {
		if n.Group == datatype.GroupPair {
			continue
		}
		for code, f := range results {
			red, err := For(code, n.Type)
			if err != nil {
				continue
			}
			signed := n.Class() != "uint" && n.Group != datatype.GroupLogical &&
				n.Group != datatype.GroupComplex // of which the other part may become -0
			for _, v := range [][2]int{{3, 4}, {0, 7}, {5, 0}, {-3, 4}, {-6, -7}, {100, 1}, {0, 0}} {
				x, y := v[0], v[1]
				if !signed {
					x, y = max(x, -x), max(y, -y)
				}
				if n.Class() == "bool" {
					x, y = min(x, 1), min(y, 1)
				}
				size := n.Size()
				a := append([]byte{9}, slices.Repeat(encode(n, x), 3)...)[1:]
				b := append([]byte{9}, slices.Repeat(encode(n, y), 3)...)[1:]
				dst := make([]byte, 3*size+1)[1:]
				red.Combine(dst, a, b)
				if want := slices.Repeat(encode(n, f(x, y)), 3); string(dst) != string(want) {
					t.Errorf("%v of %d and %d of %s is %x, want %x", code, x, y, n.Name, dst, want)
				}
				red.Combine(a, a, b)
				if string(a) != string(dst) {
					t.Errorf("%v of %s in place is %x, want %x", code, n.Name, a, dst)
				}
			}
		}
	}
}

// TestComplexProduct multiplies complex numbers with both parts.
func TestComplexProduct(t *testing.T) {
	for _, name := range []string{"MPI_COMPLEX4", "MPI_C_FLOAT_COMPLEX", "MPI_C_DOUBLE_COMPLEX",
		"MPI_C_LONG_DOUBLE_COMPLEX", "MPI_COMPLEX32"} {
		n := named(t, name)
		z := func(re, im int) []byte {
			return append(encodeFloat(n.Format, n.Size()/2, re), encodeFloat(n.Format, n.Size()/2, im)...)
		}
		red, err := For(CodeProd, n.Type)
		if err != nil {
			t.Fatal(err)
		}
		a := z(3, -4)
		red.Combine(a, a, z(5, 7))
		if want := z(43, 1); string(a) != string(want) {
			t.Errorf("%s: (3-4i)(5+7i) = %x, want %x", name, a, want)
		}
	}
}

// TestExtremes compares min and max of long doubles with those of float64.
func TestExtremes(t *testing.T) {
	values := []float64{math.Inf(-1), -2, -1, math.Copysign(0, -1), 0, 1, 2, math.Inf(1), math.NaN()}
	ext := func(v float64) []byte {
		b := make([]byte, 16)
		switch {
		case v == 0, math.Abs(v) <= 2:
			datatype.Extended.Store(b, number(int(v)))
		case math.IsNaN(v):
			binary.LittleEndian.PutUint64(b, 3<<62)
			b[8], b[9] = 0xff, 0x7f
		default:
			binary.LittleEndian.PutUint64(b, 1<<63)
			b[8], b[9] = 0xff, 0x7f
		}
		if math.Signbit(v) {
			b[9] |= 0x80
		}
		return b
	}
	for _, code := range []Code{CodeMin, CodeMax} {
		red, err := For(code, named(t, "MPI_LONG_DOUBLE").Type)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range values {
			for _, y := range values {
				want := min(x, y)
				if code == CodeMax {
					want = max(x, y)
				}
				got := make([]byte, 16)
				red.Combine(got, ext(x), ext(y))
				if math.IsNaN(want) && datatype.Extended.Load(got).IsNaN() {
					continue
				}
				if string(got) != string(ext(want)) {
					t.Errorf("%v of %v and %v = %x, want %v", code, x, y, got, want)
				}
			}
		}
	}
}

// TestInt128 compares integers of 128 bits with math/big.
func TestInt128(t *testing.T) {
	mod := new(big.Int).Lsh(big.NewInt(1), 128)
	value := func(b []byte) *big.Int {
		h, l := loadInt128(b)
		v := new(big.Int).SetInt64(int64(h))
		return v.Add(v.Lsh(v, 64), new(big.Int).SetUint64(l))
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []byte {
			b := make([]byte, 16)
			storeInt128(b, rapid.Uint64().Draw(t, name), rapid.Uint64().Draw(t, name))
			return b
		}
		a, b := draw("a"), draw("b")
		x, y := value(a), value(b)
		for code, want := range map[Code]*big.Int{
			CodeSum:  new(big.Int).Add(x, y),
			CodeProd: new(big.Int).Mul(x, y),
			CodeBand: new(big.Int).And(x, y),
			CodeBor:  new(big.Int).Or(x, y),
			CodeBxor: new(big.Int).Xor(x, y),
			CodeMin:  slices.MinFunc([]*big.Int{x, y}, (*big.Int).Cmp),
			CodeMax:  slices.MaxFunc([]*big.Int{x, y}, (*big.Int).Cmp),
		} {
			got := make([]byte, 16)
			int128Ops[code].Combine(got, a, b)
			diff := new(big.Int).Sub(value(got), want)
			if diff.Mod(diff, mod).Sign() != 0 {
				t.Fatalf("%v of %v and %v = %v, want %v", code, x, y, value(got), want)
			}
		}
	})
}

// TestPairs compares MINLOC and MAXLOC on packed pairs with the definition.
func TestPairs(t *testing.T) {
	for _, n := range datatype.Predefined() {
		if n.Group != datatype.GroupPair {
			continue
		}
		pair := func(v, i int) []byte { return append(encode(n.Value, v), encode(n.Index, i)...) }
		for _, code := range []Code{CodeMinLoc, CodeMaxLoc} {
			red, err := For(code, n.Type)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range [][4]int{{3, 9, 4, 1}, {4, 1, 3, 9}, {5, 2, 5, 7}, {5, 7, 5, 2}, {-5, 7, 5, 2}, {0, -1, 0, -2}} {
				want := pair(v[0], v[1])
				less := v[2] < v[0]
				if code == CodeMaxLoc {
					less = v[2] > v[0]
				}
				if less || v[2] == v[0] && v[3] < v[1] {
					want = pair(v[2], v[3])
				}
				got := append([]byte{9}, pair(v[0], v[1])...)
				red.Combine(got[1:], got[1:], pair(v[2], v[3]))
				if string(got[1:]) != string(want) {
					t.Errorf("%v of %s: %v is %x, want %x", code, n.Name, v, got[1:], want)
				}
			}
		}
	}
}

// TestForAllocates checks that finding a predefined operator and combining allocate nothing.
func TestForAllocates(t *testing.T) {
	for _, n := range datatype.Predefined() {
		for code := range Codes {
			if _, err := For(code, n.Type); err != nil {
				continue
			}
			a, b := make([]byte, 4*n.Size()), make([]byte, 4*n.Size())
			if k := testing.AllocsPerRun(10, func() {
				red, _ := For(code, n.Type)
				red.Combine(a, a, b)
			}); k > 0 {
				t.Errorf("%v of %s: %v allocations", code, n.Name, k)
			}
		}
	}
}

func BenchmarkCombine(b *testing.B) {
	for _, name := range []string{"MPI_DOUBLE", "MPI_INT", "MPI_LONG_DOUBLE", "MPI_REAL16", "MPI_DOUBLE_INT"} {
		n := named(b, name)
		code := CodeSum
		if n.Group == datatype.GroupPair {
			code = CodeMinLoc
		}
		red, err := For(code, n.Type)
		if err != nil {
			b.Fatal(err)
		}
		x, y := make([]byte, 1024*n.Size()), make([]byte, 1024*n.Size())
		if n.Group == datatype.GroupFloat {
			x, y = slices.Repeat(encode(n, 1), 1024), slices.Repeat(encode(n, 1), 1024)
		}
		b.Run("type="+name, func(b *testing.B) {
			b.SetBytes(int64(len(x)))
			b.ReportAllocs()
			for b.Loop() {
				red.Combine(x, x, y)
			}
		})
	}
}
