package mpi

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

type celsius float32

type flag bool

func checkOp[T comparable](t *testing.T, op Op[T], a, b, want []T) {
	t.Helper()
	got := make([]T, len(a))
	if err := ReduceLocal(got, a, b, op); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v %s %v = %v, want %v", a, op().Name(), b, got, want)
	}
	// On bytes, onto the first and onto the second operand.
	x, y := slices.Clone(a), slices.Clone(b)
	op.reducer().Combine(datatype.Bytes(x), datatype.Bytes(x), datatype.Bytes(y))
	if !slices.Equal(x, want) {
		t.Errorf("%v %s %v onto the first = %v, want %v", a, op().Name(), b, x, want)
	}
	x = slices.Clone(a)
	op.reducer().Combine(datatype.Bytes(y), datatype.Bytes(x), datatype.Bytes(y))
	if !slices.Equal(y, want) {
		t.Errorf("%v %s %v onto the second = %v, want %v", a, op().Name(), b, y, want)
	}
}

func TestOperators(t *testing.T) {
	checkOp(t, Sum, []int8{1, -2, 127}, []int8{3, 4, 1}, []int8{4, 2, -128})
	checkOp(t, Sum, []celsius{1.5}, []celsius{2}, []celsius{3.5})
	checkOp(t, Sum, []complex128{1 + 2i}, []complex128{1i}, []complex128{1 + 3i})
	checkOp(t, Prod, []complex64{1i}, []complex64{1i}, []complex64{-1})
	checkOp(t, Prod, []uint16{300}, []uint16{300}, []uint16{90000 % 65536})
	checkOp(t, Min, []float64{1, -1}, []float64{0, 5}, []float64{0, -1})
	checkOp(t, Max, []int{1, -1}, []int{0, 5}, []int{1, 5})
	checkOp(t, Land, []int32{0, 7, -1}, []int32{3, 8, 0}, []int32{0, 1, 0})
	checkOp(t, Land, []bool{true, true}, []bool{true, false}, []bool{true, false})
	checkOp(t, Lor, []flag{false, true}, []flag{false, false}, []flag{false, true})
	checkOp(t, Lor, []uint64{0, 1 << 40}, []uint64{0, 0}, []uint64{0, 1})
	checkOp(t, Lxor, []uint16{5, 5, 0}, []uint16{6, 0, 0}, []uint16{0, 1, 0})
	checkOp(t, Band, []uint8{12}, []uint8{10}, []uint8{8})
	checkOp(t, Bor, []int16{12}, []int16{10}, []int16{14})
	checkOp(t, Bxor, []uint{12}, []uint{10}, []uint{6})
	type vl = ValLoc[float32]
	checkOp(t, MinLoc, []vl{{1, 5}, {2, 1}, {3, 9}}, []vl{{2, 4}, {1, 7}, {3, 2}}, []vl{{1, 5}, {1, 7}, {3, 2}})
	checkOp(t, MaxLoc, []vl{{1, 5}, {2, 1}, {3, 9}}, []vl{{2, 4}, {1, 7}, {3, 2}}, []vl{{2, 4}, {2, 1}, {3, 2}})
	checkOp(t, Replace, []odd{{1, 2, 3}}, []odd{{4, 5, 6}}, []odd{{4, 5, 6}})
	checkOp(t, NoOp, []odd{{1, 2, 3}}, []odd{{4, 5, 6}}, []odd{{1, 2, 3}})
	checkOp(t, NewOp(func(a, b string3) string3 { return string3{a[0], b[1], 'x'} }, false),
		[]string3{{'a', 'b', 'c'}}, []string3{{'d', 'e', 'f'}}, []string3{{'a', 'e', 'x'}})
	if v := []float64{1}; ReduceLocal(v, v, []float64{math.NaN()}, Max) != nil || !math.IsNaN(v[0]) {
		t.Errorf("max of 1 and NaN = %v, want NaN", v[0])
	}
}

type string3 [3]byte

func TestReduceLocalErrors(t *testing.T) {
	a := make([]int, 3)
	if err := ReduceLocal(a, a, a[:2], Sum); !errors.Is(err, ErrCount) {
		t.Errorf("lengths differ: %v, want %v", err, ErrCount)
	}
	if err := ReduceLocal(a, a, a, nil); !errors.Is(err, ErrOp) {
		t.Errorf("no operator: %v, want %v", err, ErrOp)
	}
	p := make([]*int, 1)
	if err := ReduceLocal(p, p, p, Replace); !errors.Is(err, ErrType) {
		t.Errorf("pointers: %v, want %v", err, ErrType)
	}
}

// checkSums compares sums of all lengths, onto either operand and beside them, with
// those of single elements.
func checkSums[T Number](t *testing.T, value func(i int) T) {
	t.Helper()
	for n := range 200 {
		a, b, want := make([]T, n), make([]T, n), make([]T, n)
		for i := range n {
			a[i], b[i] = value(i), value(1000-i)
			want[i] = a[i] + b[i]
		}
		for at, got := range [][]T{make([]T, n), slices.Clone(a), slices.Clone(b)} {
			x, y := a, b
			switch at {
			case 1:
				x = got
			case 2:
				y = got
			}
			if err := ReduceLocal(got, x, y, Sum); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%T: %d sums in place %d = %v, want %v", got, n, at, got, want)
			}
		}
	}
}

func TestSumLengths(t *testing.T) {
	checkSums(t, func(i int) int8 { return int8(3 * i) })
	checkSums(t, func(i int) uint8 { return uint8(3 * i) })
	checkSums(t, func(i int) int16 { return int16(301 * i) })
	checkSums(t, func(i int) uint32 { return uint32(i) * 0x9e3779b1 })
	checkSums(t, func(i int) int { return i * 0x1e3779b1 })
	checkSums(t, func(i int) float32 { return 1 / float32(i+1) })
	checkSums(t, func(i int) celsius { return 1 / celsius(i+1) })
	checkSums(t, func(i int) float64 { return 1 / float64(i+1) })
	checkSums(t, func(i int) complex64 { return complex(1/float32(i+1), float32(i)) })
	checkSums(t, func(i int) complex128 { return complex(1/float64(i+1), float64(i)) })
}

func BenchmarkReduceLocal(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 18} {
		b.Run(fmt.Sprintf("op=sum/type=float32/size=%d", n), func(b *testing.B) {
			x, y, z := make([]float32, n/4), make([]float32, n/4), make([]float32, n/4)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if err := ReduceLocal(z, x, y, Sum); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
